// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tile/isa_target.h"
#include "backends/cpu/tile/tile_table.h"

#if TF_X86_64
TF_TARGET_AVX2_BEGIN
#include "backends/cpu/tile/math_f32.h"
#include "backends/cpu/tile/tile_map.h"
#include "backends/cpu/tile/tile_real.h"

namespace tracefire::cpu {
void fill_real_avx2(TileTable* table) { fill_all_real(table); }
}  // namespace tracefire::cpu
TF_TARGET_END
#endif
