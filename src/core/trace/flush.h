// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "core/trace/record.h"

namespace tracefire::trace {

/// Applies the firing policy after an op was recorded: fires when a limit is reached, when the op
/// must have finished before its call returns, or op by op while the placement log is on.
void after_record(const std::vector<CellPtr>& outputs);

/// Fires everything pending on this thread that anybody can still see, and effects. What fails is
/// kept for whoever observes a value, and in take_failure().
void flush_pending(Trigger trigger);

/// Limits of pending work; the engine sets them from the settings.
struct FiringLimits {
  std::atomic<int64_t> nodes{256};
  std::atomic<int64_t> bytes{int64_t{256} << 20};
  std::atomic<bool> op_by_op{false};  ///< the placement log is on
};
FiringLimits& firing_limits();

}  // namespace tracefire::trace
