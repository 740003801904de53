// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backends/cpu/move/element.h"
#include "backends/cpu/tile/isa_target.h"

#if TF_X86_64
#include <emmintrin.h>
#endif

namespace tracefire::cpu {

/// A matrix and its transpose: out[r * to + c] = in[c * from + r], all in elements.
template <class T>
struct Transpose {
  T* out;
  const T* in;
  int64_t to, from;

  Transpose at(int64_t row, int64_t column) const {
    return {out + row * to + column, in + column * from + row, to, from};
  }
  void element_by_element(int64_t rows, int64_t columns) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) out[r * to + c] = in[c * from + r];
    }
  }
};

/// Strips that fill a few cache lines on both sides. They are turned inside a buffer: source and
/// target lines lie a row apart, often a power of two, where a cache has room for eight of them.
template <class T>
class StripTranspose {
 public:
  /// Elements of a cache line: the rows of a strip.
  static constexpr int64_t kSide = 64 / static_cast<int64_t>(sizeof(T));
  /// Columns of a wide strip.
  static constexpr int64_t kWidest = 4 * kSide;

  /// kSide rows of `width` columns, a multiple of kSide. `past_caches` writes whole lines of the
  /// target to memory without reading them first.
  static void run(const Transpose<T>& t, int64_t width, bool past_caches) {
    alignas(64) Vector rows[kSide][kWidest / kLanes];
    for (int64_t c = 0; c < width; c += kLanes) {
      for (int64_t r = 0; r < kSide; r += kLanes) turn(t.at(r, c), rows + r, c / kLanes);
    }
    for (int64_t r = 0; r < kSide; ++r) {
      const T* row = reinterpret_cast<const T*>(rows[r]);
      if (past_caches) {
        stream(t.out + r * t.to, row, width);
      } else {
        std::memcpy(t.out + r * t.to, row, static_cast<size_t>(width) * sizeof(T));
      }
    }
  }
  /// Asks for the source lines of a strip.
  static void prefetch(const Transpose<T>& t, int64_t width) {
    for (int64_t c = 0; c < width; ++c) __builtin_prefetch(t.in + c * t.from, 0, 2);
  }

 private:
  static constexpr int64_t kLanes = 16 / static_cast<int64_t>(sizeof(T));
  typedef T Vector __attribute__((vector_size(16)));

  static Vector low_halves(Vector a, Vector b) {
#if defined(__clang__) || __GNUC__ >= 12
    if constexpr (kLanes == 16) {
      return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    } else if constexpr (kLanes == 8) {
      return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    } else if constexpr (kLanes == 4) {
      return __builtin_shufflevector(a, b, 0, 4, 1, 5);
    } else {
      return __builtin_shufflevector(a, b, 0, 2);
    }
#else
    Vector which;
    for (int64_t i = 0; i < kLanes; ++i) which[i] = static_cast<T>(i / 2 + i % 2 * kLanes);
    return __builtin_shuffle(a, b, which);
#endif
  }
  static Vector high_halves(Vector a, Vector b) {
#if defined(__clang__) || __GNUC__ >= 12
    if constexpr (kLanes == 16) {
      return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                     31);
    } else if constexpr (kLanes == 8) {
      return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    } else if constexpr (kLanes == 4) {
      return __builtin_shufflevector(a, b, 2, 6, 3, 7);
    } else {
      return __builtin_shufflevector(a, b, 1, 3);
    }
#else
    Vector which;
    for (int64_t i = 0; i < kLanes; ++i) {
      which[i] = static_cast<T>((kLanes + i) / 2 + i % 2 * kLanes);
    }
    return __builtin_shuffle(a, b, which);
#endif
  }

  /// kLanes x kLanes elements in registers: each round interleaves rows that are half the
  /// square apart; after log2(kLanes) rounds rows are columns.
  static void turn(const Transpose<T>& t, Vector (*rows)[kWidest / kLanes], int64_t vector) {
    Vector v[kLanes], w[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) std::memcpy(&v[i], t.in + i * t.from, sizeof v[i]);
    for (int64_t round = 1; round < kLanes; round *= 2) {
      for (int64_t i = 0; i < kLanes / 2; ++i) {
        w[2 * i] = low_halves(v[i], v[i + kLanes / 2]);
        w[2 * i + 1] = high_halves(v[i], v[i + kLanes / 2]);
      }
      for (int64_t i = 0; i < kLanes; ++i) v[i] = w[i];
    }
    for (int64_t i = 0; i < kLanes; ++i) rows[i][vector] = v[i];
  }

  /// Whole lines past the caches, what is left of them at both ends as usual.
  static void stream(T* out, const T* row, int64_t n) {
    int64_t i = 0;
#if TF_X86_64
    const int64_t ahead = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(out) % 64 / sizeof(T));
    for (; i < std::min(ahead, n); ++i) out[i] = row[i];
    for (; i + kSide <= n; i += kSide) {
      for (int64_t k = i; k < i + kSide; k += kLanes) {
        __m128i bits;
        std::memcpy(&bits, row + k, sizeof bits);
        _mm_stream_si128(reinterpret_cast<__m128i*>(out + k), bits);
      }
    }
#endif
    for (; i < n; ++i) out[i] = row[i];
  }
};

/// Makes what was written past the caches visible to other threads.
inline void finish_streams() {
#if TF_X86_64
  _mm_sfence();
#endif
}

/// Transposes `rows` x `columns`, counted on the target's side. A caller that asks for
/// `past_caches` calls finish_streams() when it is done.
template <class T>
void transpose(const Transpose<T>& t, int64_t rows, int64_t columns, bool past_caches) {
  if constexpr (std::is_unsigned_v<T>) {
    using Strip = StripTranspose<T>;
    constexpr int64_t kSide = Strip::kSide;
    if (rows >= kSide && columns >= kSide) {
      const int64_t whole_rows = rows / kSide * kSide, whole_columns = columns / kSide * kSide;
      for (int64_t c = 0; c < whole_columns; c += Strip::kWidest) {
        const int64_t width = std::min(Strip::kWidest, whole_columns - c);
        const int64_t next = std::min(Strip::kWidest, whole_columns - c - width);
        for (int64_t r = 0; r < whole_rows; r += kSide) {
          if (r + kSide < rows) {
            Strip::prefetch(t.at(r + kSide, c), width);
          } else {
            Strip::prefetch(t.at(0, c + width), next);
          }
          Strip::run(t.at(r, c), width, past_caches);
        }
      }
      t.at(whole_rows, 0).element_by_element(rows - whole_rows, whole_columns);
      t.at(0, whole_columns).element_by_element(rows, columns - whole_columns);
      return;
    }
  }
  // Narrow ones: along columns in parts that stay in the first-level cache.
  constexpr int64_t kPart = 512;
  for (int64_t c = 0; c < columns; c += kPart) {
    t.at(0, c).element_by_element(rows, std::min(kPart, columns - c));
  }
}

}  // namespace tracefire::cpu
