// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/matmul/gemm.h"
#include "backends/cpu/tile/isa_target.h"

#if TF_X86_64
TF_TARGET_AVX2_BEGIN
#include "backends/cpu/matmul/gemm_loops.h"

namespace tracefire::cpu {
void fill_gemm_avx2(GemmTable* table) { fill_all_gemms(table); }
}  // namespace tracefire::cpu
TF_TARGET_END
#endif
