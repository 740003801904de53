// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tracefire::cpu {

/// Order in which argmax, top_k and unique see numbers: NaN is above everything.
template <class T>
bool is_nan(T x) {
  return x != x;
}
template <class T>
bool greater_nan_first(T x, T y) {
  return x > y || (is_nan(x) && !is_nan(y));
}
template <class T>
bool less_nan_first(T x, T y) {
  return x < y || (is_nan(x) && !is_nan(y));
}

}  // namespace tracefire::cpu
