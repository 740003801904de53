// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "backends/ref/oracle.h"

namespace tracefire::ref {
namespace {

/// Calls fn(result element, element of x, element of y) for every result element.
template <class Fn>
void pairs(Eval& e, Fn fn) {
  const std::vector<int64_t> sx = broadcast_strides(e.in[0].sizes, e.out[0].sizes);
  const std::vector<int64_t> sy = broadcast_strides(e.in[1].sizes, e.out[0].sizes);
  for_each(e.out[0].sizes, [&](int64_t i, const std::vector<int64_t>& index) {
    fn(static_cast<size_t>(i), static_cast<size_t>(dot(index, sx)),
       static_cast<size_t>(dot(index, sy)));
  });
}

template <class Fn>
void map_real(Eval& e, Fn fn) {
  if (!e.in[0].is_real()) return;
  pairs(e, [&](size_t i, size_t x, size_t y) {
    e.out[0].real[i] = fn(e.in[0].real[x], e.in[1].real[y]);
  });
}

template <class Fn>
void map_whole(Eval& e, Fn fn) {
  if (e.in[0].is_real()) return;
  pairs(e, [&](size_t i, size_t x, size_t y) {
    e.out[0].whole[i] = fn(e.in[0].whole[x], e.in[1].whole[y]);
  });
}

template <class Fn>
void compare(Eval& e, Fn fn) {
  pairs(e, [&](size_t i, size_t x, size_t y) {
    e.out[0].whole[i] = e.in[0].is_real() ? fn(e.in[0].real[x], e.in[1].real[y])
                                          : fn(e.in[0].whole[x], e.in[1].whole[y]);
  });
}

Int product(Int x, Int y) {  // wraps around instead of overflowing
  return static_cast<Int>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y));
}

Int floor_div(Int x, Int y) {
  if (y == 0) return 0;
  const Int q = x / y;
  return x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q;
}

/// floor of the exact quotient, from what the remainder leaves.
double floor_div(double x, double y) {
  if (y == 0) return x / y;
  const double rest = std::fmod(x, y);
  double quotient = (x - rest) / y;  // nearly whole
  if (rest != 0 && (rest < 0) != (y < 0)) quotient -= 1;
  return quotient == 0 ? std::copysign(0.0, x / y) : std::rint(quotient);
}

double floor_mod(double x, double y) {
  const double rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

Int power(Int base, Int exponent, DType dtype) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  Int result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2) result = wrap_to(dtype, product(result, base));
    base = wrap_to(dtype, product(base, base));
  }
  return result;
}

void add(Eval& e) {
  map_real(e, [](double x, double y) { return x + y; });
  map_whole(e, [](Int x, Int y) { return x + y; });
}
void sub(Eval& e) {
  map_real(e, [](double x, double y) { return x - y; });
  map_whole(e, [](Int x, Int y) { return x - y; });
}
void mul(Eval& e) {
  map_real(e, [](double x, double y) { return x * y; });
  map_whole(e, product);
}
void div_true(Eval& e) {
  map_real(e, [](double x, double y) { return x / y; });
}
void floor_div_of(Eval& e) {
  map_real(e, [](double x, double y) { return floor_div(x, y); });
  map_whole(e, [](Int x, Int y) { return floor_div(x, y); });
}
void floor_mod_of(Eval& e) {
  map_real(e, floor_mod);
  map_whole(e, [](Int x, Int y) { return y == 0 ? 0 : x - floor_div(x, y) * y; });
}
void pow_of(Eval& e) {
  const DType dtype = e.in[0].dtype;
  map_real(e, [](double x, double y) { return std::pow(x, y); });
  map_whole(e, [dtype](Int x, Int y) { return power(x, y, dtype); });
}
void maximum(Eval& e) {
  map_real(e, [](double x, double y) { return std::isnan(x) || x > y ? x : y; });
  map_whole(e, [](Int x, Int y) { return x > y ? x : y; });
}
void minimum(Eval& e) {
  map_real(e, [](double x, double y) { return std::isnan(x) || x < y ? x : y; });
  map_whole(e, [](Int x, Int y) { return x < y ? x : y; });
}
void atan2_of(Eval& e) {
  map_real(e, [](double x, double y) { return std::atan2(x, y); });
}
void equal(Eval& e) {
  compare(e, [](auto x, auto y) { return x == y; });
}
void not_equal(Eval& e) {
  compare(e, [](auto x, auto y) { return x != y; });
}
void less(Eval& e) {
  compare(e, [](auto x, auto y) { return x < y; });
}
void less_equal(Eval& e) {
  compare(e, [](auto x, auto y) { return x <= y; });
}
void greater(Eval& e) {
  compare(e, [](auto x, auto y) { return x > y; });
}
void greater_equal(Eval& e) {
  compare(e, [](auto x, auto y) { return x >= y; });
}
void bitwise_and(Eval& e) {
  map_whole(e, [](Int x, Int y) { return x & y; });
}
void bitwise_or(Eval& e) {
  map_whole(e, [](Int x, Int y) { return x | y; });
}
void bitwise_xor(Eval& e) {
  map_whole(e, [](Int x, Int y) { return x ^ y; });
}
void shift_left(Eval& e) {
  const int bits = bits_of(e.in[0].dtype);
  map_whole(e, [bits](Int x, Int y) {
    return y < 0 || y >= bits ? 0 : product(x, static_cast<Int>(1) << static_cast<int>(y));
  });
}
void shift_right(Eval& e) {
  const int bits = bits_of(e.in[0].dtype);
  map_whole(e, [bits](Int x, Int y) {
    return y < 0 || y >= bits ? static_cast<Int>(x < 0 ? -1 : 0) : x >> static_cast<int>(y);
  });
}

void select(Eval& e) {
  const std::vector<int64_t>& sizes = e.out[0].sizes;
  const std::vector<int64_t> sc = broadcast_strides(e.in[0].sizes, sizes);
  const std::vector<int64_t> sx = broadcast_strides(e.in[1].sizes, sizes);
  const std::vector<int64_t> sy = broadcast_strides(e.in[2].sizes, sizes);
  for_each(sizes, [&](int64_t i, const std::vector<int64_t>& index) {
    const bool first = e.in[0].whole[static_cast<size_t>(dot(index, sc))] != 0;
    copy_element(e.in[first ? 1 : 2], dot(index, first ? sx : sy), &e.out[0], i);
  });
}

void fma_of(Eval& e) {
  const std::vector<int64_t>& sizes = e.out[0].sizes;
  const std::vector<int64_t> sx = broadcast_strides(e.in[0].sizes, sizes);
  const std::vector<int64_t> sy = broadcast_strides(e.in[1].sizes, sizes);
  const std::vector<int64_t> sz = broadcast_strides(e.in[2].sizes, sizes);
  for_each(sizes, [&](int64_t i, const std::vector<int64_t>& index) {
    const auto element = [&](size_t input, const std::vector<int64_t>& strides) {
      return e.in[input].real[static_cast<size_t>(dot(index, strides))];
    };
    const double x = element(0, sx), y = element(1, sy), z = element(2, sz);
    // A double that is rounded to float32 once more would be rounded twice.
    e.out[0].real[static_cast<size_t>(i)] =
        e.out[0].dtype == DType::kF32
            ? std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z))
            : std::fma(x, y, z);
  });
}

}  // namespace

std::vector<Entry> binary_entries() {
  return {{"add", add},
          {"sub", sub},
          {"mul", mul},
          {"div", div_true},
          {"floor_div", floor_div_of},
          {"floor_mod", floor_mod_of},
          {"pow", pow_of},
          {"maximum", maximum},
          {"minimum", minimum},
          {"atan2", atan2_of},
          {"equal", equal},
          {"not_equal", not_equal},
          {"less", less},
          {"less_equal", less_equal},
          {"greater", greater},
          {"greater_equal", greater_equal},
          {"logical_and", bitwise_and},
          {"logical_or", bitwise_or},
          {"bitwise_and", bitwise_and},
          {"bitwise_or", bitwise_or},
          {"bitwise_xor", bitwise_xor},
          {"shift_left", shift_left},
          {"shift_right", shift_right},
          {"select", select},
          {"fma", fma_of}};
}

}  // namespace tracefire::ref
