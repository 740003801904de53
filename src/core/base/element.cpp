// SPDX-License-Identifier: Apache-2.0
#include "core/base/element.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "tracefire/half.h"

namespace tracefire {
namespace {

template <class T>
std::string bytes_of(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

int bits_of(DType dtype) {
  if (dtype == DType::kI4 || dtype == DType::kU4) return 4;
  return static_cast<int>(8 * dtype_size(dtype));
}

/// Cut off and saturated; unsigned 64-bit numbers as their bits.
int64_t to_integer(double value, DType dtype) {
  if (std::isnan(value)) return 0;
  const bool is_signed = is_signed_integer(dtype);
  const int digits = bits_of(dtype) - (is_signed ? 1 : 0);
  const double above = std::ldexp(1.0, digits);  // the highest number + 1
  const auto high = static_cast<int64_t>(std::numeric_limits<uint64_t>::max() >> (64 - digits));
  if (value >= above) return high;
  if (!is_signed) return value <= 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(value));
  return value <= -above ? -high - 1 : static_cast<int64_t>(value);
}

/// The low bits of a whole number. Little-endian: the low bytes come first.
std::string low_bytes(int64_t value, DType dtype) {
  auto bits = static_cast<uint64_t>(value);
  if (dtype == DType::kU4) bits &= 0xf;
  if (dtype == DType::kI4) bits = ((bits & 0xf) ^ 8) - 8;
  return bytes_of(bits).substr(0, dtype_size(dtype));
}

/// `value` as a float whose last bit is 1 where digits were lost: rounding it again, to a narrower
/// type, gives the same as rounding once (S. Boldo and G. Melquiond, "When double rounding is
/// odd").
float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &nearest, sizeof bits);
  if (static_cast<double>(nearest) == value || std::isnan(value) || (bits & 1u) != 0) {
    return nearest;
  }
  bits += std::fabs(static_cast<double>(nearest)) < std::fabs(value) ? 1u : -1u;
  float odd;
  std::memcpy(&odd, &bits, sizeof odd);
  return odd;
}

/// Floating and complex types; empty for others. `single` is the number in float32.
std::string real_bytes(double value, float single, DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3:
      return bytes_of(f8e4m3_from_float(round_to_odd(value)));
    case DType::kF8E5M2:
      return bytes_of(f8e5m2_from_float(round_to_odd(value)));
    case DType::kF16:
      return bytes_of(f16_from_float(round_to_odd(value)));
    case DType::kBF16:
      return bytes_of(bf16_from_float(round_to_odd(value)));
    case DType::kF32:
      return bytes_of(single);
    case DType::kF64:
      return bytes_of(value);
    case DType::kC64:
      return bytes_of(single) + bytes_of(0.0f);
    case DType::kC128:
      return bytes_of(value) + bytes_of(0.0);
    default:
      return "";
  }
}

}  // namespace

std::string element_bytes(double value, DType dtype) {
  if (dtype == DType::kBool) return bytes_of(static_cast<uint8_t>(value != 0));
  if (is_integer(dtype)) return low_bytes(to_integer(value, dtype), dtype);
  return real_bytes(value, static_cast<float>(value), dtype);
}

std::string element_bytes(int64_t value, DType dtype) {
  if (dtype == DType::kBool) return bytes_of(static_cast<uint8_t>(value != 0));
  if (is_integer(dtype)) return low_bytes(value, dtype);
  return real_bytes(static_cast<double>(value), static_cast<float>(value), dtype);
}

}  // namespace tracefire
