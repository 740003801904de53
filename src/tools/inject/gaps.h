// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "tools/inject/prove_table.h"
#include "tools/inject/records.h"

namespace tracefire::inject {

using table::Cause;

/// Why a GPU ran no kernel, added up over the windows of one process.
struct GapFigures {
  uint64_t covered = 0;                              ///< ns that the windows tell about
  uint64_t kernels = 0;                              ///< ns of them with a kernel on the GPU
  std::array<uint64_t, table::kCauseCount> idle{};   ///< ns without a kernel, by cause
  std::array<uint64_t, table::kCauseCount> count{};  ///< gaps
  uint64_t waited = 0;  ///< ns in which the host waited for the GPU or a copy
  bool steady = true;   ///< only the steady part was looked at; else there was no window in it
  uint64_t total_idle() const {
    uint64_t sum = 0;
    for (const uint64_t ns : idle) sum += ns;
    return sum;
  }
};

/// Looks at the windows of `record` between `first` and `last` (CUPTI's clock) and tells for every
/// gap on `device` what the host thread that ended it did meanwhile. The rules are those of
/// schema/prove.json.
GapFigures explain_gaps(const ProcessRecord& record, uint32_t device, uint64_t first,
                        uint64_t last);

}  // namespace tracefire::inject
