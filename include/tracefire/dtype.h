// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "tracefire/export.h"

namespace tracefire {

/// Element type of a tensor. The numbers are stored in files: append, never renumber.
enum class DType : uint8_t {
  kInvalid = 0,
  kBool = 1,
  kI4 = 2,
  kI8 = 3,
  kI16 = 4,
  kI32 = 5,
  kI64 = 6,
  kU4 = 7,
  kU8 = 8,
  kU16 = 9,
  kU32 = 10,
  kU64 = 11,
  kF8E4M3 = 12,
  kF8E5M2 = 13,
  kF16 = 14,
  kBF16 = 15,
  kF32 = 16,
  kF64 = 17,
  kC64 = 18,
  kC128 = 19,
  kString = 20,  ///< host only; an element is a std::string
  kToken = 21,   ///< orders effects inside a graph; holds no data
};

/// Bytes of one element in memory; kI4 and kU4 take a byte each, kToken takes none.
TRACEFIRE_API size_t dtype_size(DType dtype);
/// "float32", "bfloat16", "bool", … as NumPy and TensorFlow write them.
TRACEFIRE_API std::string_view dtype_name(DType dtype);
/// Inverse of dtype_name; nullopt for an unknown name.
TRACEFIRE_API std::optional<DType> dtype_from_name(std::string_view name);

TRACEFIRE_API bool is_floating(DType dtype);          ///< f64 f32 f16 bf16 fp8
TRACEFIRE_API bool is_integer(DType dtype);           ///< signed and unsigned, not bool
TRACEFIRE_API bool is_signed_integer(DType dtype);
TRACEFIRE_API bool is_complex(DType dtype);
/// True where arithmetic is defined: floating, integer or complex.
TRACEFIRE_API bool is_numeric(DType dtype);

/// Element type of a C++ type: DTypeOf<float>::value. Integers by their size and sign.
template <class T>
struct DTypeOf;
template <std::integral T>
struct DTypeOf<T> {
  static constexpr DType value =
      sizeof(T) == 1   ? (std::is_signed_v<T> ? DType::kI8 : DType::kU8)
      : sizeof(T) == 2 ? (std::is_signed_v<T> ? DType::kI16 : DType::kU16)
      : sizeof(T) == 4 ? (std::is_signed_v<T> ? DType::kI32 : DType::kU32)
                       : (std::is_signed_v<T> ? DType::kI64 : DType::kU64);
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<std::complex<float>> {
  static constexpr DType value = DType::kC64;
};
template <>
struct DTypeOf<std::complex<double>> {
  static constexpr DType value = DType::kC128;
};

}  // namespace tracefire
