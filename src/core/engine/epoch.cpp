// SPDX-License-Identifier: Apache-2.0
// The loop over an epoch: the function's graph behind a gather of rows, with the step counter in
// a slot of its own, so that every step is the same program over the same addresses.
#include "core/base/settings.h"
#include "core/engine/function_state.h"
#include "core/ops/op_table.h"
#include "core/runtime/transfer.h"

namespace tracefire {
namespace {

const ValueType kCounterType{DType::kI32, Shape{}};

std::string name_of(const Function::State& state) { return state.lowered.graph->name + "/epoch"; }

}  // namespace

struct Function::State::Epoch {
  int64_t batch = 0;
  std::vector<ValueType> data;
  ValueType order_type;
  uint64_t generation = 0;
  ProgramPtr program;
  DimEnv env;

  std::mutex mutex;  ///< one stretch at a time: counter and order are shared
  Storage counter;   ///< int32 []: the step that runs next
  Storage order;     ///< at a fixed address, so that captured graphs stay valid
};

namespace {

using Epoch = Function::State::Epoch;

/// Parameters: data arrays, order, captures, slots, tokens, counter. Results: outputs, slots,
/// counter.
Result<GraphPtr> epoch_graph(const Function::State& state, const Epoch& epoch) {
  const Graph& body = *state.lowered.graph;
  Builder b(OpTable::instance(), name_of(state));
  const Device device = Engine::instance().default_device();
  std::vector<Value> data, args;
  for (const ValueType& type : epoch.data)
    data.push_back(b.param(type, "data", ParamKind::kInput, device));
  const Value order = b.param(epoch.order_type, "order", ParamKind::kInput, device);
  std::vector<Value> rest;
  for (size_t p = state.parameters; p < body.params.size(); ++p) {
    const Param& param = body.params[p];
    rest.push_back(b.param(param.type, param.name, param.kind, param.device));
  }
  const Value counter = b.param(kCounterType, "step", ParamKind::kSlot, device);
  const auto counter_param = counter.index;
  const Value size = b.scalar(static_cast<double>(epoch.batch), DType::kI32);
  const Value start = b.op("mul", {counter, size});
  const Value rows =
      b.op("dynamic_slice", {order, start}, {{"axis", int64_t{0}}, {"size", Shape{epoch.batch}}});
  for (Value array : data) args.push_back(b.op("gather", {array, rows}, {{"axis", int64_t{0}}}));
  TF_RETURN_IF_ERROR(b.status());
  args.insert(args.end(), rest.begin(), rest.end());
  TF_ASSIGN(std::vector<Value> results, inline_graph(body, args, &b));
  for (size_t i = 0; i < results.size(); ++i) {
    const int32_t slot = body.results[i].slot;
    // Slot parameters moved: declared parameters gave way to data arrays and order.
    const auto moved =
        static_cast<int32_t>(epoch.data.size() + 1) - static_cast<int32_t>(state.parameters);
    b.result(results[i], slot < 0 ? -1 : slot + moved);
  }
  b.result(b.op("add", {counter, b.scalar(1, DType::kI32)}), counter_param);
  return b.finish();
}

Status check_epoch(const Function::State& state, const Tensors& data, const Tensor& order,
                   int64_t batch, int64_t lo, int64_t hi) {
  const std::string name = name_of(state);
  if (data.size() != state.parameters) {
    return error(ErrorCode::kBadArity, "'", name, "' takes ", state.parameters,
                 " data arrays, got ", data.size());
  }
  if (batch <= 0 || lo < 0 || hi <= lo || hi > std::numeric_limits<int32_t>::max() / batch) {
    return error(ErrorCode::kBadAttribute, "'", name, "' got batch ", batch, ", steps ", lo, " to ",
                 hi, "; a positive batch and 0 <= lo < hi are needed");
  }
  if (!order.defined() || order.dtype() != DType::kI32 || order.rank() != 1 ||
      order.sizes()[0] < hi * batch) {
    return error(ErrorCode::kShapeMismatch, "'", name, "' needs order int32 with at least ",
                 hi * batch, " elements, got ",
                 order.defined() ? order.cell()->type.str() : std::string("nothing"));
  }
  const Graph& body = *state.lowered.graph;
  for (size_t i = 0; i < data.size(); ++i) {
    const ValueType& want = body.params[i].type;
    const ValueType& got = data[i].cell()->type;
    bool fits = got.dtype == want.dtype && got.shape.rank() == want.shape.rank() &&
                got.shape.rank() > 0 && got.shape.is_constant();
    for (int axis = 1; fits && axis < got.shape.rank(); ++axis) {
      fits = want.shape[axis] == got.shape[axis];
    }
    if (fits && want.shape[0].is_constant()) fits = want.shape[0].value() == batch;
    if (!fits) {
      return error(ErrorCode::kShapeMismatch, "'", name, "' with batch ", batch, " feeds ",
                   want.str(), " from data[", i, "], which is ", got.str());
    }
    if (got.shape[0].value() == 0) {
      return error(ErrorCode::kEmptyInput, "'", name, "': data[", i, "] has no rows");
    }
  }
  return {};
}

Result<std::shared_ptr<Epoch>> find_epoch(Function::State& state, const Tensors& data,
                                          const Tensor& order, int64_t batch) {
  std::vector<ValueType> types;
  for (const Tensor& array : data) types.push_back(array.cell()->type);
  const ValueType order_type = order.cell()->type;
  std::lock_guard<std::mutex> lock(state.mutex);
  for (const auto& epoch : state.epochs) {
    if (epoch->batch == batch && epoch->data == types && epoch->order_type == order_type &&
        epoch->generation == settings_generation()) {
      return epoch;
    }
  }
  auto epoch = std::make_shared<Epoch>();
  epoch->batch = batch;
  epoch->data = types;
  epoch->order_type = order_type;
  epoch->generation = settings_generation();
  TF_ASSIGN(GraphPtr graph, epoch_graph(state, *epoch));
  // The batch is a number here: symbols of the function's own parameters take it.
  for (size_t i = 0; i < state.parameters; ++i) {
    const Shape& shape = state.lowered.graph->params[i].type.shape;
    if (shape.rank() > 0 && shape[0].is_symbol()) epoch->env.set(shape[0].symbol(), batch);
  }
  TF_ASSIGN(epoch->program, compile(graph, Engine::instance().compile_options(/*fuse=*/true)));
  const Device device = Engine::instance().default_device();
  TF_ASSIGN(epoch->counter, allocate_storage(device, kCounterType, "step counter"));
  TF_ASSIGN(epoch->order, allocate_storage(device, order_type, "order of rows"));
  state.epochs.push_back(epoch);
  return epoch;
}

}  // namespace

Tensors Function::run_epoch(const Tensors& data, const Tensor& order, int64_t batch, int64_t lo,
                            int64_t hi) const {
  State& state = *state_;
  check_epoch(state, data, order, batch, lo, hi).throw_if_error();
  std::shared_ptr<Epoch> epoch = find_epoch(state, data, order, batch).value();
  std::lock_guard<std::mutex> lock(epoch->mutex);
  Engine& engine = Engine::instance();
  RunRequest request;
  request.env = epoch->env;
  auto add = [&](const Storage& storage, Run::Parent parent) {
    request.params.push_back(storage);
    request.parents.push_back(std::move(parent));
  };
  for (const Tensor& array : data) {
    auto payload = engine.ready(array.cell(), Trigger::kCall).value();
    add(payload->storage, payload->run && payload->run->can_fail()
                              ? Run::Parent{payload->run, payload->result}
                              : Run::Parent{});
  }
  auto order_now = engine.ready(order.cell(), Trigger::kCall).value();
  copy_value(epoch->order_type, order_now->storage, epoch->order).throw_if_error();
  add(epoch->order, {});
  DeviceBackend* backend = Backends::instance().find(epoch->counter.buffer->device()).value();
  const auto first = static_cast<int32_t>(lo);
  backend->copy_in(*backend->stream(0).value(), epoch->counter.data(), &first, sizeof first)
      .throw_if_error();
  return run_function(state, epoch->program, std::move(request), &epoch->counter, hi - lo).value();
}

}  // namespace tracefire
