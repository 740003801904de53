// SPDX-License-Identifier: Apache-2.0
#include "core/ops/math.h"

#include <algorithm>

#include "core/ops/infer.h"

namespace tracefire {

Value Math::op(const char* name, std::vector<Value> inputs, Attrs attrs) {
  for (Value value : inputs) {
    if (!value.valid()) return {};
  }
  return b_.op(name, std::move(inputs), std::move(attrs));
}

Shape Math::shape(Value value) const { return value.valid() ? b_.shape(value) : Shape(); }

DType Math::dtype(Value value) const { return value.valid() ? b_.dtype(value) : DType::kInvalid; }

Value Math::cast(Value x, DType dtype) {
  if (!x.valid() || this->dtype(x) == dtype) return x;
  return op("cast", {x}, {{"dtype", dtype}});
}

Value Math::widen(Value x) {
  return x.valid() && dtype_size(dtype(x)) < 4 ? cast(x, DType::kI32) : x;
}

Value Math::scalar(double value, Value like) {
  return like.valid() ? b_.scalar(value, dtype(like)) : Value{};
}

Value Math::reshape(Value x, const Shape& shape) {
  if (!x.valid() || this->shape(x) == shape) return x;
  return op("reshape", {x}, {{"shape", shape}});
}

Value Math::broadcast_to(Value x, const Shape& shape) {
  if (!x.valid() || this->shape(x) == shape) return x;
  return op("broadcast_to", {x}, {{"shape", shape}});
}

Value Math::zeros_like(Value like) {
  return like.valid() ? zeros(dtype(like), shape(like)) : Value{};
}

Value Math::zeros(DType dtype, const Shape& shape) {
  return op("constant", {},
            {{"dtype", dtype}, {"shape", shape}, {"bytes", std::string(dtype_size(dtype), '\0')}});
}

Value Math::sum(Value x, const std::vector<int64_t>& axes, bool keepdims) {
  if (axes.empty()) return x;
  return op("reduce_sum", {x}, {{"axes", axes}, {"keepdims", keepdims}});
}

Value Math::max(Value x, const std::vector<int64_t>& axes, bool keepdims) {
  return op("reduce_max", {x}, {{"axes", axes}, {"keepdims", keepdims}});
}

Value Math::extent(const Shape& shape, DType dtype) {
  const Dim elements = shape.elements();
  if (elements.is_constant()) return b_.scalar(static_cast<double>(elements.value()), dtype);
  return op("extent", {}, {{"shape", shape}, {"dtype", dtype}});
}

Value Math::iota(DType dtype, const Shape& shape, int axis) {
  return op("iota", {}, {{"dtype", dtype}, {"shape", shape}, {"axis", int64_t{axis}}});
}

Value Math::shift_along(Value x, int axis, int64_t step, Value value) {
  Shape low = Shape::of(std::vector<int64_t>(static_cast<size_t>(shape(x).rank()), 0)), high = low;
  low[axis] = step;
  high[axis] = -step;
  return op("pad", {x, value}, {{"low", low}, {"high", high}});
}

Value Math::unbroadcast(Value grad, const Shape& to) {
  if (!grad.valid()) return {};
  const Shape from = shape(grad);
  if (from == to) return grad;
  std::vector<int64_t> axes;
  const int lead = from.rank() - to.rank();
  for (int i = 0; i < from.rank(); ++i) {
    const bool repeated = i < lead || (to[i - lead] == Dim(1) && from[i] != Dim(1));
    if (repeated) axes.push_back(i);
  }
  return reshape(sum(grad, axes), to);
}

Value Math::restore_axes(Value reduced, const Shape& full, const std::vector<int64_t>& axes) {
  Shape kept = full;
  for (int64_t axis : axes) kept[static_cast<int>(axis)] = 1;
  return reshape(reduced, kept);
}

int doublings(Dim size) {
  int rounds = 0;
  for (int64_t length = 1; length < size.bound() && rounds < 40; length *= 2) ++rounds;
  return rounds;
}

DType wide_type(DType dtype) {
  return is_floating(dtype) && dtype_size(dtype) < 4 ? DType::kF32 : dtype;
}

}  // namespace tracefire
