// SPDX-License-Identifier: Apache-2.0
//
// Loops of a single operation, which are compiled while building: an operation called by itself
// never waits for a compiler.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/api/loop.h"
#include "backends/cuda/emit/loop_source.h"

namespace tracefire::cuda {

/// Most merged axes of a loop that a general kernel walks.
inline constexpr int kGeneralAxes = 4;

struct ReadyLoop {
  LoopProgram program;
  std::vector<LoopVariant> variants;
};
/// Every operation on every type of numbers and bool, by itself. `family`: "unary", "binary", "compare", "cast",
/// "other"; one file of kernels each.
std::vector<ReadyLoop> ready_loops(const std::string& family);
/// The names of families.
const std::vector<std::string>& ready_loop_families();

/// A bound loop in the form that one kernel computes whatever the operands' strides are.
struct GeneralLoop {
  BoundLoop bound;
  LoopVariant variant;
};
/// nullopt where the loop has too many axes or elements.
std::optional<GeneralLoop> general_loop(const LoopProgram& program, const BoundLoop& bound);

}  // namespace tracefire::cuda
