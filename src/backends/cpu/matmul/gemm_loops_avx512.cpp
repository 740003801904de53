// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/matmul/gemm.h"
#include "backends/cpu/tile/isa_target.h"

#if TF_X86_64
#include <immintrin.h>

TF_TARGET_AVX512_BEGIN
#include "backends/cpu/matmul/gemm_fma.h"

namespace tracefire::cpu {
namespace {

struct Doubles {
  using Element = double;
  using Vector = __m512d;
  static constexpr int kLanes = 8, kVectors = 3, kRows = 8;
  static Vector zero() { return _mm512_setzero_pd(); }
  static Vector load(const double* from) { return _mm512_loadu_pd(from); }
  static void store(double* to, Vector v) { _mm512_storeu_pd(to, v); }
  static Vector repeat(double x) { return _mm512_set1_pd(x); }
  static Vector fma(Vector x, Vector y, Vector z) { return _mm512_fmadd_pd(x, y, z); }
};

}  // namespace

void fill_gemm_avx512(GemmTable* table) {
  table->functions[static_cast<size_t>(RegType::kF64)] = fma_gemm<Doubles>;
}

}  // namespace tracefire::cpu
TF_TARGET_END
#endif
