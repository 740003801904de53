// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/compile/plan/plan.h"

namespace tracefire {
namespace {

ProgramValue& at(Program* program, int32_t value) {
  return program->values[static_cast<size_t>(value)];
}

bool is_token(const ProgramValue& value) { return value.type.dtype == DType::kToken; }

int32_t root(const Program& program, int32_t value) {
  while (program.values[static_cast<size_t>(value)].alias_of >= 0) {
    value = program.values[static_cast<size_t>(value)].alias_of;
  }
  return value;
}

/// True where the step reads the bytes of `value` only as element i for element i of its results.
bool reads_flat(const Program& program, const Step& step, int32_t value, int32_t result) {
  if (step.kind != StepKind::kKernel || !step.kernel->in_place()) return false;
  const ValueType& written = program.values[static_cast<size_t>(result)].type;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (root(program, step.inputs[i]) != value) continue;
    const ValueType& read = program.values[static_cast<size_t>(step.inputs[i])].type;
    if (read.shape.elements() != written.shape.elements()) return false;
    if (dtype_size(read.dtype) != dtype_size(written.dtype)) return false;
    // Without a loop the kernel says which shapes it walks in step: equal ones.
    if (!step.loop && read.shape != written.shape) return false;
    if (step.loop && step.loop->inputs[i].is_key) return false;
  }
  return true;
}

}  // namespace

void find_lives(Program* program) {
  const int32_t end = static_cast<int32_t>(program->steps.size());
  for (int32_t s = 0; s < end; ++s) {
    const Step& step = program->steps[static_cast<size_t>(s)];
    for (int32_t value : step.outputs) {
      at(program, value).first_step = s;
      at(program, value).last_step = s;
    }
    if (step.kind == StepKind::kAlias) {
      at(program, step.outputs[0]).alias_of = root(*program, step.inputs[0]);
    }
    for (int32_t value : step.inputs) {
      at(program, value).last_step = s;
      at(program, root(*program, value)).last_step = s;
    }
  }
  for (int32_t value : program->results) {
    at(program, value).last_step = end;
    at(program, root(*program, value)).last_step = end;
  }
}

void choose_slots(Program* program) {
  for (size_t r = 0; r < program->results.size(); ++r) {
    const int32_t slot = program->result_slots[r];
    if (slot < 0) continue;
    const int32_t value = root(*program, program->results[r]);
    const int32_t old = program->params[static_cast<size_t>(slot)];
    ProgramValue& now = at(program, value);
    const ProgramValue& before = at(program, old);
    if (now.param >= 0 || now.in_slot >= 0 || now.device != before.device || is_token(now) ||
        now.type.dtype == DType::kString || now.type.dtype != before.type.dtype ||
        now.type.shape.elements() != before.type.shape.elements()) {
      continue;
    }
    const Step& maker = program->steps[static_cast<size_t>(now.first_step)];
    if (maker.kind != StepKind::kKernel && maker.kind != StepKind::kCopy) continue;
    // The old value as a result of the program is read when it ends.
    bool free = true;
    for (int32_t result : program->results) free = free && root(*program, result) != old;
    for (size_t s = static_cast<size_t>(now.first_step); free && s < program->steps.size(); ++s) {
      const Step& step = program->steps[s];
      if (step.kind == StepKind::kAlias) continue;  // who reads the alias counts
      for (int32_t input : step.inputs) {
        if (root(*program, input) != old) continue;
        free = free && s == static_cast<size_t>(now.first_step) &&
               reads_flat(*program, step, old, value);
      }
    }
    if (free) now.in_slot = slot;
  }
}

}  // namespace tracefire
