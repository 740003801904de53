// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <type_traits>

#include "backends/cpu/reduce/reduce_table.h"
#include "backends/cpu/tile/isa_target.h"

#include "backends/cpu/reduce/reduce_lanes.h"

namespace tracefire::cpu {
void fill_reduce_baseline(ReduceTable* table) { fill_all_reductions(table); }
}  // namespace tracefire::cpu
