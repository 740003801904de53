// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "tracefire/dtype.h"
#include "tracefire/half.h"

namespace tracefire::cpu {

/// Calls fn(T()) with the C++ integer type of `dtype`; 4-bit integers are held in a byte.
template <class Fn>
bool with_integer(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kI4:
    case DType::kI8:
      fn(int8_t());
      return true;
    case DType::kI16:
      fn(int16_t());
      return true;
    case DType::kI32:
      fn(int32_t());
      return true;
    case DType::kI64:
      fn(int64_t());
      return true;
    case DType::kU4:
    case DType::kU8:
      fn(uint8_t());
      return true;
    case DType::kU16:
      fn(uint16_t());
      return true;
    case DType::kU32:
      fn(uint32_t());
      return true;
    case DType::kU64:
      fn(uint64_t());
      return true;
    default:
      return false;
  }
}

/// Calls fn(T()) with the C++ floating type of `dtype`; narrow ones are classes that convert to
/// and from float.
template <class Fn>
bool with_floating(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kF64:
      fn(double());
      return true;
    case DType::kF32:
      fn(float());
      return true;
    case DType::kF16:
      fn(Half());
      return true;
    case DType::kBF16:
      fn(BFloat16());
      return true;
    case DType::kF8E4M3:
      fn(Float8E4M3());
      return true;
    case DType::kF8E5M2:
      fn(Float8E5M2());
      return true;
    default:
      return false;
  }
}

template <class Fn>
bool with_real(DType dtype, Fn&& fn) {
  return with_floating(dtype, fn) || with_integer(dtype, fn);
}

/// What numbers of T are computed in: themselves, but float for narrow floating types.
template <class T>
using Computed = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

template <class T>
Computed<T> number(T value) {
  return static_cast<Computed<T>>(value);
}

/// Element `index` of an integer array.
using ReadInteger = int64_t (*)(const void* data, int64_t index);
inline ReadInteger integer_reader(DType dtype) {
  ReadInteger reader = nullptr;
  with_integer(dtype, [&](auto element) {
    using T = decltype(element);
    reader = [](const void* data, int64_t index) {
      return static_cast<int64_t>(static_cast<const T*>(data)[index]);
    };
  });
  return reader;
}

/// Whole-number indices as data has them.
struct Indices {
  /// First of elements `begin` … `end` - 1 that is not in [0, size), or `end`.
  int64_t (*first_outside)(const void* data, int64_t begin, int64_t end, int64_t size) = nullptr;
  /// Elements `begin` … `end` - 1 as int64.
  void (*widen)(const void* data, int64_t begin, int64_t end, int64_t* out) = nullptr;
  bool wide = false;  ///< they are int64 already
};
inline Indices indices_of(DType dtype) {
  Indices functions;
  functions.wide = dtype == DType::kI64;
  with_integer(dtype, [&](auto element) {
    using T = decltype(element);
    functions.first_outside = [](const void* data, int64_t begin, int64_t end, int64_t size) {
      const T* x = static_cast<const T*>(data);
      constexpr int64_t kBlock = 1024;
      const auto outside = [size](T index) {
        return static_cast<uint64_t>(static_cast<int64_t>(index)) >= static_cast<uint64_t>(size);
      };
      for (int64_t i = begin; i < end; i += kBlock) {
        const int64_t last = end - i < kBlock ? end : i + kBlock;
        bool any = false;
        for (int64_t k = i; k < last; ++k) any |= outside(x[k]);
        for (int64_t k = i; any && k < last; ++k) {
          if (outside(x[k])) return k;
        }
      }
      return end;
    };
    functions.widen = [](const void* data, int64_t begin, int64_t end, int64_t* out) {
      const T* x = static_cast<const T*>(data);
      for (int64_t i = begin; i < end; ++i) out[i - begin] = static_cast<int64_t>(x[i]);
    };
  });
  return functions;
}

/// Writes `value` as one element of a real type or bool.
inline void store_number(DType dtype, void* target, int64_t value) {
  if (dtype == DType::kBool) {
    *static_cast<uint8_t*>(target) = value != 0;
  } else if (!with_integer(dtype, [&](auto element) {
               using T = decltype(element);
               *static_cast<T*>(target) = static_cast<T>(value);
             })) {
    with_floating(dtype, [&](auto element) {
      using T = decltype(element);
      *static_cast<T*>(target) = static_cast<T>(static_cast<Computed<T>>(value));
    });
  }
}

/// A scalar real number in memory as a double.
inline double load_number(DType dtype, const void* source) {
  double value = 0;
  with_real(dtype, [&](auto element) {
    using T = decltype(element);
    value = static_cast<double>(number(*static_cast<const T*>(source)));
  });
  return value;
}

}  // namespace tracefire::cpu
