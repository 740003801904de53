// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/vector/row_functions.h"

#include "backends/cpu/tile/isa_target.h"

namespace tracefire::cpu {

const RowFunctions& row_functions() {
  static const RowFunctions functions = [] {
    RowFunctions chosen;
    fill_rows_baseline(&chosen);
#if TF_X86_64
    if (best_isa() >= Isa::kAvx2) fill_rows_avx2(&chosen);
    if (best_isa() >= Isa::kAvx512) fill_rows_avx512(&chosen);
#endif
    return chosen;
  }();
  return functions;
}

}  // namespace tracefire::cpu
