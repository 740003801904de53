// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tile/isa_target.h"
#include "backends/cpu/vector/row_functions.h"

#if TF_X86_64
TF_TARGET_AVX512_BEGIN
#include "backends/cpu/tile/math_f32.h"
#include "backends/cpu/vector/row_loops.h"

namespace tracefire::cpu {
void fill_rows_avx512(RowFunctions* functions) { fill_all_rows(functions); }
}  // namespace tracefire::cpu
TF_TARGET_END
#endif
