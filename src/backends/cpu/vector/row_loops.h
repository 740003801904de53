// SPDX-License-Identifier: Apache-2.0
#pragma once

// Each instruction set compiles its own copy: include this between TF_TARGET_…_BEGIN and
// TF_TARGET_END, after math_f32.h.

namespace tracefire::cpu {
namespace {

void exp_shifted(float* out, const float* x, float shift, int64_t n) {
  TF_IVDEP
  for (int64_t i = 0; i < n; ++i) out[i] = exp_f32(x[i] - shift);
}

void subtract(float* out, const float* x, float shift, int64_t n) {
  TF_IVDEP
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] - shift;
}

void scale(float* out, const float* x, float factor, float divisor, int64_t n) {
  TF_IVDEP
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * factor / divisor;
}

void adam(const AdamNumbers& numbers, const float* const in[4], float* const out[3], int64_t n) {
  const AdamNumbers k = numbers;
  const float *param = in[0], *grad = in[1], *mean = in[2], *square = in[3];
  float *new_param = out[0], *new_mean = out[1], *new_square = out[2];
  TF_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    const float p = param[i], g = grad[i], m0 = mean[i], v0 = square[i];
    const float m = m0 + (g - m0) * k.keep_mean;
    const float v = v0 + (g * g - v0) * k.keep_square;
    new_param[i] = p - m * k.alpha / (__builtin_sqrtf(v) + k.epsilon);
    new_mean[i] = m;
    new_square[i] = v;
  }
}

void fill_all_rows(RowFunctions* functions) { *functions = {exp_shifted, subtract, scale, adam}; }

}  // namespace
}  // namespace tracefire::cpu
