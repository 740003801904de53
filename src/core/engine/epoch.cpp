// SPDX-License-Identifier: Apache-2.0
// The loop over an epoch: the function's graph behind a gather of rows, with the step counter in
// a slot of its own, so that every step is the same program over the same addresses.
#include "core/base/guard.h"
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
  bool ordered = false;         ///< rows are taken in a given order, not as they lie
  std::vector<ValueType> data;  ///< numbers of rows are symbols
  ValueType order_type;
  uint64_t generation = 0;
  HeldProgram program;
  DimEnv env;

  std::mutex mutex;  ///< one stretch at a time: counter and order are shared
  Storage counter;   ///< int32 []: the step that runs next
  Storage order;     ///< at a fixed address, so that captured graphs stay valid
  size_t order_bytes = 0;
};

namespace {

using Epoch = Function::State::Epoch;

/// Parameters: data arrays, order where there is one, captures, slots, tokens, counter. Results:
/// outputs, slots, counter.
Result<GraphPtr> epoch_graph(const Function::State& state, const Epoch& epoch) {
  const Graph& body = *state.lowered.graph;
  Builder b(OpTable::instance(), name_of(state));
  const Device device = Engine::instance().default_device();
  std::vector<Value> data, args;
  for (const ValueType& type : epoch.data)
    data.push_back(b.param(type, "data", ParamKind::kInput, device));
  Value order;
  if (epoch.ordered) order = b.param(epoch.order_type, "order", ParamKind::kInput, device);
  // Slot parameters move: declared parameters give way to data arrays and order.
  const auto moved =
      static_cast<int32_t>(b.graph().params.size()) - static_cast<int32_t>(state.parameters);
  std::vector<Value> rest;
  for (size_t p = state.parameters; p < body.params.size(); ++p) {
    const Param& param = body.params[p];
    rest.push_back(b.param(param.type, param.name, param.kind, param.device));
  }
  const Value counter = b.param(kCounterType, "step", ParamKind::kSlot, device);
  const Value size = b.scalar(static_cast<double>(epoch.batch), DType::kI32);
  const Value start = b.op("mul", {counter, size});
  const Attrs stretch{{"axis", int64_t{0}}, {"size", Shape{epoch.batch}}};
  if (epoch.ordered) {
    const Value rows = b.op("dynamic_slice", {order, start}, stretch);
    for (Value array : data) args.push_back(b.op("gather", {array, rows}, {{"axis", int64_t{0}}}));
  } else {
    for (Value array : data) args.push_back(b.op("dynamic_slice", {array, start}, stretch));
  }
  TF_RETURN_IF_ERROR(b.status());
  args.insert(args.end(), rest.begin(), rest.end());
  TF_ASSIGN(std::vector<Value> results, inline_graph(body, args, &b));
  for (size_t i = 0; i < results.size(); ++i) {
    const int32_t slot = body.results[i].slot;
    b.result(results[i], slot < 0 ? -1 : slot + moved);
  }
  b.result(b.op("add", {counter, b.scalar(1, DType::kI32)}), counter.index);
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
  if (order.defined() &&
      (order.dtype() != DType::kI32 || order.rank() != 1 || order.sizes()[0] < hi * batch)) {
    return error(ErrorCode::kShapeMismatch, "'", name, "' needs order int32 with at least ",
                 hi * batch, " elements, got ", order.cell()->type.str());
  }
  const Graph& body = *state.lowered.graph;
  for (size_t i = 0; i < data.size(); ++i) {
    if (!data[i].defined()) {
      return error(ErrorCode::kBadAttribute, "'", name, "': data[", i, "] is undefined");
    }
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
    const int64_t rows = got.shape[0].value();
    if (rows == 0) {
      return error(ErrorCode::kEmptyInput, "'", name, "': data[", i, "] has no rows");
    }
    if (!order.defined() && rows < hi * batch) {
      return error(ErrorCode::kShapeMismatch, "'", name, "' needs ", hi * batch,
                   " rows for steps up to ", hi, " of ", batch, " rows, got data[", i, "] with ",
                   rows);
    }
  }
  return {};
}

/// `type` with any number of rows.
ValueType with_any_rows(ValueType type) {
  type.shape[0] = Dim::fresh("rows");
  return type;
}

bool fits(const ValueType& any, const ValueType& type) {
  ValueType same = any;
  same.shape[0] = type.shape[0];
  return same == type;
}

Result<std::shared_ptr<Epoch>> find_epoch(Function::State& state, const Tensors& data, bool ordered,
                                          int64_t batch) {
  std::lock_guard<std::mutex> lock(state.mutex);
  const uint64_t now = Engine::instance().choices_generation();
  std::erase_if(state.epochs, [&](const auto& epoch) { return epoch->generation != now; });
  for (const auto& epoch : state.epochs) {
    bool same = epoch->batch == batch && epoch->ordered == ordered;
    for (size_t i = 0; same && i < data.size(); ++i) {
      same = fits(epoch->data[i], data[i].cell()->type);
    }
    if (same) return epoch;
  }
  auto epoch = std::make_shared<Epoch>();
  epoch->batch = batch;
  epoch->ordered = ordered;
  for (const Tensor& array : data) epoch->data.push_back(with_any_rows(array.cell()->type));
  epoch->order_type = with_any_rows({DType::kI32, Shape{0}});
  epoch->generation = now;
  TF_ASSIGN(GraphPtr graph, epoch_graph(state, *epoch));
  // The batch is a number here: symbols of the function's own parameters take it.
  for (size_t i = 0; i < state.parameters; ++i) {
    const Shape& shape = state.lowered.graph->params[i].type.shape;
    if (shape.rank() > 0 && shape[0].is_symbol()) epoch->env.set(shape[0].symbol(), batch);
  }
  TF_ASSIGN(ProgramPtr made,
            guarded([&] { return compile(graph, Engine::instance().compile_options()); }));
  epoch->program = HeldProgram(std::move(made));
  TF_ASSIGN(epoch->counter,
            allocate_storage(Engine::instance().default_device(), kCounterType, "step counter"));
  state.epochs.push_back(epoch);
  return epoch;
}

/// Brings the order to its fixed address, which only moves when a longer one comes. Gives the run
/// that made it.
Result<Run::Parent> place_order(Epoch* epoch, const trace::CellPtr& order) {
  TF_ASSIGN(auto now, Engine::instance().ready(order, Trigger::kCall));
  const size_t bytes = storage_bytes(order->type);
  if (bytes > epoch->order_bytes) {
    TF_ASSIGN(epoch->order,
              allocate_storage(Engine::instance().default_device(), order->type, "order of rows"));
    epoch->order_bytes = bytes;
  }
  TF_RETURN_IF_ERROR(copy_value(order->type, now->storage, epoch->order));
  return parent_of(now);
}

Result<Tensors> run_stretch(Function::State& state, const Tensors& data, const Tensor& order,
                            int64_t batch, int64_t lo, int64_t hi,
                            const std::vector<int32_t>& collected) {
  TF_RETURN_IF_ERROR(check_epoch(state, data, order, batch, lo, hi));
  TF_ASSIGN(std::shared_ptr<Epoch> epoch, find_epoch(state, data, order.defined(), batch));
  std::lock_guard<std::mutex> lock(epoch->mutex);
  const Device device = Engine::instance().default_device();
  RunRequest request;
  request.env = epoch->env;
  request.collected = collected;
  for (size_t i = 0; i < data.size(); ++i) {
    ValueType type;
    TF_RETURN_IF_ERROR(add_operand(data[i].cell(), device, &request, &type));
    request.env.set(epoch->data[i].shape[0].symbol(), type.shape[0].value());
  }
  if (order.defined()) {
    TF_ASSIGN(Run::Parent made_by, place_order(epoch.get(), order.cell()));
    request.env.set(epoch->order_type.shape[0].symbol(), order.sizes()[0]);
    request.params.push_back(epoch->order);
    request.parents.push_back(std::move(made_by));
  }
  DeviceBackend* backend = Backends::instance().find(epoch->counter.buffer->device()).value();
  const auto first = static_cast<int32_t>(lo);
  TF_RETURN_IF_ERROR(
      backend->copy_in(*backend->stream(0).value(), epoch->counter.data(), &first, sizeof first));
  return run_function(state, epoch->program.get(), std::move(request), &epoch->counter, hi - lo);
}

}  // namespace

Tensors Function::run_epoch(const Tensors& data, const Tensor& order, int64_t batch, int64_t lo,
                            int64_t hi) const {
  return run_stretch(state(), data, order, batch, lo, hi, {}).value();
}

Tensors Function::collect_epoch(const Tensors& data, const Tensor& order, int64_t batch, int64_t lo,
                                int64_t hi, const std::vector<int32_t>& wanted) const {
  for (int32_t index : wanted) {
    if (index >= 0 && index < outputs()) continue;
    error(ErrorCode::kBadAttribute, "'", name_of(state()), "' was asked to collect output ", index,
          "; it has ", outputs(), ", numbered from 0")
        .throw_if_error();
  }
  Tensors last = run_stretch(state(), data, order, batch, lo, hi, wanted).value();
  return wanted.empty() ? Tensors() : last;
}

}  // namespace tracefire
