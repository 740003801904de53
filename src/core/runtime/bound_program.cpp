// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/bound_program.h"

#include <algorithm>
#include <set>

namespace tracefire {
namespace {

const ValueType& type_of(const Program& program, int32_t value) {
  return program.values[static_cast<size_t>(value)].type;
}

bool bind_type(const ValueType& type, const DimEnv& env, ValueType* out) {
  *out = type;
  for (Dim dim : type.shape) {
    if (env.eval(dim) < 0) return false;
  }
  out->shape = type.shape.bind(env);
  return true;
}

bool checks_data(const Program& program, const Step& step) {
  const Node& node = program.graph->nodes[static_cast<size_t>(step.node)];
  if (OpTable::instance().row(node.op).checks_data) return true;
  if (node.regions.size() != 1) return false;
  for (const Node& inner : node.regions[0]->nodes) {  // a fused loop may hold checks of its own
    if (OpTable::instance().row(inner.op).checks_data) return true;
  }
  return false;
}

void add(const Needs& from, Needs* to) {
  to->checks.insert(from.checks.begin(), from.checks.end());
  to->params.insert(from.params.begin(), from.params.end());
}

}  // namespace

bool bound_types(const Program& program, const Step& step, const DimEnv& env,
                 std::vector<ValueType>* inputs, std::vector<ValueType>* outputs) {
  bool known = true;
  inputs->resize(step.inputs.size());
  outputs->resize(step.outputs.size());
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    known &= bind_type(type_of(program, step.inputs[i]), env, &(*inputs)[i]);
  }
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    known &= bind_type(type_of(program, step.outputs[i]), env, &(*outputs)[i]);
  }
  return known;
}

Result<std::unique_ptr<Launch>> bind_step(const Program& program, const Step& step,
                                          const DimEnv& env, const std::vector<ValueType>& inputs,
                                          const std::vector<ValueType>& outputs) {
  TF_ASSIGN(DeviceBackend * backend, Backends::instance().find(step.device));
  const Node node = bind_node(program.graph->nodes[static_cast<size_t>(step.node)], env);
  NodeView view;
  view.node = &node;
  view.inputs = inputs;
  view.outputs = outputs;
  view.loop = step.loop.get();
  view.precision = program.precision;
  view.deterministic = program.deterministic;
  view.env = &env;
  return step.kernel->bind(view, *backend);
}

void BoundProgram::fill_needs() {
  const Program& program = *program_;
  const auto is_token = [&](int32_t value) {
    return type_of(program, value).dtype == DType::kToken;
  };
  needs_.resize(program.steps.size());
  std::vector<Needs> of_value(program.values.size());
  for (size_t i = 0; i < program.params.size(); ++i) {
    of_value[static_cast<size_t>(program.params[i])].params.insert(static_cast<int32_t>(i));
  }
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    Needs from;
    bool effect = false;
    for (int32_t input : step.inputs) {
      // The order of effects carries no data: one that failed does not stop the next.
      effect |= is_token(input);
      if (!is_token(input)) add(of_value[static_cast<size_t>(input)], &from);
    }
    if (effect) needs_[s] = from;
    if (check_of_step_[s] >= 0) from.checks.insert(static_cast<int32_t>(s));
    for (int32_t output : step.outputs) of_value[static_cast<size_t>(output)] = from;
  }
  std::vector<Needs> results;
  for (int32_t result : program.results) {
    results.push_back(of_value[static_cast<size_t>(result)]);
  }
  results_once_ = std::make_shared<const std::vector<Needs>>(results);
  while (add_run(&results)) ++runs_to_always_;
  for (const Needs& needs : needs_) {
    needs_before_.push_back(through_slots(needs, results));
    checks_before_ |= !needs_before_.back().checks.empty();
  }
  results_always_ = std::make_shared<const std::vector<Needs>>(std::move(results));
}

Needs BoundProgram::through_slots(const Needs& needs, const std::vector<Needs>& results) const {
  Needs before;
  for (size_t r = 0; r < results.size(); ++r) {
    if (needs.params.count(program_->result_slots[r]) != 0) add(results[r], &before);
  }
  return before;
}

bool BoundProgram::add_run(std::vector<Needs>* results) const {
  const std::vector<Needs> before = *results;
  bool grew = false;
  for (size_t r = 0; r < before.size(); ++r) {
    Needs& now = (*results)[r];
    now = (*results_once_)[r];
    add(through_slots(now, before), &now);
    grew |=
        now.checks.size() + now.params.size() > before[r].checks.size() + before[r].params.size();
  }
  return grew;
}

ResultNeeds BoundProgram::result_needs(int64_t runs) const {
  if (runs >= runs_to_always_) return results_always_;
  std::vector<Needs> results = *results_once_;
  for (int64_t run = 1; run < runs; ++run) add_run(&results);
  return std::make_shared<const std::vector<Needs>>(std::move(results));
}

void BoundProgram::fill_records() {
  const Program& program = *program_;
  auto record = std::make_shared<ProgramRecord>();
  auto work = std::make_shared<std::vector<StepWork>>();
  record->id = program.id;
  record->name = program.name;
  record->precision = program.precision == Precision::kTf32 ? "tf32" : "highest";
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    const Node& node = program.graph->nodes[static_cast<size_t>(step.node)];
    const OpRow& row = OpTable::instance().row(node.op);
    StepRecord out;
    out.op = row.name;
    out.tf_name = row.tf_name;
    out.name = node.name;
    out.device = step.device;
    out.placement = step.placement;
    out.reason = step.placement == Placement::kFellBack ? step.reason : "";
    out.refusals = step.refusals;
    out.location = node.location.str();
    if (step.kernel != nullptr) {
      out.kernel = step.kernel->name();
      out.library = step.kernel->library();
    }
    if (launches_[i]) out.kernel_symbols = launches_[i]->kernel_names();
    record->steps.push_back(std::move(out));
    StepWork cost;
    if (launches_[i]) {
      const Cost bound = node_cost(*program.graph, node, env_);
      cost = {bound.flops, bound.bytes};
    }
    work->push_back(cost);
  }
  record_ = std::move(record);
  work_ = std::move(work);
}

namespace {

/// Kernels are bound before memory is taken, and count elements and strides in 64 bits.
Status check_size(const ValueType& type) {
  int64_t elements = 16;  // bytes of the widest
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    if (!type.shape[axis].is_constant()) return {};
    const int64_t size = type.shape[axis].value();
    if (size == 0) return {};
    if (__builtin_mul_overflow(elements, size, &elements)) {
      return error(
          ErrorCode::kOutOfMemory, "a value of ", type.shape.str(),
          " was asked for. Fewer bytes than 64 bits count were expected. Use smaller sizes.");
    }
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<BoundProgram>> BoundProgram::make(ProgramPtr program, const DimEnv& env) {
  std::shared_ptr<BoundProgram> bound(new BoundProgram);
  bound->program_ = program;
  bound->env_ = env;
  bound->launches_.resize(program->steps.size());
  std::set<Device> devices;
  for (size_t i = 0; i < program->steps.size(); ++i) {
    const Step& step = program->steps[i];
    if (step.device.is_set()) devices.insert(step.device);
    const bool checks = checks_data(*program, step);
    bound->check_of_step_.push_back(checks ? static_cast<int32_t>(bound->checks_++) : -1);
    if (step.kernel == nullptr) continue;
    std::vector<ValueType> inputs, outputs;
    if (!bound_types(*program, step, env, &inputs, &outputs)) continue;
    for (const ValueType& type : outputs) TF_RETURN_IF_ERROR(check_size(type));
    auto launch = bind_step(*program, step, env, inputs, outputs);
    // An attribute may hold a size that depends on data although no type does.
    if (!launch.ok() && launch.status().code() == ErrorCode::kSymbolUnbound) continue;
    TF_ASSIGN(bound->launches_[i], std::move(launch));
    size_t& most = bound->workspace_bytes_[step.device];
    most = std::max(most, bound->launches_[i]->workspace_bytes());
  }
  bound->devices_.assign(devices.begin(), devices.end());
  bound->offsets_.assign(program->values.size(), -1);
  for (Device device : bound->devices_) {
    TF_ASSIGN(DeviceBackend * backend, Backends::instance().find(device));
    bound->runs_on_host_ &= backend->host_addressable();
    ArenaPlan plan = plan_arena(*program, device, env);
    for (size_t v = 0; v < plan.offsets.size(); ++v) {
      if (plan.offsets[v] >= 0) bound->offsets_[v] = plan.offsets[v];
    }
    bound->arena_bytes_[device] = plan.bytes;
  }
  bound->fill_needs();
  bound->fill_records();
  return bound;
}

Result<std::unique_ptr<Instance>> BoundProgram::acquire() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<Instance> instance = std::move(free_.back());
      free_.pop_back();
      return instance;
    }
  }
  auto instance = std::make_unique<Instance>();
  for (Device device : devices_) {
    TF_ASSIGN(DeviceBackend * backend, Backends::instance().find(device));
    Instance::Memory& memory = instance->memory[device];
    const auto arena = arena_bytes_.find(device);
    if (arena != arena_bytes_.end() && arena->second > 0) {
      TF_ASSIGN(memory.arena, backend->allocate(arena->second, program_->name.c_str()));
    }
    const auto workspace = workspace_bytes_.find(device);
    if (workspace != workspace_bytes_.end() && workspace->second > 0) {
      TF_ASSIGN(memory.workspace, backend->allocate(workspace->second, "kernel workspace"));
    }
  }
  return instance;
}

Result<InstanceLease> InstanceLease::take(std::shared_ptr<BoundProgram> bound) {
  TF_ASSIGN(std::unique_ptr<Instance> instance, bound->acquire());
  return InstanceLease(std::move(bound), std::move(instance));
}

void BoundProgram::release(std::unique_ptr<Instance> instance) {
  std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(std::move(instance));
}

}  // namespace tracefire
