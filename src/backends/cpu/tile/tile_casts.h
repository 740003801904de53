// SPDX-License-Identifier: Apache-2.0
#pragma once

// Conversions between registers, and between registers and memory. Each instruction set compiles
// its own copy: include this between TF_TARGET_…_BEGIN and TF_TARGET_END, after tile_map.h.

namespace tracefire::cpu {
namespace {

// bf16 without branches; the same bits as tracefire/half.h.
inline uint16_t to_bf16(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>(x != x ? (bits >> 16) | 0x40u : rounded);
}
inline float from_bf16(uint16_t h) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(h) << 16);
}

/// d as a float whose last bit is 1 where digits were lost: rounding it again, to a narrower type,
/// gives the same as rounding d once (S. Boldo and G. Melquiond, "When double rounding is odd").
inline float round_to_odd(double d) {
  const float f = static_cast<float>(d);
  const double back = static_cast<double>(f);
  uint32_t bits = __builtin_bit_cast(uint32_t, f);
  if (back == d || d != d || (bits & 1u)) return f;
  bits += __builtin_fabs(back) < __builtin_fabs(d) ? 1u : -1u;
  return __builtin_bit_cast(float, bits);
}
inline float narrow_source(float x) { return x; }
inline float narrow_source(double x) { return round_to_odd(x); }
template <class T>
inline float narrow_source(T x) {
  return round_to_odd(static_cast<double>(x));
}

template <class T>
constexpr bool kIsSigned = T(-1) < T(0);

/// C++'s conversion, but a floating value saturates and NaN gives 0.
template <class From, class To>
inline To convert(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr int kBits = sizeof(To) * 8 - (kIsSigned<To> ? 1 : 0);
    constexpr From kAbove = From(2) * static_cast<From>(uint64_t{1} << (kBits - 1));
    constexpr From kBelow = kIsSigned<To> ? -kAbove : From(0);
    constexpr To kMost = static_cast<To>(
        kIsSigned<To> ? ~(uint64_t{1} << kBits) & (~uint64_t{0} >> (63 - kBits)) : ~uint64_t{0});
    constexpr To kLeast = kIsSigned<To> ? static_cast<To>(-kMost - 1) : To(0);
    return x >= kAbove ? kMost : x <= kBelow ? kLeast : x != x ? To(0) : static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}
template <class From, class To>
struct Convert {
  static To f(From x) { return convert<From, To>(x); }
};
template <class From>
struct ToBool {
  static uint8_t f(From x) { return x != From(0); }
};
/// The low four bits, with their sign where kSign; floating values saturate.
template <class From, bool kSign>
struct ToI4 {
  static int8_t f(From x) {
    if constexpr (std::is_floating_point_v<From>) {
      const From low = kSign ? From(-8) : From(0), high = kSign ? From(7) : From(15);
      const From cut = x != x ? From(0) : x < low ? low : x > high ? high : x;
      return static_cast<int8_t>(cut);
    } else {
      const uint8_t bits = static_cast<uint8_t>(x) & 15u;
      return static_cast<int8_t>(kSign ? (bits ^ 8) - 8 : bits);
    }
  }
};
template <class From>
struct ToBf16 {
  static float f(From x) { return from_bf16(to_bf16(narrow_source(x))); }
};
template <class From>
struct ToF16 {
  static float f(From x) { return f16_to_float(f16_from_float(narrow_source(x))); }
};
template <class From>
struct ToF8E4M3 {
  static float f(From x) { return f8e4m3_to_float(f8e4m3_from_float(narrow_source(x))); }
};
template <class From>
struct ToF8E5M2 {
  static float f(From x) { return f8e5m2_to_float(f8e5m2_from_float(narrow_source(x))); }
};

template <class From>
void fill_casts(TileTable* table, RegType type) {
  TileFn* casts = table->casts[static_cast<size_t>(type)];
  const auto set = [casts](DType to, TileFn fn) { casts[static_cast<size_t>(to)] = fn; };
  set(DType::kBool, map1<ToBool<From>, From, uint8_t>);
  set(DType::kI4, map1<ToI4<From, true>, From, int8_t>);
  set(DType::kU4, map1<ToI4<From, false>, From, int8_t>);
  set(DType::kI8, map1<Convert<From, int8_t>, From, int8_t>);
  set(DType::kI16, map1<Convert<From, int16_t>, From, int16_t>);
  set(DType::kI32, map1<Convert<From, int32_t>, From, int32_t>);
  set(DType::kI64, map1<Convert<From, int64_t>, From, int64_t>);
  set(DType::kU8, map1<Convert<From, uint8_t>, From, uint8_t>);
  set(DType::kU16, map1<Convert<From, uint16_t>, From, uint16_t>);
  set(DType::kU32, map1<Convert<From, uint32_t>, From, uint32_t>);
  set(DType::kU64, map1<Convert<From, uint64_t>, From, uint64_t>);
  set(DType::kF32, map1<Convert<From, float>, From, float>);
  set(DType::kF64, map1<Convert<From, double>, From, double>);
  set(DType::kBF16, map1<ToBf16<From>, From, float>);
  set(DType::kF16, map1<ToF16<From>, From, float>);
  set(DType::kF8E4M3, map1<ToF8E4M3<From>, From, float>);
  set(DType::kF8E5M2, map1<ToF8E5M2<From>, From, float>);
}

struct LoadBf16 {
  static float f(uint16_t x) { return from_bf16(x); }
};
struct StoreBf16 {
  static uint16_t f(float x) { return to_bf16(x); }
};
struct LoadF16 {
  static float f(uint16_t x) { return f16_to_float(x); }
};
struct StoreF16 {
  static uint16_t f(float x) { return f16_from_float(x); }
};
struct LoadF8E4M3 {
  static float f(uint8_t x) { return f8e4m3_to_float(x); }
};
struct StoreF8E4M3 {
  static uint8_t f(float x) { return f8e4m3_from_float(x); }
};
struct LoadF8E5M2 {
  static float f(uint8_t x) { return f8e5m2_to_float(x); }
};
struct StoreF8E5M2 {
  static uint8_t f(float x) { return f8e5m2_from_float(x); }
};

#ifdef TF_TILE_F16C
void load_f16(void* out, const void* a, const void*, const void*, int64_t n) {
  float* o = static_cast<float*>(out);
  const uint16_t* x = static_cast<const uint16_t*>(a);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
    _mm256_storeu_ps(o + i, _mm256_cvtph_ps(half));
  }
  for (; i < n; ++i) o[i] = f16_to_float(x[i]);
}
void store_f16(void* out, const void* a, const void*, const void*, int64_t n) {
  uint16_t* o = static_cast<uint16_t*>(out);
  const float* x = static_cast<const float*>(a);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(o + i), half);
  }
  for (; i < n; ++i) o[i] = f16_from_float(x[i]);
}
void round_f16(void* out, const void* a, const void*, const void*, int64_t n) {
  float* o = static_cast<float*>(out);
  const float* x = static_cast<const float*>(a);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_ps(o + i, _mm256_cvtph_ps(half));
  }
  for (; i < n; ++i) o[i] = f16_to_float(f16_from_float(x[i]));
}
#endif

template <class T>
void gather_strided(void* out, const void* a, const void* b, const void*, int64_t n) {
  const int64_t stride = *static_cast<const int64_t*>(b);
  T* o = static_cast<T*>(out);
  const T* x = static_cast<const T*>(a);
  for (int64_t i = 0; i < n; ++i) o[i] = x[i * stride];
}

void fill_all_casts(TileTable* table) {
  fill_casts<float>(table, RegType::kF32);
  fill_casts<double>(table, RegType::kF64);
  fill_casts<int8_t>(table, RegType::kI8);
  fill_casts<int16_t>(table, RegType::kI16);
  fill_casts<int32_t>(table, RegType::kI32);
  fill_casts<int64_t>(table, RegType::kI64);
  fill_casts<uint8_t>(table, RegType::kU8);
  fill_casts<uint16_t>(table, RegType::kU16);
  fill_casts<uint32_t>(table, RegType::kU32);
  fill_casts<uint64_t>(table, RegType::kU64);
  fill_casts<uint8_t>(table, RegType::kBool);
  const auto set = [table](DType dtype, TileFn load, TileFn store) {
    table->loads[static_cast<size_t>(dtype)] = load;
    table->stores[static_cast<size_t>(dtype)] = store;
  };
  set(DType::kBF16, map1<LoadBf16, uint16_t, float>, map1<StoreBf16, float, uint16_t>);
  set(DType::kF8E4M3, map1<LoadF8E4M3, uint8_t, float>, map1<StoreF8E4M3, float, uint8_t>);
  set(DType::kF8E5M2, map1<LoadF8E5M2, uint8_t, float>, map1<StoreF8E5M2, float, uint8_t>);
#ifdef TF_TILE_F16C
  set(DType::kF16, load_f16, store_f16);
  table->casts[static_cast<size_t>(RegType::kF32)][static_cast<size_t>(DType::kF16)] = round_f16;
#else
  set(DType::kF16, map1<LoadF16, uint16_t, float>, map1<StoreF16, float, uint16_t>);
#endif
  table->gathers[0] = gather_strided<uint8_t>;
  table->gathers[1] = gather_strided<uint16_t>;
  table->gathers[2] = gather_strided<uint32_t>;
  table->gathers[3] = gather_strided<uint64_t>;
  struct Wide {
    uint64_t low, high;
  };
  table->gathers[4] = gather_strided<Wide>;
}

}  // namespace
}  // namespace tracefire::cpu
