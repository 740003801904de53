// SPDX-License-Identifier: Apache-2.0
#include "lib/nn/trainer.h"

#include <cstring>
#include <numeric>

#include "core/base/status.h"
#include "lib/nn/checks.h"
#include "lib/nn/recovery.h"
#include "lib/nn/values.h"
#include "tracefire/config.h"
#include "tracefire/profiler.h"

namespace tracefire::nn {
namespace {

constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();
constexpr size_t kMostSteps = 32;  ///< traced steps a model keeps: the latest types of batch

TensorSpec with_rows(const Tensor& array, int64_t rows) {
  Shape shape = array.shape();
  shape[0] = Dim(rows);
  return {array.dtype(), std::move(shape)};
}

bool same(const std::vector<TensorSpec>& a, const std::vector<TensorSpec>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.dtype == y.dtype && x.shape == y.shape;
  });
}

std::vector<const trace::Slot*> slots_of(const std::vector<Variable>& variables) {
  std::vector<const trace::Slot*> slots;
  for (const Variable& variable : variables) slots.push_back(variable.slot().get());
  return slots;
}

const char* name_of(StepKind kind) {
  switch (kind) {
    case StepKind::kTrain:
      return "train_step";
    case StepKind::kTest:
      return "test_step";
    case StepKind::kPredict:
      break;
  }
  return "predict_step";
}

void check_shapes(const data::Dataset& data, bool needs_truth) {
  const int64_t rows = data.rows();
  if (rows == 0) {
    error(ErrorCode::kEmptyInput, "x has no rows; at least one is needed. Its shape is ",
          data.x.shape().str())
        .throw_if_error();
  }
  if (rows > kMostRows) {
    error(ErrorCode::kBadUsage, "x has ", rows, " rows; at most ", kMostRows,
          " can be trained on at once. Train on parts of them, one after the other")
        .throw_if_error();
  }
  if (!data.y.defined()) {
    if (needs_truth) {
      error(ErrorCode::kBadUsage, "y is missing; give one row of it for each row of x")
          .throw_if_error();
    }
    return;
  }
  const std::vector<int64_t> sizes = data.y.sizes();
  if (sizes.empty() || sizes[0] != rows) {
    error(ErrorCode::kShapeMismatch, "x is ", data.x.shape().str(), " and y ", data.y.shape().str(),
          "; both need the same number of rows")
        .throw_if_error();
  }
}

Tensor rows_from(int64_t first, int64_t count) {
  std::vector<int32_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), static_cast<int32_t>(first));
  return Tensor::of(rows, {count});
}

}  // namespace

Trainer::Trainer(Model& model, const data::Dataset& data, int64_t batch_size, bool check_data,
                 bool needs_truth)
    : model_(model) {
  if (batch_size < 1) {
    error(ErrorCode::kBadUsage, "batch_size is ", batch_size, "; it must be at least 1")
        .throw_if_error();
  }
  check_shapes(data, needs_truth);
  rows_ = data.rows();
  batch_ = std::min(batch_size, rows_);
  full_ = rows_ / batch_;
  rest_ = rows_ % batch_;
  const Device device = default_device();
  profiler::Input feed("data to the device");
  data_.x = data.x.to(device);
  if (data.y.defined()) data_.y = data.y.to(device);
  feed.stop();
  if (check_data) check_finite_values(data_.x, "x");
  // Also creates the variables.
  const TensorSpec batch = with_rows(data_.x, batch_);
  const Shape predictions = model_.output_shape(batch.shape, batch.dtype);
  if (check_data && needs_truth) check_truth(predictions);
}

void Trainer::check_truth(const Shape& predictions) const {
  check_finite_values(data_.y, "y");
  if (const Ref<Loss>& loss = model_.training().compiled.loss) loss->check(data_.y, predictions);
}

Tensors Trainer::arrays(StepKind kind) const {
  if (kind == StepKind::kPredict || !data_.y.defined()) return {data_.x};
  return {data_.x, data_.y};
}

const Tensor& Trainer::rows_in_order(bool rest) {
  Tensor& rows = rest ? rest_in_order_ : in_order_;
  if (!rows.defined()) {
    rows = rest ? rows_from(full_ * batch_, rest_) : rows_from(0, full_ * batch_);
  }
  return rows;
}

TracedStep Trainer::trace(StepKind kind, std::vector<TensorSpec> batch) {
  TracedStep step{kind, std::move(batch), slots_of(model_.trainable_variables()), {}, {}};
  FunctionTrace trace(name_of(kind));
  const Tensor x = trace.parameter(step.batch[0].dtype, step.batch[0].shape, "x");
  Tensor y;
  if (step.batch.size() > 1) y = trace.parameter(step.batch[1].dtype, step.batch[1].shape, "y");
  if (kind == StepKind::kPredict) {
    step.function = trace.finish({model_.predict_step(x)});
    return step;
  }
  const NamedTensors figures =
      kind == StepKind::kTrain ? model_.train_step({x, y}) : model_.test_step({x, y});
  Tensors outputs;
  for (const auto& [name, value] : figures) {
    if (!value.defined() || value.rank() != 0) {
      error(ErrorCode::kShapeMismatch, name_of(kind), " gives '", name, "' as ",
            value.defined() ? value.shape().str() : std::string("nothing"),
            "; figures of a step are scalars")
          .throw_if_error();
    }
    step.names.push_back(name);
    outputs.push_back(value);
  }
  if (outputs.empty()) {
    error(ErrorCode::kBadUsage, name_of(kind), " gives no figure; return at least the loss")
        .throw_if_error();
  }
  step.function = trace.finish(outputs);
  return step;
}

const TracedStep& Trainer::step(StepKind kind, int64_t rows) {
  std::vector<TensorSpec> batch;
  for (const Tensor& array : arrays(kind)) batch.push_back(with_rows(array, rows));
  const auto trainable = slots_of(model_.trainable_variables());
  std::vector<TracedStep>& steps = model_.training().steps;
  for (const TracedStep& step : steps) {
    if (step.kind == kind && same(step.batch, batch) && step.trainable == trainable) return step;
  }
  TracedStep made = trace(kind, std::move(batch));
  if (steps.size() >= kMostSteps) steps.erase(steps.begin());
  steps.push_back(std::move(made));
  return steps.back();
}

const std::vector<std::string>& Trainer::names(StepKind kind) { return step(kind, batch_).names; }

Order Trainer::order_of(std::vector<int32_t> rows) const {
  const profiler::Input feed("order of rows");
  Order order;
  order.full = Tensor::from_host(rows.data(), DType::kI32, {full_ * batch_});
  if (rest_ > 0) order.rest = Tensor::from_host(rows.data() + full_ * batch_, DType::kI32, {rest_});
  order.rows = std::move(rows);
  return order;
}

std::vector<Function> Trainer::functions(StepKind kind) {
  std::vector<Function> all{step(kind, batch_).function};
  if (rest_ > 0) all.push_back(step(kind, rest_).function);
  return all;
}

Tensors Trainer::run(StepKind kind, const Order& order, int64_t lo, int64_t hi) {
  const Tensors data = arrays(kind);
  const bool as_they_lie = order.rows.empty();
  Tensors results;
  if (lo < full_) {
    const Tensor& rows = as_they_lie ? rows_in_order(false) : order.full;
    results = step(kind, batch_).function.run_epoch(data, rows, batch_, lo, std::min(hi, full_));
  }
  if (hi > full_) {
    const Tensor& rows = as_they_lie ? rows_in_order(true) : order.rest;
    results = step(kind, rest_).function.run_epoch(data, rows, rest_, 0, 1);
  }
  return results;
}

std::string Trainer::place(const Order& order, int64_t step) const {
  const int64_t first = step * batch_, count = rows_in(step);
  std::string text = concat_text("batch ", step, count == 1 ? ", row " : ", rows ");
  if (order.rows.empty()) {
    text += std::to_string(first);
    return count == 1 ? text : text + concat_text(" to ", first + count - 1);
  }
  constexpr int64_t kMostNamed = 16;
  for (int64_t i = 0; i < std::min(count, kMostNamed); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(order.rows[static_cast<size_t>(first + i)]);
  }
  return count > kMostNamed ? text + concat_text(" and ", count - kMostNamed, " more") : text;
}

Report Trainer::test() {
  model_.reset_metrics();
  Tensors results;
  Report report;
  const Steps steps{functions(StepKind::kTest), this->steps(),
                    [&](int64_t lo, int64_t hi) { results = run(StepKind::kTest, {}, lo, hi); },
                    [&](int64_t step) { return place({}, step); }};
  run_steps(steps, [&] { report = read_reports(names(StepKind::kTest), {results})[0]; });
  return report;
}

Tensor Trainer::predict() {
  Tensors parts;
  const auto predict_steps = [&](int64_t lo, int64_t hi) {
    parts.resize(static_cast<size_t>(lo));
    for (int64_t i = lo; i < hi; ++i) {
      parts.push_back(run(StepKind::kPredict, {}, i, i + 1)[0]);
    }
  };
  run_steps({functions(StepKind::kPredict), steps(), predict_steps,
             [&](int64_t step) { return place({}, step); }},
            [] {});
  return parts.size() == 1 ? parts[0] : concat(parts, 0);
}

std::vector<Report> read_reports(const std::vector<std::string>& names,
                                 const std::vector<Tensors>& groups) {
  Tensors all;
  for (const Tensors& group : groups) {
    for (const Tensor& value : group) all.push_back(as_dtype(value, DType::kF32));
  }
  const std::vector<HostValue> values = fetch(all);
  std::vector<Report> reports(groups.size());
  size_t next = 0;
  for (Report& report : reports) {
    for (const std::string& name : names) {
      float number;
      std::memcpy(&number, values[next++].data, sizeof number);
      report.set(name, static_cast<double>(number));
    }
  }
  return reports;
}

}  // namespace tracefire::nn
