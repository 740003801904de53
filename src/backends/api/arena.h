// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backends/api/program.h"

namespace tracefire {

/// Offsets of a program's values in one arena, for bound sizes: values whose lives do not overlap
/// share bytes. No offset (-1) have aliases, parameters, slot targets, strings and tokens; outputs,
/// which outlive the run; what regions and host calls return; and sizes that `env` does not know.
struct ArenaPlan {
  std::vector<int64_t> offsets;  ///< per value
  size_t bytes = 0;
};
/// Offsets are multiples of 256 bytes. `device` picks the values that live there.
ArenaPlan plan_arena(const Program& program, Device device, const DimEnv& env);

}  // namespace tracefire
