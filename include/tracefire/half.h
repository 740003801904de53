// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "tracefire/dtype.h"

namespace tracefire {

// Conversions between float and the narrow floating types, which are handled as their bits.
// From float they round to nearest, ties to even. NaN stays NaN, with its quiet bit set.

namespace half_detail {

inline uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// `bits` without its last `drop` (1 to 31) bits, rounded to nearest, ties to even.
inline uint32_t round_shift(uint32_t bits, int drop) {
  uint32_t half = 1u << (drop - 1);
  uint32_t odd = (bits >> drop) & 1u;
  return (bits + (half - 1) + odd) >> drop;
}

/// Finite float of absolute value `magnitude` (its bits without sign) as a format with `mantissa`
/// mantissa bits and exponent bias `bias`; a carry may run into the exponent of infinity.
inline uint32_t narrow(uint32_t magnitude, int mantissa, int bias) {
  int exponent = static_cast<int>(magnitude >> 23) - 127 + bias;
  int drop = 23 - mantissa;
  if (exponent >= 1) {
    uint32_t rebased = magnitude - (static_cast<uint32_t>(127 - bias) << 23);
    return round_shift(rebased, drop);
  }
  // A denormal number of the format: the implicit one becomes explicit and moves right.
  drop += 1 - exponent;
  if (drop > 25) return 0;
  return round_shift((magnitude & 0x7fffffu) | 0x800000u, drop);
}

/// The float that `bits` (without sign) stands for in a format of `mantissa` mantissa bits.
inline float widen(uint32_t bits, int mantissa, int bias) {
  uint32_t exponent = bits >> mantissa;
  if (exponent == 0) {  // zero or denormal: fraction * 2^(1 - bias - mantissa), exact in float
    return static_cast<float>(bits) *
           float_of(static_cast<uint32_t>(127 + 1 - bias - mantissa) << 23);
  }
  return float_of((bits << (23 - mantissa)) + (static_cast<uint32_t>(127 - bias) << 23));
}

inline float with_sign(float magnitude, uint32_t sign_bit) {
  return float_of(bits_of(magnitude) | (sign_bit << 31));
}

}  // namespace half_detail

inline float f16_to_float(uint16_t h) {
  uint32_t magnitude = h & 0x7fffu, sign = h >> 15;
  if (magnitude >= 0x7c00u) {
    uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    return half_detail::float_of((sign << 31) | 0x7f800000u | ((magnitude & 0x3ffu) << 13) | quiet);
  }
  return half_detail::with_sign(half_detail::widen(magnitude, 10, 15), sign);
}

inline uint16_t f16_from_float(float value) {
  uint32_t bits = half_detail::bits_of(value);
  uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // from 65520 on
  return static_cast<uint16_t>(sign | half_detail::narrow(magnitude, 10, 15));
}

inline float bf16_to_float(uint16_t h) {
  uint32_t bits = static_cast<uint32_t>(h) << 16;
  if ((bits & 0x7fffffffu) > 0x7f800000u) bits |= 0x400000u;
  return half_detail::float_of(bits);
}

inline uint16_t bf16_from_float(float value) {
  uint32_t bits = half_detail::bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>(half_detail::round_shift(bits, 16));
}

/// E4M3: no infinity, largest number 448, NaN 0x7f; what would round above 448 becomes NaN.
inline float f8e4m3_to_float(uint8_t h) {
  uint32_t magnitude = h & 0x7fu, sign = h >> 7;
  if (magnitude == 0x7fu) return half_detail::float_of((sign << 31) | 0x7fc00000u);
  return half_detail::with_sign(half_detail::widen(magnitude, 3, 7), sign);
}

inline uint8_t f8e4m3_from_float(float value) {
  uint32_t bits = half_detail::bits_of(value);
  uint32_t sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x43e80000u) return static_cast<uint8_t>(sign | 0x7fu);  // above 464
  return static_cast<uint8_t>(sign | half_detail::narrow(magnitude, 3, 7));
}

/// E5M2: infinity 0x7c, largest number 57344.
inline float f8e5m2_to_float(uint8_t h) { return f16_to_float(static_cast<uint16_t>(h << 8)); }

inline uint8_t f8e5m2_from_float(float value) {
  uint32_t bits = half_detail::bits_of(value);
  uint32_t sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint8_t>(sign | 0x7eu);
  if (magnitude >= 0x47700000u) return static_cast<uint8_t>(sign | 0x7cu);  // from 61440 on
  return static_cast<uint8_t>(sign | half_detail::narrow(magnitude, 2, 15));
}

// Elements of the narrow types as C++ types: Tensor::of(std::vector<Half>{Half(1.5f)}, {1}). They
// are for storage: arithmetic is done in float.

/// float16: IEEE 754 binary16.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value) : bits(f16_from_float(value)) {}
  explicit operator float() const { return f16_to_float(bits); }
};

/// bfloat16: the upper half of a float.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) : bits(bf16_from_float(value)) {}
  explicit operator float() const { return bf16_to_float(bits); }
};

/// float8_e4m3fn: no infinity, largest number 448.
struct Float8E4M3 {
  uint8_t bits = 0;
  Float8E4M3() = default;
  explicit Float8E4M3(float value) : bits(f8e4m3_from_float(value)) {}
  explicit operator float() const { return f8e4m3_to_float(bits); }
};

/// float8_e5m2: largest number 57344.
struct Float8E5M2 {
  uint8_t bits = 0;
  Float8E5M2() = default;
  explicit Float8E5M2(float value) : bits(f8e5m2_from_float(value)) {}
  explicit operator float() const { return f8e5m2_to_float(bits); }
};

// clang-format off
template <> struct DTypeOf<Half> { static constexpr DType value = DType::kF16; };
template <> struct DTypeOf<BFloat16> { static constexpr DType value = DType::kBF16; };
template <> struct DTypeOf<Float8E4M3> { static constexpr DType value = DType::kF8E4M3; };
template <> struct DTypeOf<Float8E5M2> { static constexpr DType value = DType::kF8E5M2; };
// clang-format on

}  // namespace tracefire
