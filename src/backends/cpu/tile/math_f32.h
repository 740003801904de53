// SPDX-License-Identifier: Apache-2.0
#pragma once

// Elementary functions on f32 without branches, so that a compiler turns a loop over them into
// vector code. Argument reductions are the classic ones (W. J. Cody and W. Waite, "Software Manual
// for the Elementary Functions", 1980); all polynomials are minimax fits made for this file.
// Errors against correctly rounded results, over all arguments, are measured by
// tests/cpu/tile_test.cpp, which also holds the bounds.
//
// Every instruction set compiles its own copy: include this after isa_begin_*.h. No product is
// contracted with a sum, so all copies give the same bits.

namespace tracefire::cpu {
namespace {

inline float bits_to_f32(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t f32_to_bits(float x) { return __builtin_bit_cast(uint32_t, x); }
inline float abs_f32(float x) { return bits_to_f32(f32_to_bits(x) & 0x7fffffffu); }
inline float with_sign_of(float magnitude, float sign) {
  return bits_to_f32(f32_to_bits(magnitude) | (f32_to_bits(sign) & 0x80000000u));
}
constexpr float kInfF32 = __builtin_inff();
constexpr float kNanF32 = __builtin_nanf("");

/// Nearest integer, ties to even, where |x| < 2^22.
inline float round_small(float x) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
  return (x + kMagic) - kMagic;
}

/// 2^n for an integer -126 <= n <= 127.
inline float pow2_int(int32_t n) { return bits_to_f32(static_cast<uint32_t>(n + 127) << 23); }

/// Splits x = n ln 2 + r with |r| <= ln 2 / 2.
struct ExpParts {
  float n;
  float r;
};
inline ExpParts reduce_exp(float x) {
  const float n = round_small(x * 1.44269504088896341f);
  // ln 2 in two parts; n * 0.693359375 is exact.
  return {n, (x - n * 0.693359375f) - n * -2.12194440e-4f};
}

/// e^r - 1 for |r| <= ln 2 / 2.
inline float expm1_poly(float r) {
  const float p = 0.5f + r * (0.16666517f + r * (0.041666202f + r * (0.008369097f +
                  r * 0.0013950849f)));
  return r + r * r * p;
}

inline float exp_f32(float x) {
  // Beyond these the result is 0 or infinite anyhow; NaN passes both selections.
  float c = x > 89.0f ? 89.0f : x;
  c = c < -104.0f ? -104.0f : c;
  const ExpParts parts = reduce_exp(c);
  const float m = 1.0f + expm1_poly(parts.r);
  // Scaling in two steps reaches subnormal results and overflows to infinity. NaN takes n = 0.
  const int32_t n = static_cast<int32_t>(c == c ? parts.n : 0.0f);
  const int32_t half = n >> 1;
  return (m * pow2_int(half)) * pow2_int(n - half);
}

inline float expm1_f32(float x) {
  float c = x > 89.0f ? 89.0f : x;
  c = c < -30.0f ? -30.0f : c;
  const ExpParts parts = reduce_exp(c);
  const float p = expm1_poly(parts.r);
  const int32_t n = static_cast<int32_t>(c == c ? parts.n : 0.0f);
  // (p + 1) 2^n - 1, with 2^(n-1) first because 2^128 is not a number.
  const float scale = pow2_int(n - 1);
  const float result = (p * scale + (scale - 0.5f)) * 2.0f;
  // Tiny arguments keep their sign and their subnormal digits.
  return abs_f32(x) < 1e-7f ? x : result;
}

/// log(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)].
inline float log1p_poly(float f) {
  float p = 0.12761575f + f * -0.07634493f;
  p = -0.13160183f + f * p;
  p = 0.14201759f + f * p;
  p = -0.16623357f + f * p;
  p = 0.20001227f + f * p;
  p = -0.2500082f + f * p;
  p = 0.3333333f + f * p;
  return f * f * f * p;
}

inline float log_f32(float x) {
  // Subnormals are scaled up first.
  const bool tiny = x < 1.17549435e-38f;
  const uint32_t bits = f32_to_bits(tiny ? x * 8388608.0f : x);
  // Mantissa into [sqrt(1/2), sqrt(2)): 0x3f3504f3 is sqrt(1/2).
  const uint32_t shifted = bits - 0x3f3504f3u;
  const int32_t n = static_cast<int32_t>(shifted) >> 23;
  const float f = bits_to_f32((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  const float e = static_cast<float>(n) - (tiny ? 23.0f : 0.0f);
  float y = log1p_poly(f) + e * -2.12194440e-4f;
  y = y - 0.5f * (f * f);
  float result = (f + y) + e * 0.693359375f;
  result = x == 0.0f ? -kInfF32 : result;
  result = x < 0.0f ? kNanF32 : result;
  result = x == kInfF32 ? x : result;
  return x != x ? x : result;
}

inline float log1p_f32(float x) {
  const float u = 1.0f + x;
  // What rounding 1 + x lost, to first order.
  const float lost = x - (u - 1.0f);
  const float result = log_f32(u) + lost / u;
  const bool plain = u == 0.0f || u == kInfF32;
  return abs_f32(x) < 6e-8f ? x : plain ? log_f32(u) : result;
}

inline float tanh_f32(float x) {
  const float a = abs_f32(x);
  const float z = x * x;
  float p = 0.020650586f + z * -0.0057170447f;
  p = -0.053743497f + z * p;
  p = 0.13331491f + z * p;
  p = -0.33333284f + z * p;
  const float small = a + a * (z * p);
  // 1 - 2 / (e^2a + 1), saturating.
  const float large = 1.0f - 2.0f / (exp_f32(2.0f * a) + 1.0f);
  return with_sign_of(a < 0.625f ? small : large, x);
}

inline float sigmoid_f32(float x) {
  const float e = exp_f32(-abs_f32(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

inline float erf_f32(float x) {
  const float a = abs_f32(x);
  const float z = x * x;
  float p = -0.00080101937f + z * 7.853861e-05f;
  p = 0.0051883277f + z * p;
  p = -0.026853813f + z * p;
  p = 0.112835854f + z * p;
  p = -0.37612626f + z * p;
  p = 0.12837917f + z * p;
  const float small = x + x * p;
  // erfc(a) = e^(-a q(a)) for 1 <= a <= 4; beyond 4 erf is 1.
  const float c = a > 4.0f ? 4.0f : a;
  float q = -0.00034090003f + c * 1.3021017e-05f;
  q = 0.0037168525f + c * q;
  q = -0.02392129f + c * q;
  q = 0.10642412f + c * q;
  q = 0.6350365f + c * q;
  q = 1.1286771f + c * q;
  const float large = with_sign_of(1.0f - exp_f32(-(c * q)), x);
  // The comparison sends NaN to the polynomial, which keeps it.
  return a > 1.0f ? large : small;
}

/// log(1 + x) for small x after S. Moshier's Cephes library, file unity.c.
inline float log1p_rational_f32(float x) {
  float d = 1.0f, n = 4.5270000862445199635215E-5f;
  d = __builtin_fmaf(d, x, 1.5062909083469192043167E1f);
  d = __builtin_fmaf(d, x, 8.3047565967967209469434E1f);
  d = __builtin_fmaf(d, x, 2.2176239823732856465394E2f);
  d = __builtin_fmaf(d, x, 3.0909872225312059774938E2f);
  d = __builtin_fmaf(d, x, 2.1642788614495947685003E2f);
  d = __builtin_fmaf(d, x, 6.0118660497603843919306E1f);
  n = __builtin_fmaf(n, x, 4.9854102823193375972212E-1f);
  n = __builtin_fmaf(n, x, 6.5787325942061044846969E0f);
  n = __builtin_fmaf(n, x, 2.9911919328553073277375E1f);
  n = __builtin_fmaf(n, x, 6.0949667980987787057556E1f);
  n = __builtin_fmaf(n, x, 5.7112963590585538103336E1f);
  n = __builtin_fmaf(n, x, 2.0039553499201281259648E1f);
  const float square = x * x;
  return x + __builtin_fmaf(x * square, n / d, -0.5f * square);
}

/// Inverse of erf after M. Giles, "Approximating the erfinv function", GPU Computing Gems, 2011,
/// rounded where XLA rounds, so that normal random numbers are JAX's. Near 1 rounding x^2 costs
/// some digits, fewer than a change of x by half a unit in its last place.
inline float erfinv_f32(float x) {
  constexpr float kP[] = {2.81022636e-08f,   3.43273939e-07f,   -3.5233877e-06f,
                          -4.39150654e-06f,  0.00021858087f,    -0.00125372503f,
                          -0.00417768164f,   0.246640727f,      1.50140941f};
  constexpr float kQ[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f,
                          -0.00367342844f,  0.00573950773f,  -0.0076224613f,
                          0.00943887047f,   1.00167406f,     2.83297682f};
  const float square = x * x;
  const float small = log1p_rational_f32(-square), large = log_f32(1.0f - square);
  const float w = -(square < 0.41421356237309504880f ? small : large);
  const float s = w - 2.5f, t = __builtin_sqrtf(w) - 3.0f;
  float p = kP[0], q = kQ[0];
  for (int i = 1; i < 9; ++i) {
    p = __builtin_fmaf(p, s, kP[i]);
    q = __builtin_fmaf(q, t, kQ[i]);
  }
  const float result = (w < 5.0f ? p : q) * x;
  return abs_f32(x) == 1.0f ? x * kInfF32 : result;
}

/// Largest |x| for which sin_f32 and cos_f32 are accurate; callers use libm beyond it.
constexpr float kTrigLimit = 8192.0f;

/// x = n pi/2 + r with |r| <= pi/4, pi/2 in four parts of which three have 11 bits.
struct TrigParts {
  int32_t n;
  float r;
};
inline TrigParts reduce_trig(float x) {
  const float n = round_small(x * 0.636619772367581343f);
  float r = x - n * 1.5703125f;
  r = r - n * 4.837512969970703125e-4f;
  r = r - n * 7.549533620476723e-08f;
  r = r - n * 2.56334415e-12f;
  return {static_cast<int32_t>(n), r};
}
/// sin where quadrant is even, cos where it is odd, negated in quadrants 2 and 3.
inline float trig_quadrant(int32_t quadrant, float r) {
  const float z = r * r;
  const float a = abs_f32(r);  // the sign of zero survives only apart from the sum
  const float sine = with_sign_of(
      a + a * (z * (-0.16666655f + z * (0.008332169f + z * -0.00019516012f))), r);
  const float cosine =
      (1.0f - 0.5f * z) + z * z * (0.041666646f + z * (-0.0013887355f + z * 2.4437008e-05f));
  const float value = (quadrant & 1) ? cosine : sine;
  return bits_to_f32(f32_to_bits(value) ^ (static_cast<uint32_t>(quadrant & 2) << 30));
}
inline float sin_f32(float x) {
  const TrigParts parts = reduce_trig(x);
  return trig_quadrant(parts.n, parts.r);
}
inline float cos_f32(float x) {
  const TrigParts parts = reduce_trig(x);
  return trig_quadrant(parts.n + 1, parts.r);
}

}  // namespace
}  // namespace tracefire::cpu
