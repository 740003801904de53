// SPDX-License-Identifier: Apache-2.0
#pragma once

// A blocked product of floating types where there are fused multiply-adds: strips of B are packed
// as wide as the sums that the registers hold, and rows of A are read where they are (K. Goto and
// R. van de Geijn, "Anatomy of high-performance matrix multiplication", 2008, without the copy of
// A). Include this between TF_TARGET_…_BEGIN and TF_TARGET_END, after <immintrin.h>. The terms of
// one result are added in the order of k, so blocks change no bits; machines without the
// instruction round each term twice, so their last bits differ, as those of libraries do.

namespace tracefire::cpu {
namespace {

/// Sums of `V::kRows` rows and `V::kVectors` vectors of columns stay in registers.
template <class V>
constexpr int64_t kStrip = int64_t{V::kVectors} * V::kLanes;

/// c [rows, …] = (first ? 0 : c) + a [rows, depth] strip [depth, kStrip], the first `vectors` of a
/// strip's columns.
template <class V, int rows, int vectors>
inline void add_strip(const GemmShape& s, int64_t depth, bool first, const typename V::Element* a,
                      const typename V::Element* strip, typename V::Element* c, int64_t c_row) {
  typename V::Vector sums[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) {
      sums[r][v] = first ? V::zero() : V::load(c + r * c_row + v * V::kLanes);
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    typename V::Vector b[vectors];
    for (int v = 0; v < vectors; ++v) b[v] = V::load(strip + k * kStrip<V> + v * V::kLanes);
    for (int r = 0; r < rows; ++r) {
      const typename V::Vector x = V::repeat(a[r * s.a_row + k * s.a_column]);
      for (int v = 0; v < vectors; ++v) sums[r][v] = V::fma(x, b[v], sums[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) V::store(c + r * c_row + v * V::kLanes, sums[r][v]);
  }
}

/// The last columns, of which a strip has more than C: by way of a buffer.
template <class V, int rows>
inline void add_part(const GemmShape& s, int64_t depth, bool first, const typename V::Element* a,
                     const typename V::Element* strip, typename V::Element* c, int64_t columns) {
  typename V::Element edge[rows * kStrip<V>] = {};
  for (int r = 0; r < rows; ++r) {
    for (int64_t j = 0; !first && j < columns; ++j) edge[r * kStrip<V> + j] = c[r * s.c_row + j];
  }
  if (columns <= V::kLanes) {
    add_strip<V, rows, 1>(s, depth, first, a, strip, edge, kStrip<V>);
  } else {
    add_strip<V, rows, V::kVectors>(s, depth, first, a, strip, edge, kStrip<V>);
  }
  for (int r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) c[r * s.c_row + j] = edge[r * kStrip<V> + j];
  }
}

template <class V, int rows>
inline void add_rows(const GemmShape& s, int64_t depth, bool first, const typename V::Element* a,
                     const typename V::Element* strips, typename V::Element* c, int64_t columns) {
  for (int64_t j = 0; j < columns; j += kStrip<V>, strips += depth * kStrip<V>) {
    if (columns - j >= kStrip<V>) {
      add_strip<V, rows, V::kVectors>(s, depth, first, a, strips, c + j, s.c_row);
    } else {
      add_part<V, rows>(s, depth, first, a, strips, c + j, columns - j);
    }
  }
}

/// Rows [k, k + depth) and columns [j, j + columns) of B, strip by strip.
template <class V>
inline void pack(const GemmShape& s, const typename V::Element* b, int64_t depth, int64_t columns,
                 typename V::Element* strips) {
  for (int64_t j = 0; j < columns; j += kStrip<V>) {
    const int64_t count = columns - j < kStrip<V> ? columns - j : kStrip<V>;
    for (int64_t k = 0; k < depth; ++k, strips += kStrip<V>) {
      const typename V::Element* row = b + k * s.b_row + j * s.b_column;
      if (s.b_column == 1 && count == kStrip<V>) {
        for (int64_t i = 0; i < kStrip<V>; i += V::kLanes) V::store(strips + i, V::load(row + i));
        continue;
      }
      for (int64_t i = 0; i < count; ++i) strips[i] = row[i * s.b_column];
      for (int64_t i = count; i < kStrip<V>; ++i) strips[i] = 0;
    }
  }
}

template <class V>
void fma_gemm(const GemmShape& s, const void* a_data, const void* b_data, void* c_data) {
  using T = typename V::Element;
  // Packed strips of this many rows and columns of B stay in the second cache.
  constexpr int64_t kDeep = 256, kWide = 2048 / sizeof(T) / kStrip<V> * kStrip<V>;
  const T* a = static_cast<const T*>(a_data);
  const T* b = static_cast<const T*>(b_data);
  T* c = static_cast<T*>(c_data);
  T* strips = static_cast<T*>(packing_buffer(kDeep * kWide * sizeof(T)));
  for (int64_t j = 0; j < s.n; j += kWide) {
    const int64_t columns = s.n - j < kWide ? s.n - j : kWide;
    for (int64_t k = 0; k < s.k; k += kDeep) {
      const int64_t depth = s.k - k < kDeep ? s.k - k : kDeep;
      pack<V>(s, b + k * s.b_row + j * s.b_column, depth, columns, strips);
      const T* left = a + k * s.a_column;
      int64_t i = 0;
      for (; i + V::kRows <= s.m; i += V::kRows) {
        add_rows<V, V::kRows>(s, depth, k == 0, left + i * s.a_row, strips, c + i * s.c_row + j,
                              columns);
      }
      for (; i + 2 <= s.m; i += 2) {
        add_rows<V, 2>(s, depth, k == 0, left + i * s.a_row, strips, c + i * s.c_row + j, columns);
      }
      if (i < s.m) {
        add_rows<V, 1>(s, depth, k == 0, left + i * s.a_row, strips, c + i * s.c_row + j, columns);
      }
    }
  }
}

}  // namespace
}  // namespace tracefire::cpu
