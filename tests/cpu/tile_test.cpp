// SPDX-License-Identifier: Apache-2.0
// The tile functions: accuracy of the f32 polynomials, special values, casts, random words, and
// equal bits on every instruction set of this machine.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "backends/cpu/tile/tile_table.h"
#include "tracefire/half.h"

namespace tracefire::cpu {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<Isa> machine_isas() {
  std::vector<Isa> isas;
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (tile_table(isa) != nullptr) isas.push_back(isa);
  }
  return isas;
}

TileFn function(LoopOp op, RegType type, Isa isa = best_isa()) {
  return tile_table(isa)->ops[static_cast<size_t>(op)][static_cast<size_t>(type)];
}

/// Floats of all magnitudes and kinds, every `step`-th pattern of bits.
std::vector<float> all_floats(uint32_t step) {
  std::vector<float> values;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += step) {
    const uint32_t word = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &word, sizeof value);
    values.push_back(value);
  }
  for (float value :
       {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, -0.5f, 1e-45f, -1e-45f, 1.17549435e-38f, 3.4028235e38f,
        -3.4028235e38f, static_cast<float>(kInf), -static_cast<float>(kInf), std::nanf("")}) {
    values.push_back(value);
  }
  return values;
}

/// Largest distance from the true value in units of the last place of f32.
double worst_ulps(LoopOp op, const std::function<double(double)>& truth, double limit,
                  float* where) {
  std::vector<float> x;
  for (float value : all_floats(65537 / 16)) {
    if (!(std::fabs(value) > limit)) x.push_back(value);
  }
  std::vector<float> y(x.size());
  function(op, RegType::kF32)(y.data(), x.data(), nullptr, nullptr, static_cast<int64_t>(x.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double wanted = truth(x[i]);
    const float rounded = static_cast<float>(wanted);
    double ulps;
    if (std::isnan(wanted) || std::isnan(y[i])) {
      ulps = std::isnan(wanted) == std::isnan(y[i]) ? 0 : kInf;
    } else if (std::isinf(rounded) || std::isinf(y[i])) {
      ulps = rounded == y[i] ? 0 : kInf;
    } else {
      int exponent;
      std::frexp(wanted == 0 ? 1e-45 : wanted, &exponent);
      ulps = std::fabs(y[i] - wanted) / std::ldexp(1.0, std::max(exponent - 24, -149));
      if (rounded == 0 && std::signbit(rounded) != std::signbit(y[i])) ulps = kInf;
    }
    if (ulps > worst) {
      worst = ulps;
      *where = x[i];
    }
  }
  return worst;
}

TEST_CASE("cpu: f32 functions are within their bounds over all arguments") {
  struct Bound {
    LoopOp op;
    double (*truth)(double);
    double ulps;
    double limit;
  };
  const Bound bounds[] = {
      {LoopOp::kExp, [](double x) { return std::exp(x); }, 1.1, kInf},
      {LoopOp::kExpm1, [](double x) { return std::expm1(x); }, 1.8, kInf},
      {LoopOp::kLog, [](double x) { return std::log(x); }, 0.9, kInf},
      {LoopOp::kLog1p, [](double x) { return std::log1p(x); }, 1.6, kInf},
      {LoopOp::kTanh, [](double x) { return std::tanh(x); }, 1.5, kInf},
      {LoopOp::kSigmoid,
       [](double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); },
       2.4, kInf},
      {LoopOp::kErf, [](double x) { return std::erf(x); }, 1.3, kInf},
      {LoopOp::kSin, [](double x) { return std::sin(x); }, 2.2, kInf},
      {LoopOp::kCos, [](double x) { return std::cos(x); }, 2.2, kInf},
      {LoopOp::kSqrt, [](double x) { return std::sqrt(x); }, 0.51, kInf},
      {LoopOp::kRsqrt, [](double x) { return 1 / std::sqrt(x); }, 1.6, kInf},
      {LoopOp::kFloor, [](double x) { return std::floor(x); }, 0, kInf},
      {LoopOp::kCeil, [](double x) { return std::ceil(x); }, 0, kInf},
      {LoopOp::kRound, [](double x) { return std::nearbyint(x); }, 0, kInf},
  };
  for (const Bound& bound : bounds) {
    float where = 0;
    const double worst = worst_ulps(bound.op, bound.truth, bound.limit, &where);
    INFO(loop_op_name(bound.op), " at ", where);
    CHECK(worst <= bound.ulps);
  }
}

TEST_CASE("cpu: erf_inv inverts erf in both precisions") {
  std::vector<float> x;
  std::vector<double> wide;
  for (int i = -999; i <= 999; ++i) {
    x.push_back(static_cast<float>(i) / 1000);
    wide.push_back(x.back());
  }
  std::vector<float> y(x.size());
  std::vector<double> z(x.size());
  const int64_t n = static_cast<int64_t>(x.size());
  function(LoopOp::kErfInv, RegType::kF32)(y.data(), x.data(), nullptr, nullptr, n);
  function(LoopOp::kErfInv, RegType::kF64)(z.data(), wide.data(), nullptr, nullptr, n);
  for (size_t i = 0; i < x.size(); ++i) {
    CHECK(std::fabs(std::erf(z[i]) - wide[i]) <= 3e-16);
    // As good as x itself, which is known to half a unit in its last place.
    const double slope = std::sqrt(M_PI) / 2 * std::exp(z[i] * z[i]);
    CHECK(std::fabs(y[i] - z[i]) <= 5e-7 * std::fabs(z[i]) + 0x1p-25 * slope);
  }
  const float ends[] = {-1, 1, 1.5f};
  float at_ends[3];
  function(LoopOp::kErfInv, RegType::kF32)(at_ends, ends, nullptr, nullptr, 3);
  CHECK(at_ends[0] == -kInf);
  CHECK(at_ends[1] == kInf);
  CHECK(std::isnan(at_ends[2]));
}

TEST_CASE("cpu: every instruction set gives the same bits") {
  const std::vector<float> x = all_floats(1299709);
  std::vector<float> y(x.rbegin(), x.rend());
  const int64_t n = static_cast<int64_t>(x.size());
  std::vector<uint8_t> choice(x.size());
  for (size_t i = 0; i < choice.size(); ++i) choice[i] = i % 3 == 0;
  for (size_t op = 0; op < kLoopOps; ++op) {
    for (size_t type = 0; type < kRegTypes; ++type) {
      const TileFn base = tile_table(Isa::kBaseline)->ops[op][type];
      if (base == nullptr) continue;
      // The bits of floats stand for elements of every type; f64 and wider take fewer of them.
      const size_t size = reg_size(static_cast<RegType>(type));
      const int64_t count = n * 4 / static_cast<int64_t>(std::max<size_t>(size, 4)) / 4 * 4;
      const bool select = static_cast<LoopOp>(op) == LoopOp::kSelect;
      const void* a = select ? static_cast<const void*>(choice.data()) : x.data();
      const void* b = select ? static_cast<const void*>(x.data()) : y.data();
      std::vector<char> wanted(static_cast<size_t>(count) * 16), got(wanted.size());
      base(wanted.data(), a, b, y.data(), count);
      for (Isa isa : machine_isas()) {
        tile_table(isa)->ops[op][type](got.data(), a, b, y.data(), count);
        INFO(loop_op_name(static_cast<LoopOp>(op)), " on register type ", type,
             ", instruction set ", static_cast<int>(isa));
        // NaN may differ in its payload: compare values.
        bool same = std::memcmp(got.data(), wanted.data(), wanted.size()) == 0;
        if (!same && type == static_cast<size_t>(RegType::kF32)) {
          same = true;
          for (int64_t i = 0; i < count; ++i) {
            float g, w;
            std::memcpy(&g, got.data() + i * 4, 4);
            std::memcpy(&w, wanted.data() + i * 4, 4);
            same &= std::memcmp(&g, &w, 4) == 0 || (std::isnan(g) && std::isnan(w));
          }
        }
        if (!same && type == static_cast<size_t>(RegType::kF64)) {
          same = true;
          for (int64_t i = 0; i < count; ++i) {
            double g, w;
            std::memcpy(&g, got.data() + i * 8, 8);
            std::memcpy(&w, wanted.data() + i * 8, 8);
            same &= std::memcmp(&g, &w, 8) == 0 || (std::isnan(g) && std::isnan(w));
          }
        }
        CHECK(same);
      }
    }
  }
}

TEST_CASE("cpu: narrow floating types are read and written as tracefire/half.h does") {
  const std::vector<float> x = all_floats(99991);
  const int64_t n = static_cast<int64_t>(x.size());
  for (Isa isa : machine_isas()) {
    const TileTable& table = *tile_table(isa);
    std::vector<uint16_t> h(x.size());
    std::vector<uint8_t> q(x.size());
    const auto store = [&](DType dtype, void* out) {
      table.stores[static_cast<size_t>(dtype)](out, x.data(), nullptr, nullptr, n);
    };
    int wrong = 0;
    store(DType::kF16, h.data());
    for (size_t i = 0; i < x.size(); ++i) wrong += h[i] != f16_from_float(x[i]);
    store(DType::kBF16, h.data());
    for (size_t i = 0; i < x.size(); ++i) wrong += h[i] != bf16_from_float(x[i]);
    store(DType::kF8E4M3, q.data());
    for (size_t i = 0; i < x.size(); ++i) wrong += q[i] != f8e4m3_from_float(x[i]);
    store(DType::kF8E5M2, q.data());
    for (size_t i = 0; i < x.size(); ++i) wrong += q[i] != f8e5m2_from_float(x[i]);
    CHECK(wrong == 0);
    std::vector<uint16_t> all(65536);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    std::vector<float> wide(all.size());
    table.loads[static_cast<size_t>(DType::kF16)](wide.data(), all.data(), nullptr, nullptr, 65536);
    for (size_t i = 0; i < all.size(); ++i) {
      const float wanted = f16_to_float(all[i]);
      wrong += std::isnan(wanted) ? !std::isnan(wide[i]) : wide[i] != wanted;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("cpu: casts cut, saturate, wrap and round") {
  const auto cast = [](auto x, RegType from, DType to, auto result) {
    tile_table().casts[static_cast<size_t>(from)][static_cast<size_t>(to)](&result, &x, nullptr,
                                                                           nullptr, 1);
    return result;
  };
  CHECK(cast(-1.9f, RegType::kF32, DType::kI32, int32_t()) == -1);
  CHECK(cast(3e9f, RegType::kF32, DType::kI32, int32_t()) == 2147483647);
  CHECK(cast(-3e9f, RegType::kF32, DType::kI32, int32_t()) == -2147483647 - 1);
  CHECK(cast(std::nanf(""), RegType::kF32, DType::kI32, int32_t()) == 0);
  CHECK(cast(static_cast<float>(kInf), RegType::kF32, DType::kI64, int64_t()) == INT64_MAX);
  CHECK(cast(-5.0f, RegType::kF32, DType::kU8, uint8_t()) == 0);
  CHECK(cast(300.0f, RegType::kF32, DType::kU8, uint8_t()) == 255);
  CHECK(cast(1e30, RegType::kF64, DType::kU64, uint64_t()) == UINT64_MAX);
  CHECK(cast(-200.0f, RegType::kF32, DType::kI8, int8_t()) == -128);
  CHECK(cast(int32_t{300}, RegType::kI32, DType::kI8, int8_t()) == 44);
  CHECK(cast(int32_t{-1}, RegType::kI32, DType::kU16, uint16_t()) == 65535);
  CHECK(cast(int32_t{11}, RegType::kI32, DType::kI4, int8_t()) == -5);
  CHECK(cast(int32_t{-1}, RegType::kI32, DType::kU4, int8_t()) == 15);
  CHECK(cast(99.0f, RegType::kF32, DType::kI4, int8_t()) == 7);
  CHECK(cast(0.25f, RegType::kF32, DType::kBool, uint8_t()) == 1);
  CHECK(cast(-0.0f, RegType::kF32, DType::kBool, uint8_t()) == 0);
  CHECK(cast(std::nanf(""), RegType::kF32, DType::kBool, uint8_t()) == 1);
  CHECK(cast(1.0009765625 + 1e-9, RegType::kF64, DType::kBF16, float()) == 1.0f);
  // Just above halfway between two bf16: through f32 it would tie and go down.
  CHECK(cast(1.00390625 + 1e-12, RegType::kF64, DType::kBF16, float()) == 1.0078125f);
  CHECK(cast(int64_t{16777217}, RegType::kI64, DType::kF32, float()) == 16777216.0f);
}

TEST_CASE("cpu: integers wrap around, and division has an answer for everything") {
  const auto two = [](LoopOp op, auto x, auto y, RegType type) {
    decltype(x) result;
    function(op, type)(&result, &x, &y, nullptr, 1);
    return result;
  };
  const int32_t least = -2147483647 - 1;
  CHECK(two(LoopOp::kAdd, 2147483647, 1, RegType::kI32) == least);
  CHECK(two(LoopOp::kMul, int16_t{300}, int16_t{300}, RegType::kI16) == int16_t{24464});
  CHECK(two(LoopOp::kFloorDiv, -7, 2, RegType::kI32) == -4);
  CHECK(two(LoopOp::kFloorDiv, 7, 0, RegType::kI32) == 0);
  CHECK(two(LoopOp::kFloorDiv, least, -1, RegType::kI32) == least);
  CHECK(two(LoopOp::kFloorMod, -7, 3, RegType::kI32) == 2);
  CHECK(two(LoopOp::kFloorMod, 7, -3, RegType::kI32) == -2);
  CHECK(two(LoopOp::kFloorMod, least, -1, RegType::kI32) == 0);
  CHECK(two(LoopOp::kFloorMod, 7, 0, RegType::kI32) == 0);
  CHECK(two(LoopOp::kPow, 3, 4, RegType::kI32) == 81);
  CHECK(two(LoopOp::kPow, 2, -1, RegType::kI32) == 0);
  CHECK(two(LoopOp::kPow, -1, -3, RegType::kI32) == -1);
  CHECK(two(LoopOp::kPow, 0, 0, RegType::kI32) == 1);
  CHECK(two(LoopOp::kShiftLeft, 1, 31, RegType::kI32) == least);
  CHECK(two(LoopOp::kShiftLeft, 1, 32, RegType::kI32) == 0);
  CHECK(two(LoopOp::kShiftLeft, 1, -1, RegType::kI32) == 0);
  CHECK(two(LoopOp::kShiftRight, -8, 1, RegType::kI32) == -4);
  CHECK(two(LoopOp::kShiftRight, -8, 99, RegType::kI32) == -1);
  CHECK(two(LoopOp::kShiftRight, uint8_t{200}, uint8_t{9}, RegType::kU8) == 0);
  CHECK(two(LoopOp::kFloorMod, 5.5f, -2.0f, RegType::kF32) == -0.5f);
  CHECK(two(LoopOp::kFloorDiv, 1.0f, 0.1f, RegType::kF32) == 9.0f);
  CHECK(std::isnan(two(LoopOp::kMaximum, std::nanf(""), 1.0f, RegType::kF32)));
  CHECK(std::isnan(two(LoopOp::kMinimum, 1.0f, std::nanf(""), RegType::kF32)));
}

TEST_CASE("cpu: random words are those of the published algorithms") {
  // Known answers of the authors' library Random123, file kat_vectors.
  for (Isa isa : machine_isas()) {
    const TileTable& table = *tile_table(isa);
    const uint32_t zero[2] = {0, 0}, pi[2] = {0x13198a2e, 0x03707344};
    uint32_t words[8];
    uint64_t wide[4];
    table.threefry64(wide, zero, 0, 1);
    CHECK(wide[0] == 0x6b20015999ba4efe);
    table.threefry64(wide, pi, 0x243f6a8885a308d3, 1);
    CHECK(wide[0] == 0xc4923a9c483df7a0);
    table.threefry32(words, zero, 0, 1);
    CHECK(words[0] == (0x6b200159u ^ 0x99ba4efeu));
    table.philox32(words, zero, 0, 8);
    CHECK(words[0] == 0x6627e8d5);
    CHECK(words[1] == 0xe169c58d);
    CHECK(words[2] == 0xbc57ac4c);
    CHECK(words[3] == 0x9b00dbd8);
    table.philox64(wide, zero, 0, 2);
    CHECK(wide[0] == 0xe169c58d6627e8d5);
    CHECK(wide[1] == 0x9b00dbd8bc57ac4c);
    // Pieces that start anywhere continue the same sequence, also over 2^32.
    uint32_t whole[64], piece[64];
    const uint64_t first = (uint64_t{1} << 32) - 21;
    for (RandomFn draw : {table.threefry32, table.philox32}) {
      draw(whole, pi, first, 64);
      for (int64_t at = 0; at < 64; at += 7) {
        draw(piece, pi, first + static_cast<uint64_t>(at), std::min<int64_t>(7, 64 - at));
        CHECK(std::memcmp(piece, whole + at,
                          sizeof(uint32_t) * static_cast<size_t>(std::min<int64_t>(7, 64 - at))) ==
              0);
      }
    }
  }
}

}  // namespace
}  // namespace tracefire::cpu
