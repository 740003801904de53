// SPDX-License-Identifier: Apache-2.0
// Tile functions that go through the C library or divide integers: no vector code is to be had.

#include <cmath>
#include <limits>
#include <type_traits>

#include "backends/cpu/tile/isa_target.h"
#include "backends/cpu/tile/tile_table.h"

#include "backends/cpu/tile/tile_map.h"

namespace tracefire::cpu {
namespace {

struct Exp {
  static double f(double x) { return std::exp(x); }
};
struct Expm1 {
  static double f(double x) { return std::expm1(x); }
};
struct Log {
  static double f(double x) { return std::log(x); }
};
struct Log1p {
  static double f(double x) { return std::log1p(x); }
};
struct Tanh {
  static double f(double x) { return std::tanh(x); }
};
struct Sigmoid {
  static double f(double x) {
    const double e = std::exp(-std::fabs(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
  }
};
struct Erf {
  static double f(double x) { return std::erf(x); }
};
struct ErfInv {
  /// The f32 formula of M. Giles is a start that is good to 1e-6; Newton's steps double the digits.
  static double f(double x) {
    const double a = std::fabs(x);
    if (!(a < 1.0)) return a == 1.0 ? x * std::numeric_limits<double>::infinity() : NAN;
    const double w = -std::log((1.0 - a) * (1.0 + a));
    double y;
    if (w < 5.0) {
      constexpr double kSmall[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                   -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                   -0.00417768164,  0.246640727,    1.50140941};
      y = polynomial(kSmall, w - 2.5) * a;
    } else {
      constexpr double kLarge[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                                   -0.00367342844,  0.00573950773,  -0.0076224613,
                                   0.00943887047,   1.00167406,     2.83297682};
      y = polynomial(kLarge, std::sqrt(w) - 3.0) * a;
    }
    for (int step = 0; step < 2; ++step) {
      // Near 1 the complement keeps the digits that erf loses.
      const double error = y < 0.5 ? std::erf(y) - a : (1.0 - a) - std::erfc(y);
      y -= error * (0.5 * std::sqrt(M_PI)) * std::exp(y * y);
    }
    return std::copysign(y, x);
  }

 private:
  static double polynomial(const double (&coefficients)[9], double t) {
    double p = 0;
    for (double c : coefficients) p = c + p * t;
    return p;
  }
};
struct Sin {
  static double f(double x) { return std::sin(x); }
};
struct Cos {
  static double f(double x) { return std::cos(x); }
};
struct Pow {
  static float f(float x, float y) { return std::pow(x, y); }
  static double f(double x, double y) { return std::pow(x, y); }
};
struct Atan2 {
  static float f(float x, float y) { return std::atan2(x, y); }
  static double f(double x, double y) { return std::atan2(x, y); }
};
/// floor(x / y) of the exact quotient: what the remainder leaves is divided, as NumPy does it.
struct FloorDiv {
  static double f(double x, double y) {
    if (y == 0) return x / y;
    const double rest = std::fmod(x, y);
    double quotient = (x - rest) / y;  // nearly whole
    if (rest != 0 && (rest < 0) != (y < 0)) quotient -= 1;
    return quotient == 0 ? std::copysign(0.0, x / y) : std::rint(quotient);
  }
};
/// The remainder with the sign of y, exact.
struct FloorMod {
  template <class T>
  static T f(T x, T y) {
    const T r = std::fmod(x, y);
    if (r == T(0)) return std::copysign(T(0), y);
    return (r < T(0)) != (y < T(0)) ? r + y : r;
  }
};

struct IntFloorDiv {
  template <class T>
  static T f(T x, T y) {
    if (y == T(0)) return T(0);
    if constexpr (T(-1) < T(0)) {
      if (y == T(-1)) {  // also the smallest number, which wraps around
        return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));
      }
    }
    const T q = static_cast<T>(x / y);
    const bool inexact = static_cast<T>(q * y) != x;
    return inexact && (x < T(0)) != (y < T(0)) ? static_cast<T>(q - 1) : q;
  }
};
struct IntFloorMod {
  template <class T>
  static T f(T x, T y) {
    if (y == T(0) || y == static_cast<T>(-1)) {
      return y == T(0) || T(-1) < T(0) ? T(0) : static_cast<T>(x % y);
    }
    const T r = static_cast<T>(x % y);
    return r != T(0) && (r < T(0)) != (y < T(0)) ? static_cast<T>(r + y) : r;
  }
};
struct IntPow {
  template <class T>
  static T f(T x, T y) {
    if constexpr (T(-1) < T(0)) {
      if (y < T(0)) {
        if (x == T(1)) return T(1);
        if (x == T(-1)) return (y & 1) ? T(-1) : T(1);
        return T(0);
      }
    }
    uint64_t result = 1, base = static_cast<uint64_t>(x), exponent = static_cast<uint64_t>(y);
    for (; exponent != 0; exponent >>= 1, base *= base) {
      if (exponent & 1) result *= base;
    }
    return static_cast<T>(result);
  }
};

template <class T>
void fill_int_division(TileTable* table, RegType type) {
  set2<IntFloorDiv, T>(table, LoopOp::kFloorDiv, type);
  set2<IntFloorDiv, T>(table, LoopOp::kDiv, type);
  set2<IntFloorMod, T>(table, LoopOp::kFloorMod, type);
  set2<IntPow, T>(table, LoopOp::kPow, type);
}

template <class T>
void fill_both(TileTable* table, RegType type) {
  set2<Pow, T>(table, LoopOp::kPow, type);
  set2<Atan2, T>(table, LoopOp::kAtan2, type);
  set2<FloorMod, T>(table, LoopOp::kFloorMod, type);
}

template <class T>
struct Complex {
  T re, im;
  friend bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
  friend bool operator!=(Complex a, Complex b) { return !(a == b); }
};
template <class T>
void fill_complex(TileTable* table, RegType type) {
  set2<Equal, Complex<T>, uint8_t>(table, LoopOp::kEqual, type);
  set2<NotEqual, Complex<T>, uint8_t>(table, LoopOp::kNotEqual, type);
  table->ops[static_cast<size_t>(LoopOp::kSelect)][static_cast<size_t>(type)] =
      map_select<Complex<T>>;
}

}  // namespace

void fill_libm(TileTable* table) {
  fill_both<float>(table, RegType::kF32);
  fill_both<double>(table, RegType::kF64);
  constexpr RegType kF64 = RegType::kF64;
  set2<FloorDiv, double>(table, LoopOp::kFloorDiv, kF64);
  set1<Exp, double>(table, LoopOp::kExp, kF64);
  set1<Expm1, double>(table, LoopOp::kExpm1, kF64);
  set1<Log, double>(table, LoopOp::kLog, kF64);
  set1<Log1p, double>(table, LoopOp::kLog1p, kF64);
  set1<Tanh, double>(table, LoopOp::kTanh, kF64);
  set1<Sigmoid, double>(table, LoopOp::kSigmoid, kF64);
  set1<Erf, double>(table, LoopOp::kErf, kF64);
  set1<ErfInv, double>(table, LoopOp::kErfInv, kF64);
  set1<Sin, double>(table, LoopOp::kSin, kF64);
  set1<Cos, double>(table, LoopOp::kCos, kF64);
  fill_int_division<int8_t>(table, RegType::kI8);
  fill_int_division<int16_t>(table, RegType::kI16);
  fill_int_division<int32_t>(table, RegType::kI32);
  fill_int_division<int64_t>(table, RegType::kI64);
  fill_int_division<uint8_t>(table, RegType::kU8);
  fill_int_division<uint16_t>(table, RegType::kU16);
  fill_int_division<uint32_t>(table, RegType::kU32);
  fill_int_division<uint64_t>(table, RegType::kU64);
  fill_complex<float>(table, RegType::kC64);
  fill_complex<double>(table, RegType::kC128);
}

}  // namespace tracefire::cpu
