// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emit/device_library.h"

namespace tracefire::cuda {
namespace {

constexpr std::string_view kText = R"CUDA(
#ifndef TF_EMULATOR
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#define TF_DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) unsigned char tf_shared_memory[]; type* name = (type*)tf_shared_memory
#endif
// Lets the next kernel start, then waits until the one before has finished. Stands first in every
// kernel; without it an early start would read what is not written yet.
#if !defined(TF_EMULATOR) && __CUDA_ARCH__ >= 900
#define TF_WAIT asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define TF_WAIT
#endif
#define TF_DEVICE static __device__ __forceinline__

template <class To, class From> TF_DEVICE To tf_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "widths differ");
  union { From from; To to; } both; both.from = from; return both.to;
}

// ---- narrow floating types, as their bits ----
struct tf_f16 { uint16_t bits; };
struct tf_bf16 { uint16_t bits; };
struct tf_e4m3 { uint8_t bits; };
struct tf_e5m2 { uint8_t bits; };

// The bits of |x| rounded to a format of `mantissa` bits and exponent bias `bias`.
TF_DEVICE uint32_t tf_narrow(uint32_t magnitude, int mantissa, int bias) {
  int exponent = (int)(magnitude >> 23) - 127 + bias, drop = 23 - mantissa;
  uint32_t bits;
  if (exponent >= 1) {
    bits = magnitude - ((uint32_t)(127 - bias) << 23);
  } else {
    drop += 1 - exponent;
    if (drop > 25) return 0;
    bits = (magnitude & 0x7fffffu) | 0x800000u;
  }
  uint32_t half = 1u << (drop - 1), odd = (bits >> drop) & 1u;
  return (bits + (half - 1) + odd) >> drop;
}
TF_DEVICE float tf_widen(uint32_t bits, int mantissa, int bias) {
  if ((bits >> mantissa) == 0) return (float)bits * tf_bits<float>((uint32_t)(128 - bias - mantissa) << 23);
  return tf_bits<float>((bits << (23 - mantissa)) + ((uint32_t)(127 - bias) << 23));
}
TF_DEVICE float tf_float(float x) { return x; }
TF_DEVICE double tf_float(double x) { return x; }
TF_DEVICE float tf_float(tf_bf16 h) { return tf_bits<float>((uint32_t)h.bits << 16); }
TF_DEVICE float tf_float(tf_f16 h) {
#ifdef TF_EMULATOR
  return (float)tf_bits<_Float16>(h.bits);
#else
  float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits)); return f;
#endif
}
TF_DEVICE float tf_float(tf_e5m2 h) { tf_f16 wide; wide.bits = (uint16_t)(h.bits << 8); return tf_float(wide); }
TF_DEVICE float tf_float(tf_e4m3 h) {
  uint32_t magnitude = h.bits & 0x7fu, sign = (uint32_t)(h.bits >> 7) << 31;
  if (magnitude == 0x7fu) return tf_bits<float>(sign | 0x7fc00000u);
  return tf_bits<float>(tf_bits<uint32_t>(tf_widen(magnitude, 3, 7)) | sign);
}
TF_DEVICE tf_bf16 tf_to_bf16(float x) {
  tf_bf16 h;
#if !defined(TF_EMULATOR) && __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
#else
  uint32_t b = tf_bits<uint32_t>(x), rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
  h.bits = (uint16_t)(x != x ? (b >> 16) | 0x40u : rounded);
#endif
  return h;
}
TF_DEVICE tf_f16 tf_to_f16(float x) {
  tf_f16 h;
#ifdef TF_EMULATOR
  h.bits = tf_bits<uint16_t>((_Float16)x);
#else
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
#endif
  return h;
}
TF_DEVICE tf_e4m3 tf_to_e4m3(float x) {
  uint32_t b = tf_bits<uint32_t>(x), sign = (b >> 24) & 0x80u, magnitude = b & 0x7fffffffu;
  tf_e4m3 h; h.bits = (uint8_t)(magnitude > 0x43e80000u ? sign | 0x7fu : sign | tf_narrow(magnitude, 3, 7)); return h;
}
TF_DEVICE tf_e5m2 tf_to_e5m2(float x) {
  uint32_t b = tf_bits<uint32_t>(x), sign = (b >> 24) & 0x80u, magnitude = b & 0x7fffffffu;
  tf_e5m2 h;
  h.bits = (uint8_t)(magnitude > 0x7f800000u ? sign | 0x7eu : magnitude >= 0x47700000u ? sign | 0x7cu : sign | tf_narrow(magnitude, 2, 15));
  return h;
}

// ---- conversions ----
// d as a float whose last bit is 1 where digits were lost: rounding it again, to a narrower type,
// is the same as rounding d once (S. Boldo and G. Melquiond, "When double rounding is odd").
TF_DEVICE float tf_to_odd(double d) {
  float f = (float)d; double back = (double)f; uint32_t b = tf_bits<uint32_t>(f);
  if (back == d || d != d || (b & 1u)) return f;
  b += fabs(back) < fabs(d) ? 1u : 0xffffffffu;
  return tf_bits<float>(b);
}
TF_DEVICE float tf_source(float x) { return x; }
template <class T> TF_DEVICE float tf_source(T x) { return tf_to_odd((double)x); }

template <class T> struct tf_limits;
template <> struct tf_limits<int8_t> { static const int bits = 7; };
template <> struct tf_limits<int16_t> { static const int bits = 15; };
template <> struct tf_limits<int32_t> { static const int bits = 31; };
template <> struct tf_limits<int64_t> { static const int bits = 63; };
template <> struct tf_limits<uint8_t> { static const int bits = 8; };
template <> struct tf_limits<uint16_t> { static const int bits = 16; };
template <> struct tf_limits<uint32_t> { static const int bits = 32; };
template <> struct tf_limits<uint64_t> { static const int bits = 64; };
// A floating number to a whole one: cut off, saturated, NaN gives 0.
template <class To, class From> TF_DEVICE To tf_to_int(From x) {
  const bool is_signed = (To)(-1) < (To)0;
  const From above = (From)2 * (From)(1ull << (tf_limits<To>::bits - 1)), below = is_signed ? -above : (From)0;
  const To most = (To)(~0ull >> (64 - tf_limits<To>::bits)), least = is_signed ? (To)(-most - 1) : (To)0;
  return x >= above ? most : x <= below ? least : x != x ? (To)0 : (To)x;
}

// ---- arithmetic ----
template <class T> TF_DEVICE T tf_sign(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x; }
template <class T> TF_DEVICE T tf_max(T x, T y) { return (x > y) | (x != x) ? x : y; }  // NaN from either side
template <class T> TF_DEVICE T tf_min(T x, T y) { return (x < y) | (x != x) ? x : y; }
TF_DEVICE float tf_sigmoid(float x) { float e = expf(-fabsf(x)); return (x < 0 ? e : 1.f) / (1.f + e); }
TF_DEVICE double tf_sigmoid(double x) { double e = exp(-fabs(x)); return (x < 0 ? e : 1.) / (1. + e); }
// Below zero by however little, beside an infinite divisor too; infinity has no remainder.
TF_DEVICE float tf_floor_div(float x, float y) {
  double q = floor((double)x / (double)y);
  if (fabsf(x) == INFINITY && y != 0.f) return NAN;
  return q == 0. && x != 0.f && (x < 0.f) != (y < 0.f) ? -1.f : (float)q;
}
// The floor of the exact quotient: what the remainder leaves is divided.
TF_DEVICE double tf_floor_div(double x, double y) {
  if (y == 0.) return x / y;
  double r = fmod(x, y), q = (x - r) / y;
  if (r != 0. && (r < 0.) != (y < 0.)) q -= 1.;
  return q == 0. ? copysign(0., x / y) : rint(q);
}
TF_DEVICE float tf_floor_mod(float x, float y) {
  float r = fmodf(x, y); if (r == 0.f) return copysignf(0.f, y); return (r < 0.f) != (y < 0.f) ? r + y : r;
}
TF_DEVICE double tf_floor_mod(double x, double y) {
  double r = fmod(x, y); if (r == 0.) return copysign(0., y); return (r < 0.) != (y < 0.) ? r + y : r;
}
template <class T> TF_DEVICE bool tf_finite(T x) { return (x - x) == T(0); }
// Whole numbers wrap around; division by zero gives 0.
template <class T> TF_DEVICE T tf_int_neg(T x) { return (T)(0ull - (uint64_t)x); }
template <class T> TF_DEVICE T tf_int_abs(T x) { return x < T(0) ? tf_int_neg(x) : x; }
template <class T> TF_DEVICE T tf_int_add(T x, T y) { return (T)((uint64_t)x + (uint64_t)y); }
template <class T> TF_DEVICE T tf_int_sub(T x, T y) { return (T)((uint64_t)x - (uint64_t)y); }
template <class T> TF_DEVICE T tf_int_mul(T x, T y) { return (T)((uint64_t)x * (uint64_t)y); }
template <class T> TF_DEVICE T tf_int_div(T x, T y) {
  if (y == T(0)) return T(0);
  if ((T)(-1) < T(0) && y == (T)(-1)) return tf_int_neg(x);
  T q = (T)(x / y); return (T)(q * y) != x && (x < T(0)) != (y < T(0)) ? (T)(q - 1) : q;
}
template <class T> TF_DEVICE T tf_int_mod(T x, T y) {
  if (y == T(0)) return T(0);
  if ((T)(-1) < T(0) && y == (T)(-1)) return T(0);
  T r = (T)(x % y); return r != T(0) && (r < T(0)) != (y < T(0)) ? (T)(r + y) : r;
}
template <class T> TF_DEVICE T tf_int_pow(T x, T y) {
  if ((T)(-1) < T(0) && y < T(0)) return x == T(1) ? T(1) : x == (T)(-1) ? ((y & 1) ? (T)(-1) : T(1)) : T(0);
  uint64_t result = 1, base = (uint64_t)x, exponent = (uint64_t)y;
  for (; exponent != 0; exponent >>= 1, base *= base) if (exponent & 1) result *= base;
  return (T)result;
}
template <class T> TF_DEVICE uint64_t tf_shift_count(T y) { return (uint64_t)y & (~0ull >> (64 - 8 * sizeof(T))); }
template <class T> TF_DEVICE T tf_shift_left(T x, T y) {
  uint64_t count = tf_shift_count(y); return count < 8 * sizeof(T) ? (T)((uint64_t)x << (count & 63)) : T(0);
}
template <class T> TF_DEVICE T tf_shift_right(T x, T y) {
  const bool is_signed = (T)(-1) < T(0);
  uint64_t count = tf_shift_count(y), most = 8 * sizeof(T) - (is_signed ? 1 : 0);
  if (count > most) count = most;
  return count >= 8 * sizeof(T) ? T(0) : (T)(x >> count);
}

// ---- random words (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) ----
TF_DEVICE uint32_t tf_rotate(uint32_t x, int by) { return (x << by) | (x >> (32 - by)); }
TF_DEVICE uint32_t tf_threefry(const uint32_t* key, uint64_t i) {
  const uint32_t k0 = key[0], k1 = key[1], k2 = k0 ^ k1 ^ 0x1bd11bdau;
  uint32_t x0 = (uint32_t)(i >> 32) + k0, x1 = (uint32_t)i + k1;
#define TF_ROUND(by) x0 += x1; x1 = tf_rotate(x1, by) ^ x0;
#define TF_ROUNDS_A TF_ROUND(13) TF_ROUND(15) TF_ROUND(26) TF_ROUND(6)
#define TF_ROUNDS_B TF_ROUND(17) TF_ROUND(29) TF_ROUND(16) TF_ROUND(24)
  TF_ROUNDS_A x0 += k1; x1 += k2 + 1u; TF_ROUNDS_B x0 += k2; x1 += k0 + 2u; TF_ROUNDS_A x0 += k0; x1 += k1 + 3u;
  TF_ROUNDS_B x0 += k1; x1 += k2 + 4u; TF_ROUNDS_A x0 += k2; x1 += k0 + 5u;
  return x0 ^ x1;
}
TF_DEVICE uint32_t tf_philox(const uint32_t* key, uint64_t i) {
  uint32_t k0 = key[0], k1 = key[1], x0 = (uint32_t)(i >> 2), x1 = (uint32_t)(i >> 34), x2 = 0, x3 = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    uint32_t h0 = __umulhi(0xd2511f53u, x0), l0 = 0xd2511f53u * x0, h1 = __umulhi(0xcd9e8d57u, x2), l1 = 0xcd9e8d57u * x2;
    x0 = h1 ^ x1 ^ k0; x2 = h0 ^ x3 ^ k1; x1 = l1; x3 = l0; k0 += 0x9e3779b9u; k1 += 0xbb67ae85u;
  }
  uint32_t which = (uint32_t)i & 3u;
  return which == 0 ? x0 : which == 1 ? x1 : which == 2 ? x2 : x3;
}

// ---- error reports ----
struct tf_error { unsigned step_plus_one; unsigned code; int64_t detail; };
// The first failure stays.
TF_DEVICE void tf_report(tf_error* error, unsigned step, unsigned code, int64_t detail) {
  if (error == nullptr || atomicCAS(&error->step_plus_one, 0u, step + 1u) != 0u) return;
  error->code = code; error->detail = detail;
}

// ---- indices ----
// Division of numbers below 2^31 by a fixed divisor (Granlund and Montgomery, 1994).
struct tf_div { uint32_t divisor, multiplier, shift; };
TF_DEVICE uint32_t tf_quotient(uint32_t n, tf_div d) { return (__umulhi(n, d.multiplier) + n) >> d.shift; }
struct tf_div64 { uint64_t divisor; };
TF_DEVICE uint64_t tf_quotient(uint64_t n, tf_div64 d) { return n / d.divisor; }
template <class T, int N> struct __align__(sizeof(T) * N) tf_pack { T at[N]; };
)CUDA";

}  // namespace

std::string_view device_library() { return kText; }

}  // namespace tracefire::cuda
