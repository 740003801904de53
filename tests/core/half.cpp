// SPDX-License-Identifier: Apache-2.0
#include "tracefire/half.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tracefire {
namespace {

/// What a format's bits mean, computed from the definition in double.
double value_of(uint32_t bits, int mantissa, int exponent_bits, bool has_infinity) {
  int bias = (1 << (exponent_bits - 1)) - 1;
  uint32_t fraction = bits & ((1u << mantissa) - 1);
  int exponent = static_cast<int>(bits >> mantissa) & ((1 << exponent_bits) - 1);
  double sign = (bits >> (mantissa + exponent_bits)) ? -1 : 1;
  int top = (1 << exponent_bits) - 1;
  if (has_infinity && exponent == top) return fraction ? NAN : sign * INFINITY;
  if (!has_infinity && exponent == top && fraction == (1u << mantissa) - 1) return NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa);
  return sign * std::ldexp(fraction + (1u << mantissa), exponent - bias - mantissa);
}

template <class Bits>
struct Format {
  int mantissa;
  int exponent_bits;
  bool has_infinity;
  float (*widen)(Bits);
  Bits (*narrow)(float);

  Bits sign_bit() const { return static_cast<Bits>(1u << (mantissa + exponent_bits)); }
  double value(uint32_t bits) const {
    return value_of(bits, mantissa, exponent_bits, has_infinity);
  }
  uint32_t first_not_finite() const {
    uint32_t bits = 0;
    while (std::isfinite(value(bits))) ++bits;
    return bits;
  }
};

/// All patterns widen to what they mean, and narrow back to themselves.
template <class Bits>
void check_all_patterns(const Format<Bits>& f) {
  for (uint32_t bits = 0; bits <= std::numeric_limits<Bits>::max(); ++bits) {
    CAPTURE(bits);
    double meant = f.value(bits);
    float wide = f.widen(static_cast<Bits>(bits));
    if (std::isnan(meant)) {
      REQUIRE(std::isnan(wide));
      Bits back = f.narrow(wide);
      REQUIRE(std::isnan(f.value(back)));
      REQUIRE((back & f.sign_bit()) == (bits & f.sign_bit()));
      continue;
    }
    REQUIRE(static_cast<double>(wide) == meant);
    REQUIRE(std::signbit(wide) == std::signbit(meant));
    REQUIRE(f.narrow(wide) == bits);
  }
}

/// Between two neighbours the nearer one is taken, half way the even one.
template <class Bits>
void check_rounding(const Format<Bits>& f) {
  uint32_t end = f.first_not_finite();
  for (uint32_t bits = 0; bits + 1 < end; ++bits) {
    CAPTURE(bits);
    float low = f.widen(static_cast<Bits>(bits)), high = f.widen(static_cast<Bits>(bits + 1));
    float middle = static_cast<float>((static_cast<double>(low) + high) / 2);
    uint32_t even = bits % 2 ? bits + 1 : bits;
    for (float sign : {1.0f, -1.0f}) {
      Bits s = sign < 0 ? f.sign_bit() : Bits{0};
      REQUIRE(f.narrow(sign * middle) == (even | s));
      REQUIRE(f.narrow(sign * std::nextafter(middle, 0.0f)) == (bits | s));
      REQUIRE(f.narrow(sign * std::nextafter(middle, INFINITY)) == ((bits + 1) | s));
    }
  }
  // Half a step above the largest number: it would round to the next power, so it overflows.
  double largest = f.value(end - 1), step = largest - f.value(end - 2);
  float edge = static_cast<float>(largest + step / 2);
  uint32_t over = f.narrow(std::numeric_limits<float>::infinity());
  CHECK(f.narrow(std::nextafter(edge, 0.0f)) == end - 1);
  CHECK(f.narrow(std::nextafter(edge, INFINITY)) == over);
  CHECK(f.narrow(edge) == ((end - 1) % 2 ? over : end - 1));
  CHECK(f.narrow(std::numeric_limits<float>::max()) == over);
  CHECK(f.narrow(std::numeric_limits<float>::denorm_min()) == 0);
  CHECK(f.narrow(-0.0f) == f.sign_bit());
}

constexpr Format<uint16_t> kHalf = {10, 5, true, f16_to_float, f16_from_float};
constexpr Format<uint16_t> kBFloat = {7, 8, true, bf16_to_float, bf16_from_float};
constexpr Format<uint8_t> kE4M3 = {3, 4, false, f8e4m3_to_float, f8e4m3_from_float};
constexpr Format<uint8_t> kE5M2 = {2, 5, true, f8e5m2_to_float, f8e5m2_from_float};

TEST_CASE("all 65536 float16 patterns mean what they should and survive the way back") {
  check_all_patterns(kHalf);
}
TEST_CASE("all 65536 bfloat16 patterns mean what they should and survive the way back") {
  check_all_patterns(kBFloat);
}
TEST_CASE("all float8 patterns mean what they should and survive the way back") {
  check_all_patterns(kE4M3);
  check_all_patterns(kE5M2);
}

TEST_CASE("float16 rounds to nearest even") { check_rounding(kHalf); }
TEST_CASE("float8 rounds to nearest even") {
  check_rounding(kE4M3);
  check_rounding(kE5M2);
}

TEST_CASE("bfloat16 rounds to nearest even") {
  // Middles of its smallest steps are no floats, so this goes through the bits.
  std::mt19937 rng(7);
  for (int i = 0; i < 200000; ++i) {
    uint32_t bits = rng();
    float value = half_detail::float_of(bits);
    if (std::isnan(value)) continue;
    uint32_t low = bits >> 16, rest = bits & 0xffff;
    bool up = rest > 0x8000 || (rest == 0x8000 && low % 2);
    REQUIRE(bf16_from_float(value) == low + (up ? 1 : 0));
  }
  CHECK(bf16_from_float(std::numeric_limits<float>::max()) == 0x7f80);
}

TEST_CASE("known numbers") {
  CHECK(f16_from_float(65504.0f) == 0x7bff);
  CHECK(f16_from_float(65519.996f) == 0x7bff);
  CHECK(f16_from_float(65520.0f) == 0x7c00);
  CHECK(f16_from_float(5.9604645e-8f) == 0x0001);
  CHECK(f8e4m3_from_float(448.0f) == 0x7e);
  CHECK(f8e4m3_from_float(464.0f) == 0x7e);
  CHECK(f8e4m3_from_float(464.1f) == 0x7f);
  CHECK(f8e5m2_from_float(57344.0f) == 0x7b);
  CHECK(static_cast<float>(BFloat16(1.0f)) == 1.0f);
  CHECK(static_cast<float>(Half(-2.5f)) == -2.5f);
  CHECK(DTypeOf<Half>::value == DType::kF16);
}

}  // namespace
}  // namespace tracefire
