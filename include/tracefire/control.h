// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tracefire/tensor.h"

namespace tracefire {

using Tensors = std::vector<Tensor>;

/// pred [] bool ? then_fn() : else_fn(). Both are traced; their results must agree in number,
/// dtype and shape. Variables may be read and assigned inside.
TRACEFIRE_API Tensors cond(const Tensor& pred, const std::function<Tensors()>& then_fn,
                           const std::function<Tensors()>& else_fn);

/// Repeats body(vars) -> vars while cond(vars) -> [] bool. Dtypes and shapes stay the same.
/// `max_iterations` < 0: no limit; reaching the limit stops the loop.
TRACEFIRE_API Tensors while_loop(const std::function<Tensor(const Tensors&)>& cond,
                                 const std::function<Tensors(const Tensors&)>& body,
                                 const Tensors& vars, int64_t max_iterations = -1);

/// A host array as a host function sees it. Strings: `data` is std::string[].
struct HostArray {
  DType dtype = DType::kInvalid;
  std::vector<int64_t> sizes;
  std::vector<char> bytes;
  std::vector<std::string> strings;
};
/// Throws to report a failure: kHostCallFailed where the results are observed or, where nobody holds
/// any, once by flush() or the next observation on the calling thread.
using HostFunction = std::function<std::vector<HostArray>(const std::vector<HostArray>&)>;

struct TensorSpec {
  DType dtype = DType::kInvalid;
  Shape shape;
};

/// Calls `function` on the host when the graph runs, in program order with other host calls, on a
/// thread of its own with no lock held. Results must match `outputs`.
TRACEFIRE_API Tensors host_call(const HostFunction& function, const Tensors& inputs,
                                const std::vector<TensorSpec>& outputs);

/// Prints `format` with {} replaced by the values, one line to stderr, in program order.
TRACEFIRE_API void print(const std::string& format, const Tensors& values);

}  // namespace tracefire
