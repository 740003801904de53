// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/matmul/gemm.h"
#include "backends/cpu/tile/isa_target.h"

#if TF_X86_64
#include <immintrin.h>

TF_TARGET_AVX2_BEGIN
#include "backends/cpu/matmul/gemm_fma.h"
#include "backends/cpu/matmul/gemm_loops.h"

namespace tracefire::cpu {
namespace {

struct Doubles {
  using Element = double;
  using Vector = __m256d;
  static constexpr int kLanes = 4, kVectors = 3, kRows = 4;
  static Vector zero() { return _mm256_setzero_pd(); }
  static Vector load(const double* from) { return _mm256_loadu_pd(from); }
  static void store(double* to, Vector v) { _mm256_storeu_pd(to, v); }
  static Vector repeat(double x) { return _mm256_set1_pd(x); }
  static Vector fma(Vector x, Vector y, Vector z) { return _mm256_fmadd_pd(x, y, z); }
};

struct Floats {
  using Element = float;
  using Vector = __m256;
  static constexpr int kLanes = 8, kVectors = 3, kRows = 4;
  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Vector v) { _mm256_storeu_ps(to, v); }
  static Vector repeat(float x) { return _mm256_set1_ps(x); }
  static Vector fma(Vector x, Vector y, Vector z) { return _mm256_fmadd_ps(x, y, z); }
};

}  // namespace

void fill_gemm_avx2(GemmTable* table) {
  fill_all_gemms(table);
  table->functions[static_cast<size_t>(RegType::kF32)] = fma_gemm<Floats>;
  table->functions[static_cast<size_t>(RegType::kF64)] = fma_gemm<Doubles>;
}

}  // namespace tracefire::cpu
TF_TARGET_END
#endif
