// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tile/isa_target.h"
#include "backends/cpu/tile/tile_table.h"

#include "backends/cpu/tile/tile_random.h"

namespace tracefire::cpu {
void fill_random_baseline(TileTable* table) { fill_all_random(table); }
}  // namespace tracefire::cpu
