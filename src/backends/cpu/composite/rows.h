// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "backends/cpu/move/numbers.h"
#include "backends/cpu/reduce/reduce_table.h"
#include "backends/cpu/vector/row_functions.h"

namespace tracefire::cpu {

// Softmax and its relatives on one row of f32 or f64; f32 uses vector loops.

inline float row_max(const float* x, int64_t n) {
  float result;
  const ReduceFunctions& fn = reduce_functions(ReduceOp::kMax, RegType::kF32);
  fn.init(&result, 1);
  fn.row(&result, x, n);
  return result;
}
inline double row_max(const double* x, int64_t n) {
  double result;
  const ReduceFunctions& fn = reduce_functions(ReduceOp::kMax, RegType::kF64);
  fn.init(&result, 1);
  fn.row(&result, x, n);
  return result;
}

/// out[i] = e^(x[i] - shift); returns their sum.
inline double exp_sum(float* out, const float* x, float shift, int64_t n) {
  row_functions().exp_shifted(out, x, shift, n);
  double sum = 0;
  reduce_functions(ReduceOp::kSum, RegType::kF32).row(&sum, out, n);
  return sum;
}
inline double exp_sum(double* out, const double* x, double shift, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = std::exp(x[i] - shift);
  double sum = 0;
  reduce_functions(ReduceOp::kSum, RegType::kF64).row(&sum, out, n);
  return sum;
}

inline void row_scale(float* out, const float* x, float factor, float divisor, int64_t n) {
  row_functions().scale(out, x, factor, divisor, n);
}
inline void row_scale(double* out, const double* x, double factor, double divisor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * factor / divisor;
}

/// out[i] = (x[i] - shift) - by: two roundings, as the logarithm of a softmax is defined.
inline void row_subtract(float* out, const float* x, float shift, float by, int64_t n) {
  row_functions().subtract(out, x, shift, n);
  row_functions().subtract(out, out, by, n);
}
inline void row_subtract(double* out, const double* x, double shift, double by, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - shift) - by;
}

/// A row of scratch memory of this thread, at least n long.
template <class C>
std::vector<C>& scratch_row(int64_t n) {
  thread_local std::vector<C> row;
  if (row.size() < static_cast<size_t>(n)) row.resize(static_cast<size_t>(n));
  return row;
}

/// Rows of an array of any floating type, in f32 or f64: where memory and computation agree and
/// elements are adjacent, the array itself, else a copy.
template <class T>
class RowBuffer {
 public:
  using C = Computed<T>;
  explicit RowBuffer(int64_t n) : n_(n) {}

  const C* read(const T* x, int64_t stride) {
    if constexpr (std::is_same_v<T, C>) {
      if (stride == 1) return x;
    }
    C* copy = target(nullptr, 0);
    if constexpr (!std::is_same_v<T, C>) {
      if (stride == 1) {
        tile_table().loads[static_cast<size_t>(DTypeOf<T>::value)](copy, x, nullptr, nullptr, n_);
        return copy;
      }
    }
    for (int64_t i = 0; i < n_; ++i) copy[i] = number(x[i * stride]);
    return copy;
  }
  /// Where to compute a row that ends in `y`.
  C* target(T* y, int64_t stride) {
    if constexpr (std::is_same_v<T, C>) {
      if (y != nullptr && stride == 1) return y;
    }
    if (copy_.empty()) copy_.resize(static_cast<size_t>(n_));
    return copy_.data();
  }
  void write(T* y, int64_t stride, const C* row) {
    if constexpr (std::is_same_v<T, C>) {
      if (row == y) return;
    } else if (stride == 1) {
      tile_table().stores[static_cast<size_t>(DTypeOf<T>::value)](y, row, nullptr, nullptr, n_);
      return;
    }
    for (int64_t i = 0; i < n_; ++i) y[i * stride] = static_cast<T>(row[i]);
  }

 private:
  int64_t n_;
  std::vector<C> copy_;
};

}  // namespace tracefire::cpu
