// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/matmul/gemm.h"
#include "backends/cpu/tile/isa_target.h"

#include "backends/cpu/matmul/gemm_loops.h"

namespace tracefire::cpu {
void fill_gemm_baseline(GemmTable* table) { fill_all_gemms(table); }
}  // namespace tracefire::cpu
