// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tile/isa_target.h"
#include "backends/cpu/vector/row_functions.h"

#include "backends/cpu/tile/math_f32.h"
#include "backends/cpu/vector/row_loops.h"

namespace tracefire::cpu {
void fill_rows_baseline(RowFunctions* functions) { fill_all_rows(functions); }
}  // namespace tracefire::cpu
