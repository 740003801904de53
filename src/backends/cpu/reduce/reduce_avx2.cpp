// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <type_traits>

#include "backends/cpu/reduce/reduce_table.h"
#include "backends/cpu/tile/isa_target.h"

#if TF_X86_64
TF_TARGET_AVX2_BEGIN
#include "backends/cpu/reduce/reduce_lanes.h"

namespace tracefire::cpu {
void fill_reduce_avx2(ReduceTable* table) { fill_all_reductions(table); }
}  // namespace tracefire::cpu
TF_TARGET_END
#endif
