// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "tracefire/tensor.h"

namespace tracefire {

/// pred [] bool ? then_fn() : else_fn(). Both are traced; their results must agree in number,
/// dtype and shape (kShapeMismatch). Variables may be read and assigned inside. Errors:
/// kBadAttribute for a `pred` of another type and for an empty function.
TRACEFIRE_API Tensors cond(const Tensor& pred, const std::function<Tensors()>& then_fn,
                           const std::function<Tensors()>& else_fn);

/// Repeats body(vars) -> vars while cond(vars) -> [] bool. Dtypes and shapes stay the same. Both may
/// read and assign variables. `max_iterations` < 0: no limit; reaching the limit stops the loop.
/// Under a gradient a limit is needed. Throws kShapeMismatch where a variable leaves the body with
/// another type, kBadAttribute for an empty function.
TRACEFIRE_API Tensors while_loop(const std::function<Tensor(const Tensors&)>& cond,
                                 const std::function<Tensors(const Tensors&)>& body,
                                 const Tensors& vars, int64_t max_iterations = -1);

/// A host array as a host function takes and gives it, row-major.
struct HostArray {
  DType dtype = DType::kInvalid;
  std::vector<int64_t> sizes;
  std::vector<char> bytes;           ///< elements of any dtype but strings
  std::vector<std::string> strings;  ///< elements of a string array

  /// An array of a C++ type's dtype.
  template <class T>
  static HostArray of(const std::vector<T>& values, const std::vector<int64_t>& sizes) {
    HostArray array{DTypeOf<T>::value, sizes, {}, {}};
    if constexpr (std::is_same_v<T, bool>) {  // whose vector holds bits
      array.bytes.assign(values.begin(), values.end());
    } else {
      array.bytes.resize(values.size() * sizeof(T));
      if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
    }
    return array;
  }
  /// A copy of the elements, whose dtype must be T's (kDTypeMismatch).
  template <class T>
  std::vector<T> values() const {
    expect_dtype(DTypeOf<T>::value);
    if constexpr (std::is_same_v<T, bool>) {
      return std::vector<bool>(bytes.begin(), bytes.end());
    } else {
      std::vector<T> out(bytes.size() / sizeof(T));
      if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
      return out;
    }
  }

 private:
  TRACEFIRE_API void expect_dtype(DType wanted) const;
};
/// Throws to report a failure: kHostCallFailed where the results are observed or, where nobody holds
/// any, once by flush() or the next observation on the calling thread.
using HostFunction = std::function<std::vector<HostArray>(const std::vector<HostArray>&)>;

/// Calls `function` on the host when the graph runs, in program order with other host calls, on a
/// thread of its own with no lock held. Results must match `outputs` (kHostCallFailed). Errors at
/// the call: kBadAttribute for an empty function.
TRACEFIRE_API Tensors host_call(const HostFunction& function, const Tensors& inputs,
                                const std::vector<TensorSpec>& outputs);

/// Prints `format` with {} replaced by the values, one line to stderr, in program order.
TRACEFIRE_API void print(const std::string& format, const Tensors& values);

}  // namespace tracefire
