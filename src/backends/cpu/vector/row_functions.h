// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "backends/cpu/tile/tile_table.h"

namespace tracefire::cpu {

/// Numbers of one Adam step that do not depend on the element.
struct AdamNumbers {
  float alpha;      ///< learning_rate sqrt(1 - beta2^t) / (1 - beta1^t)
  float keep_mean;  ///< 1 - beta1
  float keep_square;
  float epsilon;
};

/// Loops over adjacent f32 elements that composite kernels are made of.
struct RowFunctions {
  /// out[i] = e^(x[i] - shift)
  void (*exp_shifted)(float* out, const float* x, float shift, int64_t n) = nullptr;
  /// out[i] = x[i] - shift
  void (*subtract)(float* out, const float* x, float shift, int64_t n) = nullptr;
  /// out[i] = x[i] * factor / divisor
  void (*scale)(float* out, const float* x, float factor, float divisor, int64_t n) = nullptr;
  /// One step of Adam; results may be written over inputs.
  void (*adam)(const AdamNumbers& numbers, const float* const in[4], float* const out[3],
               int64_t n) = nullptr;
};

const RowFunctions& row_functions();

void fill_rows_baseline(RowFunctions* functions);
void fill_rows_avx2(RowFunctions* functions);
void fill_rows_avx512(RowFunctions* functions);

}  // namespace tracefire::cpu
