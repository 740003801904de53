// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "health_table.h"
#include "tools/monitor/sample/history.h"
#include "tools/monitor/sample/snapshot.h"

namespace tracefire::monitor {

/// How well a GPU is used and, where it is not, why. The scale is schema/health.json.
struct Health {
  std::optional<health::Grade> grade;  ///< none where the busy share could not be read
  double busy = 0;                     ///< mean of the window, 0 to 1
  double window_seconds = 0;           ///< what the points cover, at most kBusyLowSeconds
  double low_seconds =
      0;  ///< how long it has been below kBusyLow without a pause, as far as points go
  std::vector<health::Cause> causes;  ///< most likely first; also what is wrong at a good grade
  std::string culprit;                ///< process that the first cause is about; may be empty
};

/// Judges a GPU by its newest state and its points (oldest first). What follows from outside alone
/// is likely, not proven; a program's own proof knows more.
Health judge(const Gpu& gpu, const std::vector<Point>& points);

/// "healthy", …; "unknown" where there is no grade.
const char* grade_name(const Health& health);
/// "12 % busy over 60 s; likely cause: kernels are too small to fill the GPU".
std::string health_words(const Health& health);

/// Compute processes of different programs, users or containers share the GPU.
bool is_shared(const Gpu& gpu);
/// GPU memory is full while much traffic goes over PCIe.
bool migrates(const Gpu& gpu);
/// A process of the GPU reads its memory back from disk; null where none does.
const GpuProcess* paging_process(const Gpu& gpu);

}  // namespace tracefire::monitor
