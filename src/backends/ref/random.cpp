// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "backends/ref/oracle.h"

namespace tracefire::ref {
namespace {

uint32_t rotate(uint32_t x, int by) { return (x << by) | (x >> (32 - by)); }

/// Threefry-2x32, 20 rounds (Salmon et al. 2011, section 4.2): returns x0 << 32 | x1.
uint64_t threefry(uint32_t k0, uint32_t k1, uint64_t counter) {
  static constexpr int kTurns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t keys[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
  uint32_t x0 = static_cast<uint32_t>(counter >> 32) + k0;
  uint32_t x1 = static_cast<uint32_t>(counter) + k1;
  for (uint32_t group = 0; group < 5; ++group) {
    for (int turn : kTurns[group % 2]) {
      x0 += x1;
      x1 = rotate(x1, turn) ^ x0;
    }
    x0 += keys[(group + 1) % 3];
    x1 += keys[(group + 2) % 3] + group + 1;
  }
  return static_cast<uint64_t>(x0) << 32 | x1;
}

/// Philox-4x32, 10 rounds (section 4.3).
std::array<uint32_t, 4> philox(uint32_t k0, uint32_t k1, uint64_t block) {
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0,
                               0};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0], p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

uint64_t word(bool is_philox, bool wide, uint32_t k0, uint32_t k1, uint64_t i) {
  if (!is_philox) {
    const uint64_t both = threefry(k0, k1, i);
    return wide ? both : (both >> 32) ^ (both & 0xffffffffu);
  }
  if (!wide) return philox(k0, k1, i / 4)[i % 4];
  const std::array<uint32_t, 4> block = philox(k0, k1, i / 2);
  const size_t low = 2 * (i % 2);
  return static_cast<uint64_t>(block[low + 1]) << 32 | block[low];
}

std::vector<uint64_t> draw(const Eval& e, size_t count, bool wide) {
  const uint32_t k0 = static_cast<uint32_t>(e.in[0].whole[0]);
  const uint32_t k1 = static_cast<uint32_t>(e.in[0].whole[1]);
  const uint64_t offset = e.in.size() > 1 ? static_cast<uint64_t>(e.in[1].whole[0]) : 0;
  const bool is_philox = e.attrs().text("algorithm") == "philox4x32";
  std::vector<uint64_t> words;
  for (size_t i = 0; i < count; ++i) words.push_back(word(is_philox, wide, k0, k1, i + offset));
  return words;
}

void random_bits(Eval& e) {
  Array& y = e.out[0];
  const std::vector<uint64_t> words = draw(e, y.whole.size(), y.dtype == DType::kU64);
  for (size_t i = 0; i < words.size(); ++i) {
    y.whole[i] = words[i] & static_cast<uint64_t>(highest(y.dtype));
  }
}

void random_uniform(Eval& e) {
  Array& y = e.out[0];
  const bool wide = y.dtype == DType::kF64;
  const int drawn = wide ? 64 : y.dtype == DType::kF32 ? 32 : y.dtype == DType::kF16 ? 16 : 8;
  const int mantissa = wide ? 52 : y.dtype == DType::kF32 ? 23 : y.dtype == DType::kF16 ? 10 : 7;
  const std::vector<uint64_t> words = draw(e, y.real.size(), wide);
  for (size_t i = 0; i < words.size(); ++i) {
    const uint64_t low = wide ? words[i] : words[i] & ((uint64_t{1} << drawn) - 1);
    y.real[i] = std::ldexp(static_cast<double>(low >> (drawn - mantissa)), -mantissa);
  }
}

}  // namespace

std::vector<Entry> random_entries() {
  return {{"random_bits", random_bits}, {"random_uniform", random_uniform}};
}

}  // namespace tracefire::ref
