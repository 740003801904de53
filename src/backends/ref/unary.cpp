// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "backends/ref/oracle.h"

namespace tracefire::ref {
namespace {

template <class Fn>
void map_real(Eval& e, Fn fn) {
  for (size_t i = 0; i < e.out[0].real.size(); ++i) e.out[0].real[i] = fn(e.in[0].real[i]);
}

template <class Fn>
void map_whole(Eval& e, Fn fn) {
  for (size_t i = 0; i < e.out[0].whole.size(); ++i) e.out[0].whole[i] = fn(e.in[0].whole[i]);
}

/// One formula for floating and integer elements.
template <class Fn>
void map_both(Eval& e, Fn fn) {
  map_real(e, fn);
  map_whole(e, fn);
}

template <class Fn>
void test_real(Eval& e, Fn fn) {
  for (size_t i = 0; i < e.out[0].whole.size(); ++i) e.out[0].whole[i] = fn(e.in[0].real[i]);
}

double sigmoid(double x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double e = std::exp(x);
  return e / (1 + e);
}

/// Giles's approximation, then Newton's method on erf (erfc near the ends, where erf is flat).
double erf_inv(double y) {
  if (std::isnan(y) || y < -1 || y > 1) return NAN;
  if (y == 1 || y == -1) return y * INFINITY;
  const double w = -std::log((1 - y) * (1 + y));
  double x = std::copysign(std::sqrt(std::fabs(w)) * 0.9, y);
  const double tail = 1 - std::fabs(y);
  for (int step = 0; step < 60; ++step) {
    const double slope = 2 / std::sqrt(M_PI) * std::exp(-x * x);
    const double above = tail - std::erfc(std::fabs(x));
    const double miss = std::fabs(y) <= 0.5 ? std::erf(x) - y : y > 0 ? above : -above;
    const double newton = miss / slope;
    const double moved = newton / (1 + x * newton);  // Halley's correction
    x -= moved;
    if (std::fabs(moved) <= 1e-16 * std::fabs(x)) break;
  }
  return x;
}

void neg(Eval& e) {
  map_both(e, [](auto x) { return -x; });
}
void abs_value(Eval& e) {
  map_real(e, [](double x) { return std::fabs(x); });
  map_whole(e, [](Int x) { return x < 0 ? -x : x; });
}
void sign(Eval& e) {
  map_real(e, [](double x) { return x > 0 ? 1 : x < 0 ? -1 : x; });
  map_whole(e, [](Int x) { return static_cast<Int>(x > 0) - static_cast<Int>(x < 0); });
}
void square(Eval& e) {
  map_real(e, [](double x) { return x * x; });
  map_whole(e, [](Int x) {
    return static_cast<Int>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(x));
  });
}
void relu(Eval& e) {
  map_real(e, [](double x) { return x > 0 || std::isnan(x) ? x : 0; });
  map_whole(e, [](Int x) { return x > 0 ? x : 0; });
}
void bitwise_not(Eval& e) {
  const bool truth = e.in[0].dtype == DType::kBool;
  map_whole(e, [truth](Int x) { return truth ? static_cast<Int>(x == 0) : ~x; });
}
void identity(Eval& e) { e.out[0] = e.in[0]; }
void check_finite(Eval& e) {
  e.out[0] = e.in[0];
  for (size_t i = 0; i < e.in[0].real.size(); ++i) {
    if (!std::isfinite(e.in[0].real[i])) e.fail(ErrorCode::kNotFinite, static_cast<int64_t>(i));
  }
}

/// double to `dtype` with the ends of its range as limits and 0 for NaN.
Int to_whole(double x, DType dtype) {
  if (std::isnan(x)) return 0;
  if (dtype == DType::kBool) return x != 0;
  if (x <= static_cast<double>(lowest(dtype))) return lowest(dtype);
  if (x >= static_cast<double>(highest(dtype))) return highest(dtype);
  return static_cast<Int>(x);
}

void cast(Eval& e) {
  const Array& x = e.in[0];
  Array& y = e.out[0];
  for (int64_t i = 0; i < x.count(); ++i) {
    const size_t at = static_cast<size_t>(i);
    if (y.is_real()) {
      y.real[at] = x.number(i);
    } else {
      y.whole[at] = x.is_real() ? (std::isnan(x.real[at]) && y.dtype == DType::kBool
                                       ? 1
                                       : to_whole(x.real[at], y.dtype))
                                : wrap_to(y.dtype, x.whole[at]);
    }
  }
}

void bitcast(Eval& e) { e.out[0] = from_bytes(bytes_of(e.in[0]), e.out[0].dtype, e.out[0].sizes); }

#define TF_REAL(name, formula)                               \
  void name(Eval& e) {                                       \
    map_real(e, [](double x) -> double { return formula; }); \
  }
TF_REAL(exp_of, std::exp(x))
TF_REAL(expm1_of, std::expm1(x))
TF_REAL(log_of, std::log(x))
TF_REAL(log1p_of, std::log1p(x))
TF_REAL(sqrt_of, std::sqrt(x))
TF_REAL(rsqrt_of, 1 / std::sqrt(x))
TF_REAL(reciprocal_of, 1 / x)
TF_REAL(tanh_of, std::tanh(x))
TF_REAL(sigmoid_of, sigmoid(x))
TF_REAL(erf_of, std::erf(x))
TF_REAL(erf_inv_of, erf_inv(x))
TF_REAL(sin_of, std::sin(x))
TF_REAL(cos_of, std::cos(x))
TF_REAL(floor_of, std::floor(x))
TF_REAL(ceil_of, std::ceil(x))
TF_REAL(round_of, std::nearbyint(x))
#undef TF_REAL

void logical_not(Eval& e) {
  map_whole(e, [](Int x) { return static_cast<Int>(x == 0); });
}
void is_nan(Eval& e) {
  test_real(e, [](double x) { return std::isnan(x); });
}
void is_finite(Eval& e) {
  test_real(e, [](double x) { return std::isfinite(x); });
}

}  // namespace

std::vector<Entry> unary_entries() {
  return {{"neg", neg},
          {"abs", abs_value},
          {"sign", sign},
          {"exp", exp_of},
          {"expm1", expm1_of},
          {"log", log_of},
          {"log1p", log1p_of},
          {"sqrt", sqrt_of},
          {"rsqrt", rsqrt_of},
          {"square", square},
          {"reciprocal", reciprocal_of},
          {"tanh", tanh_of},
          {"sigmoid", sigmoid_of},
          {"relu", relu},
          {"erf", erf_of},
          {"erf_inv", erf_inv_of},
          {"sin", sin_of},
          {"cos", cos_of},
          {"floor", floor_of},
          {"ceil", ceil_of},
          {"round", round_of},
          {"logical_not", logical_not},
          {"bitwise_not", bitwise_not},
          {"is_nan", is_nan},
          {"is_finite", is_finite},
          {"stop_gradient", identity},
          {"check_finite", check_finite},
          {"cast", cast},
          {"bitcast", bitcast}};
}

}  // namespace tracefire::ref
