// SPDX-License-Identifier: Apache-2.0
// What `tracefire check` finds, and its three forms.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/command.h"
#include "tools/cli/matmul_trial.h"

namespace tracefire::cli {

/// One GPU while the program ran, as NVML told.
struct WatchedGpu {
  int index = 0;
  std::string name, uuid;
  double busy = -1;         ///< mean share of the time in which a kernel ran; -1: not told
  std::string grade;        ///< on the scale of schema/health.json; "unknown" where not told
  std::string words;        ///< busy share and likely cause
  double memory_used = -1;  ///< bytes, the most; -1: not told
  double memory_total = -1;
  double power = -1;                ///< watts, the most
  double temperature = -1;          ///< degrees Celsius, the most
  std::vector<double> busy_points;  ///< 0 to 1, oldest first; negative where not told
};

struct CheckResult {
  Json doctor;                        ///< tracefire.doctor/1
  std::vector<MatmulTrial> products;  ///< Tracefire's own first
  std::vector<std::string> command;   ///< empty where there is none
  Json proof;                         ///< tracefire.prove/1; null where there is none
  std::vector<WatchedGpu> gpus;
  std::string monitor_problem;  ///< why no GPU was watched; empty where one was
  int exit_status = 0;
};

Json check_json(const Context& context, const CheckResult& result);
std::string check_text(const CheckResult& result, const text::Look& look);
/// One file without scripts and without anything from elsewhere; every text is escaped.
std::string check_html(const CheckResult& result);

}  // namespace tracefire::cli
