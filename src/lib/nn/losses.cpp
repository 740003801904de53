// SPDX-License-Identifier: Apache-2.0
// The losses that come with the library. Formulas and the order of rounding are those of
// keras.losses, so that histories agree.
#include "core/base/status.h"
#include "lib/nn/checks.h"
#include "lib/nn/values.h"
#include "tracefire/nn.h"

namespace tracefire::nn {
namespace {

constexpr double kEpsilon = 1e-7;  // keras.config.epsilon()

int64_t last_axis(const Tensor& x) { return x.rank() - 1; }

/// log of probabilities, scaled to sum to 1 and kept away from 0 and 1.
Tensor log_probabilities(const Tensor& scores, bool from_logits) {
  const int64_t last = last_axis(scores);
  if (from_logits) return log_softmax(scores, last);
  const Tensor p = div(scores, reduce_sum(scores, {last}, true));
  const Tensor low = scalar_like(kEpsilon, scores), high = scalar_like(1 - kEpsilon, scores);
  return log(minimum(maximum(p, low), high));
}

/// y_true with an axis of size 1 more at its end where y_pred has one more.
Tensor with_last_axis(const Tensor& y_true, const Tensor& y_pred) {
  if (y_true.rank() + 1 != y_pred.rank()) return y_true;
  std::vector<Dim> dims = y_true.shape().dims();
  dims.emplace_back(1);
  return reshape(y_true, Shape(std::move(dims)));
}

void check_same_shape(const char* who, const Tensor& y_true, const Shape& y_pred) {
  Shape wanted = y_pred;
  if (wanted.rank() > 0) wanted[0] = y_true.rank() > 0 ? y_true.shape()[0] : Dim(0);
  if (y_true.shape() != wanted) {
    error(ErrorCode::kShapeMismatch, who, ": y is ", y_true.shape().str(),
          " and the model's result ", y_pred.str(), "; they must agree but for the rows")
        .throw_if_error();
  }
  if (!is_floating(y_true.dtype())) {
    error(ErrorCode::kDTypeMismatch, who, ": y is ", dtype_name(y_true.dtype()),
          "; it needs floating-point targets. Cast y first")
        .throw_if_error();
  }
}

}  // namespace

Loss::~Loss() = default;

Tensor Loss::operator()(const Tensor& y_true, const Tensor& y_pred) const {
  const Tensor values = call(y_true, y_pred);
  return reduce_mean(values, all_axes(values));
}

void Loss::check(const Tensor&, const Shape&) const {}

Tensor labels_of_rows(const Tensor& y_true, const Tensor& y_pred) {
  Tensor labels = y_true;
  if (labels.rank() == y_pred.rank() && labels.rank() > 0 &&
      labels.shape()[labels.rank() - 1] == Dim(1)) {
    std::vector<Dim> dims(labels.shape().begin(), labels.shape().end() - 1);
    labels = reshape(labels, Shape(std::move(dims)));
  }
  return labels;
}

Tensor SparseCategoricalCrossentropy::call(const Tensor& y_true, const Tensor& y_pred) const {
  const Tensor labels = labels_of_rows(y_true, y_pred);
  if (options_.from_logits) return softmax_cross_entropy(y_pred, labels);
  const Dim classes = y_pred.shape()[y_pred.rank() - 1];
  if (!classes.is_constant()) {
    error(ErrorCode::kSymbolUnbound, "predictions are ", y_pred.shape().str(),
          "; their number of classes must be fixed")
        .throw_if_error();
  }
  // A label without a class would count as a loss of zero.
  const Tensor checked = check_range(labels, Shape{classes}, "label");
  const int64_t last = last_axis(y_pred);
  const Tensor hot = one_hot(checked, classes.value(), last, y_pred.dtype());
  return neg(reduce_sum(mul(hot, log_probabilities(y_pred, false)), {last}));
}

void SparseCategoricalCrossentropy::check(const Tensor& y_true, const Shape& y_pred) const {
  const char* who = "SparseCategoricalCrossentropy";
  const bool column = y_true.rank() == y_pred.rank() && y_true.rank() > 0 &&
                      y_true.shape()[y_true.rank() - 1] == Dim(1);
  bool fits = y_pred.rank() >= 2 && y_pred[y_pred.rank() - 1].is_constant() &&
              y_true.rank() - (column ? 1 : 0) == y_pred.rank() - 1;
  for (int axis = 1; fits && axis + 1 < y_pred.rank(); ++axis) {
    fits = y_true.shape()[axis] == y_pred[axis];
  }
  if (!fits) {
    error(ErrorCode::kShapeMismatch, who, ": labels are ", y_true.shape().str(),
          " and the model's result ", y_pred.str(),
          "; labels have the result's shape without the last axis, which counts the classes")
        .throw_if_error();
  }
  if (!is_integer(y_true.dtype())) {
    error(ErrorCode::kDTypeMismatch, who, ": labels are ", dtype_name(y_true.dtype()),
          "; they must be whole numbers, such as int32. Cast them, or use CategoricalCrossentropy "
          "for one target a class")
        .throw_if_error();
  }
  check_labels(y_true, y_pred[y_pred.rank() - 1].value());
}

Tensor CategoricalCrossentropy::call(const Tensor& y_true, const Tensor& y_pred) const {
  const Tensor target = as_dtype(y_true, y_pred.dtype());
  const Tensor log_p = log_probabilities(y_pred, options_.from_logits);
  return neg(reduce_sum(mul(target, log_p), {last_axis(y_pred)}));
}

void CategoricalCrossentropy::check(const Tensor& y_true, const Shape& y_pred) const {
  check_same_shape("CategoricalCrossentropy", y_true, y_pred);
}

Tensor MeanSquaredError::call(const Tensor& y_true, const Tensor& y_pred) const {
  const Tensor target = with_last_axis(as_dtype(y_true, y_pred.dtype()), y_pred);
  return reduce_mean(square(sub(y_pred, target)), {last_axis(y_pred)});
}

void MeanSquaredError::check(const Tensor& y_true, const Shape& y_pred) const {
  if (y_true.rank() + 1 == y_pred.rank() && y_pred[y_pred.rank() - 1] == Dim(1)) {
    check_same_shape("MeanSquaredError", y_true,
                     Shape(std::vector<Dim>(y_pred.begin(), y_pred.end() - 1)));
    return;
  }
  check_same_shape("MeanSquaredError", y_true, y_pred);
}

}  // namespace tracefire::nn
