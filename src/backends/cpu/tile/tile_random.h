// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counter-based random words: Threefry-2x32-20 and Philox-4x32-10 of J. Salmon, M. Moraes, R. Dror
// and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011), with the counters that the
// row random_bits documents. Each instruction set compiles its own copy: include this between
// TF_TARGET_…_BEGIN and TF_TARGET_END.

namespace tracefire::cpu {
namespace {

inline uint32_t rotate_left(uint32_t x, int by) { return (x << by) | (x >> (32 - by)); }

struct ThreefryWords {
  uint32_t x0, x1;
};

inline ThreefryWords threefry(uint32_t k0, uint32_t k1, uint32_t high, uint32_t low) {
  const uint32_t k2 = k0 ^ k1 ^ 0x1bd11bdau;
  uint32_t x0 = high + k0;
  uint32_t x1 = low + k1;
#define TF_ROUND(by) \
  x0 += x1;          \
  x1 = rotate_left(x1, by) ^ x0;
#define TF_ROUNDS_A TF_ROUND(13) TF_ROUND(15) TF_ROUND(26) TF_ROUND(6)
#define TF_ROUNDS_B TF_ROUND(17) TF_ROUND(29) TF_ROUND(16) TF_ROUND(24)
  TF_ROUNDS_A x0 += k1;
  x1 += k2 + 1;
  TF_ROUNDS_B x0 += k2;
  x1 += k0 + 2;
  TF_ROUNDS_A x0 += k0;
  x1 += k1 + 3;
  TF_ROUNDS_B x0 += k1;
  x1 += k2 + 4;
  TF_ROUNDS_A x0 += k2;
  x1 += k0 + 5;
#undef TF_ROUNDS_A
#undef TF_ROUNDS_B
#undef TF_ROUND
  return {x0, x1};
}

/// One element of each width from the two words.
inline void store_threefry(ThreefryWords w, uint32_t* out) { *out = w.x0 ^ w.x1; }
inline void store_threefry(ThreefryWords w, uint64_t* out) {
  *out = (static_cast<uint64_t>(w.x0) << 32) | w.x1;
}

template <class Word>
void threefry_words(void* out, const uint32_t* key, uint64_t first, int64_t n) {
  Word* o = static_cast<Word*>(out);
  const uint32_t k0 = key[0], k1 = key[1];
  while (n > 0) {
    // As far as the high word of the counter stays the same; only the low one varies then.
    const uint64_t room = (uint64_t{1} << 32) - (first & 0xffffffffu);
    const uint32_t count = static_cast<uint32_t>(static_cast<uint64_t>(n) < room ? n : room);
    const uint32_t high = static_cast<uint32_t>(first >> 32), low = static_cast<uint32_t>(first);
    TF_IVDEP
    for (uint32_t i = 0; i < count; ++i) store_threefry(threefry(k0, k1, high, low + i), o + i);
    o += count;
    first += count;
    n -= count;
  }
}

struct PhiloxWords {
  uint32_t x0, x1, x2, x3;
};

inline PhiloxWords philox(uint32_t k0, uint32_t k1, uint64_t block) {
  uint32_t x0 = static_cast<uint32_t>(block), x1 = static_cast<uint32_t>(block >> 32);
  uint32_t x2 = 0, x3 = 0;
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xd2511f53u} * x0, p1 = uint64_t{0xcd9e8d57u} * x2;
    const uint32_t y0 = static_cast<uint32_t>(p1 >> 32) ^ x1 ^ k0;
    const uint32_t y2 = static_cast<uint32_t>(p0 >> 32) ^ x3 ^ k1;
    x1 = static_cast<uint32_t>(p1);
    x3 = static_cast<uint32_t>(p0);
    x0 = y0;
    x2 = y2;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return {x0, x1, x2, x3};
}

inline uint32_t philox_word(const PhiloxWords& w, uint64_t which) {
  return which == 0 ? w.x0 : which == 1 ? w.x1 : which == 2 ? w.x2 : w.x3;
}

void philox32(void* out, const uint32_t* key, uint64_t first, int64_t n) {
  uint32_t* o = static_cast<uint32_t*>(out);
  const uint32_t k0 = key[0], k1 = key[1];
  int64_t i = 0;
  for (; i < n && ((first + static_cast<uint64_t>(i)) & 3) != 0; ++i) {
    const uint64_t at = first + static_cast<uint64_t>(i);
    o[i] = philox_word(philox(k0, k1, at / 4), at % 4);
  }
  const uint64_t block = (first + static_cast<uint64_t>(i)) / 4;
  const int64_t blocks = (n - i) / 4;
  uint32_t* whole = o + i;
  TF_IVDEP
  for (int64_t b = 0; b < blocks; ++b) {
    const PhiloxWords w = philox(k0, k1, block + static_cast<uint64_t>(b));
    whole[4 * b] = w.x0;
    whole[4 * b + 1] = w.x1;
    whole[4 * b + 2] = w.x2;
    whole[4 * b + 3] = w.x3;
  }
  for (i += 4 * blocks; i < n; ++i) {
    const uint64_t at = first + static_cast<uint64_t>(i);
    o[i] = philox_word(philox(k0, k1, at / 4), at % 4);
  }
}

void philox64(void* out, const uint32_t* key, uint64_t first, int64_t n) {
  uint64_t* o = static_cast<uint64_t*>(out);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t at = first + static_cast<uint64_t>(i);
    const PhiloxWords w = philox(key[0], key[1], at / 2);
    const uint32_t low = at % 2 == 0 ? w.x0 : w.x2, high = at % 2 == 0 ? w.x1 : w.x3;
    o[i] = (static_cast<uint64_t>(high) << 32) | low;
  }
}

void fill_all_random(TileTable* table) {
  table->threefry32 = threefry_words<uint32_t>;
  table->threefry64 = threefry_words<uint64_t>;
  table->philox32 = philox32;
  table->philox64 = philox64;
}

}  // namespace
}  // namespace tracefire::cpu
