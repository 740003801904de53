// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "backends/cpu/tile/isa_target.h"
#include "backends/cpu/tile/tile_table.h"
#include "tracefire/half.h"

#if TF_X86_64
#include <immintrin.h>
#define TF_TILE_F16C 1

TF_TARGET_AVX2_BEGIN
#include "backends/cpu/tile/tile_map.h"
#include "backends/cpu/tile/tile_casts.h"

namespace tracefire::cpu {
void fill_casts_avx2(TileTable* table) { fill_all_casts(table); }
}  // namespace tracefire::cpu
TF_TARGET_END
#endif
