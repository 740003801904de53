// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "backends/cpu/tile/isa_target.h"
#include "backends/cpu/tile/tile_table.h"

#include "backends/cpu/tile/tile_map.h"
#include "backends/cpu/tile/tile_int.h"

namespace tracefire::cpu {
void fill_int_baseline(TileTable* table) { fill_all_int(table); }
}  // namespace tracefire::cpu
