// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tile functions on f32 and f64. Each instruction set compiles its own copy: include this between
// TF_TARGET_…_BEGIN and TF_TARGET_END, after math_f32.h and tile_map.h.

namespace tracefire::cpu {
namespace {

struct Neg {
  template <class T>
  static T f(T x) { return -x; }
};
struct Abs {
  static float f(float x) { return __builtin_fabsf(x); }
  static double f(double x) { return __builtin_fabs(x); }
};
struct Sign {  // keeps NaN and the sign of zero
  template <class T>
  static T f(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x; }
};
struct Sqrt {
  static float f(float x) { return __builtin_sqrtf(x); }
  static double f(double x) { return __builtin_sqrt(x); }
};
struct Rsqrt {
  static float f(float x) { return 1.0f / __builtin_sqrtf(x); }
  static double f(double x) { return 1.0 / __builtin_sqrt(x); }
};
struct Square {
  template <class T>
  static T f(T x) { return x * x; }
};
struct Reciprocal {
  template <class T>
  static T f(T x) { return T(1) / x; }
};
struct Relu {  // NaN stays
  template <class T>
  static T f(T x) { return x < T(0) ? T(0) : x; }
};
struct Floor {
  static float f(float x) { return __builtin_floorf(x); }
  static double f(double x) { return __builtin_floor(x); }
};
struct Ceil {
  static float f(float x) { return __builtin_ceilf(x); }
  static double f(double x) { return __builtin_ceil(x); }
};
struct Round {
  static float f(float x) { return __builtin_rintf(x); }
  static double f(double x) { return __builtin_rint(x); }
};
struct IsNan {
  template <class T>
  static uint8_t f(T x) { return x != x; }
};
struct IsFinite {  // an infinity minus itself is NaN, as is NaN
  template <class T>
  static uint8_t f(T x) { return (x - x) == T(0); }
};
struct Exp {
  static float f(float x) { return exp_f32(x); }
};
struct Expm1 {
  static float f(float x) { return expm1_f32(x); }
};
struct Log {
  static float f(float x) { return log_f32(x); }
};
struct Log1p {
  static float f(float x) { return log1p_f32(x); }
};
struct Tanh {
  static float f(float x) { return tanh_f32(x); }
};
struct Sigmoid {
  static float f(float x) { return sigmoid_f32(x); }
};
struct Erf {
  static float f(float x) { return erf_f32(x); }
};
struct ErfInv {
  static float f(float x) { return erfinv_f32(x); }
};
struct Sin {
  static float f(float x) { return sin_f32(x); }
  static float exact(float x) { return __builtin_sinf(x); }
};
struct Cos {
  static float f(float x) { return cos_f32(x); }
  static float exact(float x) { return __builtin_cosf(x); }
};

struct Add {
  template <class T>
  static T f(T x, T y) { return x + y; }
};
struct Sub {
  template <class T>
  static T f(T x, T y) { return x - y; }
};
struct Mul {
  template <class T>
  static T f(T x, T y) { return x * y; }
};
struct Div {
  template <class T>
  static T f(T x, T y) { return x / y; }
};
struct FloorDiv {
  // The quotient of two f32 in f64 does not round up to the next whole number.
  static float f(float x, float y) {
    const double quotient = __builtin_floor(static_cast<double>(x) / static_cast<double>(y));
    // Below zero by however little, beside an infinite divisor too; infinity has no remainder.
    const bool below = (quotient == 0.0) & (x != 0.0f) & ((x < 0.0f) != (y < 0.0f));
    const bool endless = (abs_f32(x) == kInfF32) & (y != 0.0f);
    const float whole = static_cast<float>(quotient);
    return endless ? kNanF32 : below ? -1.0f : whole;
  }
};
struct Maximum {  // NaN from either side
  template <class T>
  static T f(T x, T y) { return ((x > y) | (x != x)) ? x : y; }
};
struct Minimum {
  template <class T>
  static T f(T x, T y) { return ((x < y) | (x != x)) ? x : y; }
};

struct Fma {  // rounded once: an instruction, or a function of libm in the baseline
  static float f(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
  static double f(double x, double y, double z) { return __builtin_fma(x, y, z); }
};

/// sin or cos: where an argument of the tile is too large for the fast reduction, libm does it.
template <class Op>
void map_trig(void* out, const void* a, const void*, const void*, int64_t n) {
  float* o = static_cast<float*>(out);
  const float* x = static_cast<const float*>(a);
  int32_t large = 0;
  for (int64_t i = 0; i < n; ++i) large |= !(abs_f32(x[i]) <= kTrigLimit);
  if (!large) {
    map1<Op, float, float>(out, a, nullptr, nullptr, n);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    o[i] = abs_f32(x[i]) <= kTrigLimit ? Op::f(x[i]) : Op::exact(x[i]);
  }
}

template <class T>
int64_t count_finite(const void* a, int64_t n) {
  const T* x = static_cast<const T*>(a);
  int32_t bad = 0;
  for (int64_t i = 0; i < n; ++i) bad |= !((x[i] - x[i]) == T(0));
  if (!bad) return n;
  int64_t i = 0;
  while ((x[i] - x[i]) == T(0)) ++i;
  return i;
}

template <class T>
void fill_real(TileTable* table, RegType type) {
  set1<Neg, T>(table, LoopOp::kNeg, type);
  set1<Abs, T>(table, LoopOp::kAbs, type);
  set1<Sign, T>(table, LoopOp::kSign, type);
  set1<Sqrt, T>(table, LoopOp::kSqrt, type);
  set1<Rsqrt, T>(table, LoopOp::kRsqrt, type);
  set1<Square, T>(table, LoopOp::kSquare, type);
  set1<Reciprocal, T>(table, LoopOp::kReciprocal, type);
  set1<Relu, T>(table, LoopOp::kRelu, type);
  set1<Floor, T>(table, LoopOp::kFloor, type);
  set1<Ceil, T>(table, LoopOp::kCeil, type);
  set1<Round, T>(table, LoopOp::kRound, type);
  set1<IsNan, T, uint8_t>(table, LoopOp::kIsNan, type);
  set1<IsFinite, T, uint8_t>(table, LoopOp::kIsFinite, type);
  set2<Add, T>(table, LoopOp::kAdd, type);
  set2<Sub, T>(table, LoopOp::kSub, type);
  set2<Mul, T>(table, LoopOp::kMul, type);
  set2<Div, T>(table, LoopOp::kDiv, type);
  set2<Maximum, T>(table, LoopOp::kMaximum, type);
  set2<Minimum, T>(table, LoopOp::kMinimum, type);
  set3<Fma, T>(table, LoopOp::kFma, type);
  fill_compares<T>(table, type);
}

void fill_all_real(TileTable* table) {
  fill_real<float>(table, RegType::kF32);
  fill_real<double>(table, RegType::kF64);
  constexpr RegType kF32 = RegType::kF32;
  set2<FloorDiv, float>(table, LoopOp::kFloorDiv, kF32);
  set1<Exp, float>(table, LoopOp::kExp, kF32);
  set1<Expm1, float>(table, LoopOp::kExpm1, kF32);
  set1<Log, float>(table, LoopOp::kLog, kF32);
  set1<Log1p, float>(table, LoopOp::kLog1p, kF32);
  set1<Tanh, float>(table, LoopOp::kTanh, kF32);
  set1<Sigmoid, float>(table, LoopOp::kSigmoid, kF32);
  set1<Erf, float>(table, LoopOp::kErf, kF32);
  set1<ErfInv, float>(table, LoopOp::kErfInv, kF32);
  table->ops[static_cast<size_t>(LoopOp::kSin)][static_cast<size_t>(kF32)] = map_trig<Sin>;
  table->ops[static_cast<size_t>(LoopOp::kCos)][static_cast<size_t>(kF32)] = map_trig<Cos>;
  table->finite_f32 = count_finite<float>;
  table->finite_f64 = count_finite<double>;
}

}  // namespace
}  // namespace tracefire::cpu
