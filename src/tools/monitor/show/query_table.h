// SPDX-License-Identifier: Apache-2.0
// The fields of nvidia-smi's --query-gpu, as its help lists them from driver 590 to 610.
#pragma once

#include <span>
#include <string>

#include "tools/monitor/sample/snapshot.h"

namespace tracefire::monitor {

/// nvidia-smi from this driver on writes MiB rounded up: 615.06 is 616. Older ones cut: a V100's
/// 16160.5 is 16160. Recorded on 580.159; where between the two it changed is not known.
inline constexpr int kRoundsUpSince = 580;

enum class From : uint8_t {
  kText,     ///< `text`
  kMetric,   ///< `metric`
  kAnswer,   ///< Gpu::answers: ask_nvml()
  kNothing,  ///< known by name, not read: "[N/A]", as nvidia-smi shows where a GPU lacks it
};

struct QueryField {
  const char* name;
  const char* alias;  ///< another name that nvidia-smi takes, "" for none
  const char* unit;   ///< "%", "MiB", …; "" for none
  From from = From::kNothing;
  std::string (*text)(const Snapshot&, const Gpu&) = nullptr;
  Metric metric = Metric::kBusy;
  double scale = 1;
  int decimals = 0;  ///< -1: MiB, rounded as the driver's nvidia-smi does, see kRoundsUpSince
  /// Major version of the driver since which nvidia-smi says that it is deprecated; 0: never.
  int deprecated = 0;
  bool bare = false;  ///< what is missing is N/A without brackets
};

std::span<const QueryField> query_fields();
/// nvidia-smi's words for what is missing.
std::string missing_words(int code);
/// 580 of "580.159.04"; 0 where it is unknown.
int driver_major(const std::string& version);

}  // namespace tracefire::monitor
