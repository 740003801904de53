// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/guard.h"
#include "core/engine/function_state.h"
#include "core/engine/splice.h"
#include "core/graph/text.h"
#include "core/ops/op_table.h"
#include "core/runtime/transfer.h"

namespace tracefire {
namespace {

/// Numbers for the symbols of a parameter from an argument's sizes.
Status match_argument(const Param& param, const ValueType& given, size_t index,
                      const std::string& function, DimEnv* env) {
  auto mismatch = [&](ErrorCode code) {
    return error(code, "'", function, "' takes ", param.type.str(), " as argument ", index,
                 ", got ", given.str());
  };
  if (given.dtype != param.type.dtype) return mismatch(ErrorCode::kDTypeMismatch);
  if (given.shape.rank() != param.type.shape.rank()) return mismatch(ErrorCode::kShapeMismatch);
  for (int axis = 0; axis < given.shape.rank(); ++axis) {
    const Dim want = param.type.shape[axis];
    const int64_t size = given.shape[axis].value();
    if (want.is_symbol() && free_symbols(want).size() == 1 &&
        free_symbols(want)[0] == want.symbol()) {
      if (!env->has(want.symbol())) env->set(want.symbol(), size);
      if (size > want.bound()) return mismatch(ErrorCode::kShapeMismatch);
    }
    if (env->eval(want) >= 0 && env->eval(want) != size) {
      return mismatch(ErrorCode::kShapeMismatch);
    }
  }
  return {};
}

/// The type of `count` values one after the other along their first axis.
ValueType joined(ValueType type, int64_t count) {
  if (type.shape.rank() == 0) {
    type.shape.push_back(count);
  } else {
    type.shape[0] = type.shape[0] * Dim(count);
  }
  return type;
}

Status trace_ended(const std::string& name) {
  return error(ErrorCode::kBadUsage, "tracing of '", name,
               "' has ended; begin another FunctionTrace");
}

Status check_parameter(const std::string& function, DType dtype, const Shape& shape) {
  if (dtype != DType::kString && dtype_size(dtype) == 0) {
    return error(ErrorCode::kDTypeMismatch, "a parameter of '", function, "' is to be ",
                 dtype_name(dtype), "; it needs an element type with values");
  }
  for (Dim dim : shape) {
    if (dim.is_symbol() || dim.value() >= 0) continue;
    return error(ErrorCode::kShapeMismatch, "a parameter of '", function, "' is to have shape ",
                 shape.str(), "; sizes are 0 or more, or symbols");
  }
  return {};
}

Status check_count(const Function::State& state, size_t given) {
  if (given == state.parameters) return {};
  return error(ErrorCode::kBadArity, "'", state.lowered.graph->name, "' takes ", state.parameters,
               " arguments, got ", given);
}

/// Whether an operation of the graph or of its regions checks values.
bool checks_data(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return OpTable::instance().row(node.op).checks_data ||
           std::any_of(node.regions.begin(), node.regions.end(),
                       [](const GraphPtr& region) { return checks_data(*region); });
  });
}

}  // namespace

Status add_operand(const trace::CellPtr& cell, Device device, RunRequest* request,
                   ValueType* type) {
  TF_ASSIGN(std::shared_ptr<DevicePayload> payload, Engine::instance().ready(cell, Trigger::kCall));
  *type = bound_type(*cell, *payload);
  Storage storage = payload->storage;
  if (device.is_set() && type->dtype != DType::kString && storage.buffer->device() != device) {
    TF_ASSIGN(storage, allocate_storage(device, *type, "argument from another device"));
    TF_RETURN_IF_ERROR(copy_value(*type, payload->storage, storage));
  }
  request->params.push_back(std::move(storage));
  request->parents.push_back(parent_of(payload));
  return {};
}

Result<ProgramPtr> Function::State::compiled() {
  std::lock_guard<std::mutex> lock(mutex);
  const uint64_t now = Engine::instance().choices_generation();
  if (program.get() == nullptr || generation != now) {
    TF_ASSIGN(ProgramPtr made, guarded([&] {
                return compile(lowered.graph, Engine::instance().compile_options());
              }));
    program = HeldProgram(std::move(made));
    generation = now;
  }
  return program.get();
}

Result<Tensors> run_function(Function::State& state, const ProgramPtr& program, RunRequest request,
                             const Storage* counter, int64_t repeats) {
  Engine& engine = Engine::instance();
  request.program = program;
  request.trigger = Trigger::kCall;
  for (const trace::CellPtr& capture : state.lowered.captures) {
    ValueType type;
    TF_RETURN_IF_ERROR(add_operand(capture, capture->device, &request, &type));
  }
  std::vector<bool> written(state.lowered.slots.size(), false);
  for (int32_t slot : state.lowered.slot_results) written[static_cast<size_t>(slot)] = true;
  TF_ASSIGN(SlotLease slots, SlotLease::take(state.lowered.slots, written));
  for (size_t i = 0; i < state.lowered.slots.size(); ++i) {
    request.params.push_back(slots.storage(i));
    request.parents.push_back(slots.parent(i));
  }
  for (size_t i = 0; i < state.lowered.tokens.size(); ++i) {
    request.params.emplace_back();
    request.parents.emplace_back();
  }
  if (counter != nullptr) {
    request.params.push_back(*counter);
    request.parents.emplace_back();
  }
  bool started = false;
  request.started = &started;
  ++trace::eager().inside;
  auto outcome = guarded([&] {
    return repeats < 0 ? Executor::instance().run(request)
                       : Executor::instance().run_repeated(request, repeats);
  });
  --trace::eager().inside;
  const size_t outputs = state.outputs;
  if (!outcome.ok()) {
    const bool consistent = outcome.status().code() == ErrorCode::kCancelled;
    for (size_t k = 0; k < state.lowered.slot_results.size() && started; ++k) {
      const auto i = static_cast<size_t>(state.lowered.slot_results[k]);
      if (consistent) {
        slots.publish(i, nullptr, 0);
      } else {
        slots.lose(i, outcome.status());
      }
    }
    return outcome.status();
  }
  for (size_t k = 0; k < state.lowered.slot_results.size(); ++k) {
    slots.publish(static_cast<size_t>(state.lowered.slot_results[k]), outcome->run,
                  static_cast<int32_t>(outputs + k));
  }
  Tensors results;
  auto give = [&](int32_t index, ValueType type) {
    const Storage& storage = outcome->results[static_cast<size_t>(index)];
    trace::CellPtr cell = trace::make_cell(std::move(type), storage.buffer->device(), 0);
    engine.publish(cell, std::make_shared<DevicePayload>(storage, outcome->run, index));
    results.emplace_back(std::move(cell));
  };
  for (int32_t index : request.collected) {
    give(index, joined(outcome->types[static_cast<size_t>(index)], repeats));
  }
  if (!request.collected.empty()) return results;
  for (size_t i = 0; i < outputs; ++i) give(static_cast<int32_t>(i), outcome->types[i]);
  return results;
}

Function::State& Function::state() const {
  if (!state_) {
    error(ErrorCode::kBadUsage, "an undefined function was used; trace one first").throw_if_error();
  }
  return *state_;
}

Tensors Function::operator()(const Tensors& args) const {
  State& state = this->state();
  check_count(state, args.size()).throw_if_error();
  for (const Tensor& arg : args) {
    if (!arg.defined()) {
      error(ErrorCode::kBadAttribute, "an argument of '", state.lowered.graph->name,
            "' is undefined")
          .throw_if_error();
    }
  }
  if (trace::Scope::current() != nullptr) {
    return guarded([&] { return splice_call(state.lowered, args); }).value();
  }
  ProgramPtr program = state.compiled().value();
  RunRequest request;
  for (size_t i = 0; i < args.size(); ++i) {
    const Param& param = state.lowered.graph->params[i];
    ValueType type;
    add_operand(args[i].cell(), param.device, &request, &type).throw_if_error();
    match_argument(param, type, i, state.lowered.graph->name, &request.env).throw_if_error();
  }
  return run_function(state, program, std::move(request), nullptr, -1).value();
}

std::string Function::graph_text() const {
  return tracefire::print(OpTable::instance(), *state().lowered.graph, PrintOptions{});
}

std::string Function::program_text() const { return state().compiled().value()->str(); }

std::vector<Variable> Function::variables() const {
  std::vector<Variable> out;
  for (const trace::SlotPtr& slot : state().lowered.slots) out.push_back(variable_of(slot));
  return out;
}

std::vector<Variable> Function::assigned() const {
  const trace::Lowered& lowered = state().lowered;
  std::vector<Variable> out;
  for (int32_t slot : lowered.slot_results) {
    out.push_back(variable_of(lowered.slots[static_cast<size_t>(slot)]));
  }
  return out;
}

bool Function::can_fail() const { return has_effects() || checks_data(*state().lowered.graph); }

bool Function::has_effects() const { return !state().lowered.tokens.empty(); }

int Function::parameters() const { return static_cast<int>(state().parameters); }
int Function::outputs() const { return static_cast<int>(state().outputs); }

struct FunctionTrace::Impl {
  trace::Scope scope;
  std::unique_ptr<trace::ScopeGuard> guard;
  explicit Impl(std::string name)
      : scope(trace::ScopeKind::kFunction, std::move(name)),
        guard(std::make_unique<trace::ScopeGuard>(&scope)) {}
};

FunctionTrace::FunctionTrace(std::string name) : impl_(std::make_unique<Impl>(std::move(name))) {}
FunctionTrace::~FunctionTrace() { abandon(); }

void FunctionTrace::abandon() {
  if (impl_) impl_->guard.reset();
}

Tensor FunctionTrace::parameter(DType dtype, const Shape& shape, const std::string& name) {
  if (!impl_->guard) trace_ended(impl_->scope.name()).throw_if_error();
  check_parameter(impl_->scope.name(), dtype, shape).throw_if_error();
  return Tensor(impl_->scope.parameter({dtype, shape}, name, Engine::instance().default_device()));
}

Function FunctionTrace::finish(const Tensors& outputs) {
  if (!impl_->guard) trace_ended(impl_->scope.name()).throw_if_error();
  std::vector<trace::CellPtr> cells;
  for (const Tensor& output : outputs) {
    if (!output.defined()) {
      error(ErrorCode::kBadAttribute, "'", impl_->scope.name(), "' returns an undefined tensor")
          .throw_if_error();
    }
    cells.push_back(impl_->scope.import(output.cell()).value());
  }
  impl_->guard.reset();
  auto state = std::make_shared<Function::State>();
  state->lowered = trace::lower(impl_->scope, cells, nullptr).value();
  state->parameters = impl_->scope.parameters().size();
  state->outputs = outputs.size();
  return Function(std::move(state));
}

Function trace_function(const std::string& name, const std::vector<TensorSpec>& parameters,
                        const std::function<Tensors(const Tensors&)>& body) {
  if (!body) {
    error(ErrorCode::kBadAttribute, "'", name, "' was to be traced from an empty function")
        .throw_if_error();
  }
  FunctionTrace trace(name);
  Tensors params;
  for (const TensorSpec& spec : parameters)
    params.push_back(trace.parameter(spec.dtype, spec.shape));
  return trace.finish(body(params));
}

struct InitScope::Impl {
  trace::ScopeGuard guard{nullptr};
};
InitScope::InitScope() : impl_(std::make_unique<Impl>()) {}
InitScope::~InitScope() = default;

struct AbstractScope::Impl {
  trace::Scope scope{trace::ScopeKind::kAbstract, "abstract"};
  trace::ScopeGuard guard{&scope};
};
AbstractScope::AbstractScope() : impl_(std::make_unique<Impl>()) {}
AbstractScope::~AbstractScope() = default;
Tensor AbstractScope::parameter(DType dtype, const Shape& shape) {
  check_parameter("abstract", dtype, shape).throw_if_error();
  return Tensor(impl_->scope.parameter({dtype, shape}, "", Engine::instance().default_device()));
}

}  // namespace tracefire
