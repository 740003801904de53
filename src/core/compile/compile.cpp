// SPDX-License-Identifier: Apache-2.0
#include "core/compile/compile.h"

#include <map>

#include "core/compile/plan/plan.h"

namespace tracefire {
namespace {

/// Shows each device what it will run, so that kernels which must be generated are made together.
Status prepare_devices(const Program& program, const CompileOptions& options) {
  struct Types {
    std::vector<ValueType> inputs, outputs;
  };
  std::map<Device, std::vector<NodeView>> views;
  std::vector<std::unique_ptr<Types>> types;
  for (const Step& step : program.steps) {
    for (const auto& region : step.regions) {
      TF_RETURN_IF_ERROR(prepare_devices(*region, options));
    }
    if (step.kind != StepKind::kKernel) continue;
    auto known = std::make_unique<Types>();
    for (int32_t value : step.inputs) {
      known->inputs.push_back(program.values[static_cast<size_t>(value)].type);
    }
    for (int32_t value : step.outputs) {
      known->outputs.push_back(program.values[static_cast<size_t>(value)].type);
    }
    NodeView view;
    view.node = &program.graph->nodes[static_cast<size_t>(step.node)];
    view.inputs = known->inputs;
    view.outputs = known->outputs;
    view.loop = step.loop.get();
    view.precision = options.precision;
    view.deterministic = options.deterministic;
    views[step.device].push_back(view);
    types.push_back(std::move(known));
  }
  for (const auto& [device, nodes] : views) {
    TF_ASSIGN(DeviceBackend * backend, Backends::instance().find(device));
    TF_RETURN_IF_ERROR(backend->prepare(nodes));
  }
  return {};
}

}  // namespace

Result<ProgramPtr> compile(const GraphPtr& source, const CompileOptions& given) {
  CompileOptions options = given;
  if (!options.device.is_set()) options.device = Backends::instance().default_device();
  TF_RETURN_IF_ERROR(check_disabled_passes(options.disabled_passes));
  // The others only make programs faster: a new eager structure runs at once without them.
  std::vector<Pass> passes;
  for (const auto* list : {&raise_passes(), &lowering_passes()}) {
    for (const Pass& pass : *list) {
      if (options.optimize || pass.required) passes.push_back(pass);
    }
  }
  TF_ASSIGN(const GraphPtr graph, run_passes(passes, source, options));
  TF_ASSIGN(ProgramPtr program, plan(graph, options));
  TF_RETURN_IF_ERROR(prepare_devices(*program, options));
  return program;
}

}  // namespace tracefire
