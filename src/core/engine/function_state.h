// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/engine/engine.h"
#include "core/engine/slots.h"
#include "tracefire/function.h"

namespace tracefire {

/// A traced function: its graph and what the graph's parameters stand for, in their order:
/// declared parameters, captures, slots, tokens.
struct Function::State {
  trace::Lowered lowered;
  size_t parameters = 0;
  size_t outputs = 0;

  std::mutex mutex;
  HeldProgram program;      ///< guarded by mutex, as all below
  uint64_t generation = 0;  ///< Engine::choices_generation() when it was compiled

  /// The loop over an epoch for one batch size and one set of data types.
  struct Epoch;
  std::vector<std::shared_ptr<Epoch>> epochs;

  Result<ProgramPtr> compiled();
};

/// Adds the value of `cell` to a request, copied to `device` where it is elsewhere; `type` gets its
/// type with numbers for sizes.
Status add_operand(const trace::CellPtr& cell, Device device, RunRequest* request, ValueType* type);

/// Runs `program`, whose parameters are those already in `request`, then captures, slots and tokens
/// of `state`, then `counter` where there is one; publishes slots; returns the outputs.
/// `repeats` < 0: one run; else a loop.
Result<Tensors> run_function(Function::State& state, const ProgramPtr& program, RunRequest request,
                             const Storage* counter, int64_t repeats);

}  // namespace tracefire
