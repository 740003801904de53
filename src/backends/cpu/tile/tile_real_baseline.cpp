// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tile/isa_target.h"
#include "backends/cpu/tile/tile_table.h"

#include "backends/cpu/tile/math_f32.h"
#include "backends/cpu/tile/tile_map.h"
#include "backends/cpu/tile/tile_real.h"

namespace tracefire::cpu {
void fill_real_baseline(TileTable* table) { fill_all_real(table); }
}  // namespace tracefire::cpu
