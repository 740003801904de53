// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tracefire/apply.h"
#include "tracefire/config.h"
#include "tracefire/control.h"
#include "tracefire/error.h"
#include "tracefire/function.h"
#include "tracefire/grad.h"
#include "tracefire/observe.h"
#include "tracefire/tensor.h"

namespace tracefire::testing {

/// First result of an operation by name.
inline Tensor op(std::string_view name, const Tensors& inputs, const AttrList& attrs = {}) {
  return apply_op(name, inputs, attrs)[0];
}

inline Tensor vec(const std::vector<float>& values) {
  return Tensor::of(values, {static_cast<int64_t>(values.size())});
}

inline Tensor sum(const Tensor& x) {
  std::vector<int64_t> axes;
  for (int axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
  return op("reduce_sum", {x}, {{"axes", axes}, {"keepdims", false}});
}

/// Code of the error that `work` throws, or 0; its text goes to `text`.
template <class Work>
int error_of(Work work, std::string* text = nullptr) {
  try {
    work();
  } catch (const Error& error) {
    if (text != nullptr) *text = error.what();
    return error.number();
  }
  return 0;
}

}  // namespace tracefire::testing
