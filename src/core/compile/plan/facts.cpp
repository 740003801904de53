// SPDX-License-Identifier: Apache-2.0
// What the executor must know about a program beyond its steps.

#include <algorithm>
#include <set>

#include "core/compile/known_ops.h"
#include "core/compile/plan/plan.h"

namespace tracefire {
namespace {

const Node& node_of(const Program& program, const Step& step) {
  return program.graph->nodes[static_cast<size_t>(step.node)];
}

bool checks_data(const Program& program, const Step& step) {
  if (step.kind != StepKind::kKernel) return false;  // host work and regions report by themselves
  const OpTable& table = OpTable::instance();
  const Node& node = node_of(program, step);
  if (table.row(node.op).checks_data) return true;
  if (node.op != KnownOps::get().fused) return false;
  for (const Node& part : node.regions[0]->nodes) {
    if (table.row(part.op).checks_data) return true;
  }
  return false;
}

std::set<int32_t> symbols_of(const std::vector<ValueType>& types) {
  std::set<int32_t> symbols;
  for (const ValueType& type : types) {
    for (Dim dim : type.shape) {
      if (dim.is_constant()) continue;
      for (int32_t symbol : free_symbols(dim)) symbols.insert(symbol);
    }
  }
  return symbols;
}

/// Why one step keeps the program from being captured; empty where it does not.
std::string why_not(const Program& program, const Step& step, Device device) {
  const std::string op(OpTable::instance().name(node_of(program, step).op));
  switch (step.kind) {
    case StepKind::kAlias:
      return {};
    case StepKind::kHostCall:
      return op + " runs on the host";
    case StepKind::kIf:
    case StepKind::kWhile:
      return op + " is decided on the host";
    case StepKind::kCall:
      return op + " runs as a program of its own";
    case StepKind::kCopy:
    case StepKind::kKernel:
      break;
  }
  if (step.device != device) return op + " runs on " + step.device.str();
  for (int32_t input : step.inputs) {
    const ProgramValue& value = program.values[static_cast<size_t>(input)];
    if (value.device.is_set() && value.device != device) {
      return op + " reads from " + value.device.str();
    }
  }
  if (step.kernel && !step.kernel->capturable()) {
    return std::string(step.kernel->name()) + " cannot be captured";
  }
  return {};
}

}  // namespace

void find_size_reads(Program* program) {
  for (size_t s = 0; s < program->steps.size(); ++s) {
    const Step& step = program->steps[s];
    const Node& node = node_of(*program, step);
    const int size_output = OpTable::instance().row(node.op).size_output;
    if (step.kind != StepKind::kKernel || size_output < 0) continue;
    std::vector<ValueType> inputs;
    for (int32_t value : step.inputs) {
      inputs.push_back(program->values[static_cast<size_t>(value)].type);
    }
    const std::set<int32_t> known = symbols_of(inputs);
    for (int32_t symbol : symbols_of(node.outputs)) {
      if (known.count(symbol)) continue;
      program->size_reads.push_back(
          {static_cast<int32_t>(s), symbol, step.outputs[static_cast<size_t>(size_output)]});
    }
  }
}

void find_checks(Program* program) {
  program->result_checks.resize(program->results.size());
  std::vector<std::set<int32_t>> of_value(program->values.size());
  bool any = false;
  for (size_t s = 0; s < program->steps.size(); ++s) {
    const Step& step = program->steps[s];
    const bool checks = checks_data(*program, step);
    any = any || checks;
    if (!any) continue;
    std::set<int32_t> all;
    for (int32_t value : step.inputs) {
      const ProgramValue& input = program->values[static_cast<size_t>(value)];
      if (input.type.dtype == DType::kToken) continue;
      all.insert(of_value[static_cast<size_t>(value)].begin(),
                 of_value[static_cast<size_t>(value)].end());
    }
    if (checks) all.insert(static_cast<int32_t>(s));
    for (int32_t value : step.outputs) of_value[static_cast<size_t>(value)] = all;
  }
  if (!any) return;
  for (size_t r = 0; r < program->results.size(); ++r) {
    const auto& checks = of_value[static_cast<size_t>(program->results[r])];
    program->result_checks[r].assign(checks.begin(), checks.end());
  }
}

void judge_capture(Program* program) {
  const auto no = [&](std::string why) { program->why_not_capturable = std::move(why); };
  Device device;
  for (const Step& step : program->steps) {
    if (step.kind == StepKind::kAlias) continue;
    if (!device.is_set() || device.kind == Device::kCpu) device = step.device;
  }
  if (!device.is_set()) return no("it has no work");
  if (!program->size_reads.empty()) return no("a size depends on data");
  for (const Step& step : program->steps) {
    std::string why = why_not(*program, step, device);
    if (!why.empty()) return no(std::move(why));
  }
  const auto backend = Backends::instance().find(device);
  if (!backend.ok() || !(*backend)->can_capture()) return no(device.str() + " captures nothing");
  program->capturable = true;
}

}  // namespace tracefire
