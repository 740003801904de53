// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/ops/op_row.h"

namespace tracefire {

/// Short names for the nodes that gradients and decompositions are made of. Every function adds
/// nodes to the builder and returns the first result; an invalid operand or a node that does not
/// fit gives an invalid Value, and the builder keeps the first failure.
class Math {
 public:
  explicit Math(Builder& b) : b_(b) {}
  Builder& builder() { return b_; }

  Value op(const char* name, std::vector<Value> inputs, Attrs attrs = {});
  Value neg(Value x) { return op("neg", {x}); }
  Value add(Value x, Value y) { return op("add", {x, y}); }
  Value sub(Value x, Value y) { return op("sub", {x, y}); }
  Value mul(Value x, Value y) { return op("mul", {x, y}); }
  Value div(Value x, Value y) { return op("div", {x, y}); }
  Value square(Value x) { return op("square", {x}); }
  Value equal(Value x, Value y) { return op("equal", {x, y}); }
  Value select(Value cond, Value x, Value y) { return op("select", {cond, x, y}); }
  Value cast(Value x, DType dtype);
  /// Whole numbers of 8 or 16 bits as int32, so that counting beside them does not wrap around.
  Value widen(Value x);

  /// Scalar of the element type of `like`.
  Value scalar(double value, Value like);
  /// x * factor, x + term with a number.
  Value scale(Value x, double factor) { return mul(x, scalar(factor, x)); }
  Value shift(Value x, double term) { return add(x, scalar(term, x)); }

  Value reshape(Value x, const Shape& shape);
  Value broadcast_to(Value x, const Shape& shape);
  /// Zero of the type and shape of `like`.
  Value zeros_like(Value like);
  Value zeros(DType dtype, const Shape& shape);
  Value sum(Value x, const std::vector<int64_t>& axes, bool keepdims = false);
  Value max(Value x, const std::vector<int64_t>& axes, bool keepdims = false);
  /// Product of `shape`'s sizes as a scalar of `dtype`: a constant where it is a number.
  Value extent(const Shape& shape, DType dtype);
  /// 0, 1, 2, … along `axis` of `shape`.
  Value iota(DType dtype, const Shape& shape, int axis);

  /// x moved by `step` places up `axis`, `value` coming in; the size stays.
  Value shift_along(Value x, int axis, int64_t step, Value value);

  /// The gradient of an operand of shape `to` that was broadcast: `grad` summed over what was
  /// repeated.
  Value unbroadcast(Value grad, const Shape& to);
  /// A reduced value with its lost axes (count from 0) put back as size 1, of shape `full` there.
  Value restore_axes(Value reduced, const Shape& full, const std::vector<int64_t>& axes);

  Shape shape(Value value) const;  ///< a copy: adding nodes may move the original
  DType dtype(Value value) const;

 private:
  Builder& b_;
};

/// How often a length is doubled from 1 on until it is at least `size` (its bound, if symbolic).
int doublings(Dim size);

/// `dtype`, but float32 for narrow floating types: what decompositions compute those in.
DType wide_type(DType dtype);

}  // namespace tracefire
