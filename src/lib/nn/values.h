// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tracefire/ops.h"
#include "tracefire/tensor.h"

namespace tracefire::nn {

/// `value` repeated to `shape`; part of the graph where a function is being traced.
Tensor constant(double value, DType dtype, const Shape& shape = {});
/// A scalar of the element type of `like`.
inline Tensor scalar_like(double value, const Tensor& like) {
  return constant(value, like.dtype());
}
/// `x` as `dtype`; itself where it has it.
inline Tensor as_dtype(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : cast(x, dtype);
}

}  // namespace tracefire::nn
