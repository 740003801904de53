// SPDX-License-Identifier: Apache-2.0
#include "core/base/status.h"
#include "lib/nn/checks.h"
#include "lib/nn/values.h"
#include "tracefire/function.h"
#include "tracefire/nn.h"

namespace tracefire::nn {

Metric::Metric(std::string name) : name_(std::move(name)) {}
Metric::~Metric() = default;
Metric::Metric(Metric&&) noexcept = default;
Metric& Metric::operator=(Metric&&) noexcept = default;
const std::string& Metric::name() const { return name_; }
const std::vector<Variable>& Metric::variables() const { return variables_; }

Variable Metric::add_variable(const std::string& name, const Shape& shape) {
  const InitScope now;
  variables_.emplace_back(constant(0, DType::kF32, shape), name_ + "/" + name,
                          /*trainable=*/false);
  return variables_.back();
}

void Metric::reset() {
  for (const Variable& variable : variables_) {
    variable.assign(constant(0, variable.dtype(), variable.shape()));
  }
}

MeanMetric::MeanMetric(std::string name)
    : Metric(std::move(name)), total_(add_variable("total")), count_(add_variable("count")) {}

void MeanMetric::update(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor each = as_dtype(values(y_true, y_pred), DType::kF32);
  total_.assign(tracefire::add(total_.read(), reduce_sum(each, all_axes(each))));
  const Dim rows = each.shape().elements();
  const Tensor count = rows.is_constant() ? constant(static_cast<double>(rows.value()), DType::kF32)
                                          : cast(extent(each.shape()), DType::kF32);
  count_.assign(tracefire::add(count_.read(), count));
}

void MeanMetric::add(const Tensor& value, int64_t rows) {
  const Tensor weight = constant(static_cast<double>(rows), DType::kF32);
  total_.assign(tracefire::add(total_.read(), mul(as_dtype(value, DType::kF32), weight)));
  count_.assign(tracefire::add(count_.read(), weight));
}

Tensor MeanMetric::result() const {
  // 0 where nothing was taken in, as Keras has it.
  const Tensor count = count_.read(), one = constant(1, DType::kF32);
  return div(total_.read(), maximum(count, one));
}

Mean::Mean(std::string name, Ref<Loss> loss)
    : MeanMetric(std::move(name)), loss_(std::move(loss)) {}

Tensor Mean::values(const Tensor& y_true, const Tensor& y_pred) const {
  if (!loss_) {
    error(ErrorCode::kBadUsage, "metric '", name(),
          "' was given no loss, so it takes values through add() only")
        .throw_if_error();
  }
  return loss_->call(y_true, y_pred);
}

namespace {

/// f32, 1 where two arrays of whole numbers agree.
Tensor agreement(const Tensor& a, const Tensor& b) { return cast(equal(a, b), DType::kF32); }

}  // namespace

SparseCategoricalAccuracy::SparseCategoricalAccuracy(std::string name)
    : MeanMetric(std::move(name)) {}

Tensor SparseCategoricalAccuracy::values(const Tensor& y_true, const Tensor& y_pred) const {
  const Tensor labels = labels_of_rows(y_true, y_pred);
  return agreement(as_dtype(labels, DType::kI64), argmax(y_pred, -1));
}

CategoricalAccuracy::CategoricalAccuracy(std::string name) : MeanMetric(std::move(name)) {}

Tensor CategoricalAccuracy::values(const Tensor& y_true, const Tensor& y_pred) const {
  return agreement(argmax(y_true, -1), argmax(y_pred, -1));
}

}  // namespace tracefire::nn
