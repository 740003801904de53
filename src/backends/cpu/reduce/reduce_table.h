// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/tile/tile_table.h"

namespace tracefire::cpu {

/// What reductions are made of; mean is a sum that is divided, any and all are max and min of bool.
enum class ReduceOp : uint8_t { kSum, kProd, kMax, kMin };
constexpr size_t kReduceOps = 4;

/// Most columns that ReduceFunctions::columns takes at once.
constexpr int64_t kColumnBlock = 1024;

/// A reduction of elements of one register type. Accumulators are wider than elements where that
/// keeps digits: float sums collect in lanes of float over a short stretch, then in double.
struct ReduceFunctions {
  size_t acc_size = 0;  ///< bytes of one accumulator; at most 8
  void (*init)(void* acc, int64_t n) = nullptr;
  /// acc[0] takes in x[0 … n-1], adjacent.
  void (*row)(void* acc, const void* x, int64_t n) = nullptr;
  /// acc[j] takes in x[r * stride + j] for all rows r; width <= kColumnBlock.
  void (*columns)(void* acc, const void* x, int64_t rows, int64_t stride,
                  int64_t width) = nullptr;
  /// acc[i] takes in other[i].
  void (*merge)(void* acc, const void* other, int64_t n) = nullptr;
  /// out[i] = acc[i] / count as an element of the register type.
  void (*finish)(void* out, const void* acc, int64_t n, double count) = nullptr;
};

/// The best functions for this machine, or those for `isa` where the machine has it; row is null
/// where the type has no such reduction.
const ReduceFunctions& reduce_functions(ReduceOp op, RegType type);
const ReduceFunctions* reduce_functions(ReduceOp op, RegType type, Isa isa);

struct ReduceTable {
  ReduceFunctions entries[kReduceOps][kRegTypes];
};
void fill_reduce_baseline(ReduceTable* table);
void fill_reduce_avx2(ReduceTable* table);

}  // namespace tracefire::cpu
