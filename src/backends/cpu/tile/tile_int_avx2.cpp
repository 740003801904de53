// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "backends/cpu/tile/isa_target.h"
#include "backends/cpu/tile/tile_table.h"

#if TF_X86_64
TF_TARGET_AVX2_BEGIN
#include "backends/cpu/tile/tile_map.h"
#include "backends/cpu/tile/tile_int.h"

namespace tracefire::cpu {
void fill_int_avx2(TileTable* table) { fill_all_int(table); }
}  // namespace tracefire::cpu
TF_TARGET_END
#endif
