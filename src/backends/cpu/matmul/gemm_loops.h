// SPDX-License-Identifier: Apache-2.0
#pragma once

// A blocked matrix product for types that libraries leave out. Each instruction set compiles its
// own copy: include this between TF_TARGET_…_BEGIN and TF_TARGET_END. The terms of one result are
// added in the order of k, so blocks change no bits.

namespace tracefire::cpu {
namespace {

constexpr int64_t kDepth = 64;     ///< rows of B in a packed panel
constexpr int64_t kWidth = 128;    ///< columns of B in a packed panel
constexpr int64_t kRows = 4;       ///< rows of C that share one pass over the panel

/// c[r][0 … width-1] += sum over k of a[r][k] panel[k][…] for `rows` <= kRows rows, two vectors of
/// columns at a time, so that the sums stay in registers.
template <class T, int rows>
void add_panel(const GemmShape& s, int64_t depth, int64_t width, const T* a, const T* panel,
               T* c) {
  typedef T Vector __attribute__((vector_size(32)));
  constexpr int kLanes = 32 / sizeof(T), kColumns = 2 * kLanes;
  for (int64_t j = 0; j < width; j += kColumns) {
    const int64_t count = width - j < kColumns ? width - j : kColumns;
    alignas(32) T edge[rows][kColumns] = {};
    Vector left[rows], right[rows];
    for (int r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < count; ++i) edge[r][i] = c[r * s.c_row + j + i];
      __builtin_memcpy(&left[r], edge[r], sizeof(Vector));
      __builtin_memcpy(&right[r], edge[r] + kLanes, sizeof(Vector));
    }
    for (int64_t k = 0; k < depth; ++k) {
      Vector first, second;
      __builtin_memcpy(&first, panel + k * kWidth + j, sizeof(Vector));
      __builtin_memcpy(&second, panel + k * kWidth + j + kLanes, sizeof(Vector));
      for (int r = 0; r < rows; ++r) {
        const T x = a[r * s.a_row + k * s.a_column];
        left[r] += x * first;
        right[r] += x * second;
      }
    }
    for (int r = 0; r < rows; ++r) {
      __builtin_memcpy(edge[r], &left[r], sizeof(Vector));
      __builtin_memcpy(edge[r] + kLanes, &right[r], sizeof(Vector));
      for (int64_t i = 0; i < count; ++i) c[r * s.c_row + j + i] = edge[r][i];
    }
  }
}

template <class T>
void gemm_loops(const GemmShape& s, const void* a_data, const void* b_data, void* c_data) {
  const T* a = static_cast<const T*>(a_data);
  const T* b = static_cast<const T*>(b_data);
  T* c = static_cast<T*>(c_data);
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) c[i * s.c_row + j] = T(0);
  }
  alignas(64) T panel[kDepth * kWidth];
  for (int64_t j0 = 0; j0 < s.n; j0 += kWidth) {
    const int64_t width = s.n - j0 < kWidth ? s.n - j0 : kWidth;
    for (int64_t k0 = 0; k0 < s.k; k0 += kDepth) {
      const int64_t depth = s.k - k0 < kDepth ? s.k - k0 : kDepth;
      for (int64_t k = 0; k < depth; ++k) {
        const T* row = b + (k0 + k) * s.b_row + j0 * s.b_column;
        for (int64_t j = 0; j < width; ++j) panel[k * kWidth + j] = row[j * s.b_column];
        for (int64_t j = width; j < kWidth; ++j) panel[k * kWidth + j] = T(0);
      }
      const T* left = a + k0 * s.a_column;
      int64_t i = 0;
      for (; i + kRows <= s.m; i += kRows) {
        add_panel<T, kRows>(s, depth, width, left + i * s.a_row, panel, c + i * s.c_row + j0);
      }
      for (; i < s.m; ++i) {
        add_panel<T, 1>(s, depth, width, left + i * s.a_row, panel, c + i * s.c_row + j0);
      }
    }
  }
}

void fill_all_gemms(GemmTable* table) {
  const auto set = [table](RegType type, GemmFn fn) {
    table->functions[static_cast<size_t>(type)] = fn;
  };
  set(RegType::kF32, gemm_loops<float>);
  set(RegType::kF64, gemm_loops<double>);
  // Words that wrap around; the signs of their values do not matter to sums and products.
  set(RegType::kI8, gemm_loops<uint8_t>);
  set(RegType::kU8, gemm_loops<uint8_t>);
  set(RegType::kI16, gemm_loops<uint16_t>);
  set(RegType::kU16, gemm_loops<uint16_t>);
  set(RegType::kI32, gemm_loops<uint32_t>);
  set(RegType::kU32, gemm_loops<uint32_t>);
  set(RegType::kI64, gemm_loops<uint64_t>);
  set(RegType::kU64, gemm_loops<uint64_t>);
}

}  // namespace
}  // namespace tracefire::cpu
