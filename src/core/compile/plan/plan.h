// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/compile/compile.h"

namespace tracefire {

// Planning: from a placed, fused graph to linear steps over numbered values.

/// Order of execution of the graph's nodes: every node after what it reads. Among those that could
/// run, first one that frees at least as much memory as it takes, else the first in the graph. A
/// node that writes a variable waits for the readers of the old value where it can.
std::vector<int32_t> schedule(const Graph& graph);

/// The program of a graph in which each node has a device. `options.device` is set.
Result<ProgramPtr> plan(const GraphPtr& graph, const CompileOptions& options);

/// Fills first_step, last_step and alias_of of all values.
void find_lives(Program* program);
/// Decides which values are written straight into the buffer of their variable (in_slot): every
/// other reader of the old value runs before, or is the step itself and reads element by element.
void choose_slots(Program* program);
/// Reads of data-dependent sizes.
void find_size_reads(Program* program);
/// Steps with data checks that each result depends on.
void find_checks(Program* program);
/// capturable, or the first reason why not.
void judge_capture(Program* program);

}  // namespace tracefire
