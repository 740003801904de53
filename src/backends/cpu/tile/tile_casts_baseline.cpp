// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "backends/cpu/tile/isa_target.h"
#include "backends/cpu/tile/tile_table.h"
#include "tracefire/half.h"

#include "backends/cpu/tile/tile_map.h"
#include "backends/cpu/tile/tile_casts.h"

namespace tracefire::cpu {
void fill_casts_baseline(TileTable* table) { fill_all_casts(table); }
}  // namespace tracefire::cpu
