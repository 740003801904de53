// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

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

template <class T>
struct DTypeOf;
template <> struct DTypeOf<bool> { static constexpr DType value = DType::kBool; };
template <> struct DTypeOf<int8_t> { static constexpr DType value = DType::kI8; };
template <> struct DTypeOf<int16_t> { static constexpr DType value = DType::kI16; };
template <> struct DTypeOf<int32_t> { static constexpr DType value = DType::kI32; };
template <> struct DTypeOf<int64_t> { static constexpr DType value = DType::kI64; };
template <> struct DTypeOf<uint8_t> { static constexpr DType value = DType::kU8; };
template <> struct DTypeOf<uint16_t> { static constexpr DType value = DType::kU16; };
template <> struct DTypeOf<uint32_t> { static constexpr DType value = DType::kU32; };
template <> struct DTypeOf<uint64_t> { static constexpr DType value = DType::kU64; };
template <> struct DTypeOf<float> { static constexpr DType value = DType::kF32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::kF64; };

}  // namespace tracefire
