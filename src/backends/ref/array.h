// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace tracefire::ref {

/// Holds every value of every integer type exactly.
using Int = __int128;

/// A dense row-major array as the oracle computes with it: floating types as double, integers and
/// bool as Int, strings as text. Elements are always values that `dtype` can represent.
struct Array {
  DType dtype = DType::kInvalid;
  std::vector<int64_t> sizes;
  std::vector<double> real;
  std::vector<Int> whole;
  std::vector<std::string> text;

  Array() = default;
  /// Zeros, false or empty strings.
  Array(DType dtype, std::vector<int64_t> sizes);

  bool is_real() const { return is_floating(dtype); }
  int64_t count() const;
  int rank() const { return static_cast<int>(sizes.size()); }
  /// Element `i` as a number, whatever the type.
  double number(int64_t i) const;
};

int64_t count_of(const std::vector<int64_t>& sizes);
/// Row-major strides in elements.
std::vector<int64_t> strides_of(const std::vector<int64_t>& sizes);
/// Strides with which an array of `sizes` is read for each element of `out`: 0 where it repeats.
std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& sizes,
                                       const std::vector<int64_t>& out);

/// Calls fn(element number, index) for all elements of `sizes` in row-major order.
template <class Fn>
void for_each(const std::vector<int64_t>& sizes, Fn fn) {
  std::vector<int64_t> index(sizes.size());
  const int64_t count = count_of(sizes);
  for (int64_t i = 0; i < count; ++i) {
    fn(i, static_cast<const std::vector<int64_t>&>(index));
    for (size_t axis = sizes.size(); axis-- > 0;) {
      if (++index[axis] < sizes[axis]) break;
      index[axis] = 0;
    }
  }
}

int64_t dot(const std::vector<int64_t>& index, const std::vector<int64_t>& strides);

/// The nearest value of a floating type (ties to even), or the value of an integer type with the
/// same low bits.
double round_to(DType dtype, double value);
Int wrap_to(DType dtype, Int value);
/// Smallest and largest value of an integer type, 0 and 1 for bool.
Int lowest(DType dtype);
Int highest(DType dtype);
int bits_of(DType dtype);

/// Sets every element to the nearest one that the type has.
void settle(Array* array);

/// From and to memory as devices hold it: bytes of `array.dtype`, or std::string objects.
Array load(const void* data, DType dtype, const std::vector<int64_t>& sizes);
void store(const Array& array, void* data);
/// The elements' bytes. Not for strings.
std::string bytes_of(const Array& array);
Array from_bytes(const std::string& bytes, DType dtype, const std::vector<int64_t>& sizes);

/// Copies element `from` of `source` to element `to` of `target`, of the same type.
void copy_element(const Array& source, int64_t from, Array* target, int64_t to);

}  // namespace tracefire::ref
