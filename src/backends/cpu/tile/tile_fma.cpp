// SPDX-License-Identifier: Apache-2.0
// fma has a file of its own: where compilers may use its instruction, they also put it in place of
// a product and a sum, which must round twice elsewhere.

#include "backends/cpu/tile/isa_target.h"
#include "backends/cpu/tile/tile_table.h"

#if TF_X86_64
TF_TARGET_FMA_BEGIN
#include "backends/cpu/tile/tile_map.h"

namespace tracefire::cpu {
void fill_fma_x86(TileTable* table) { set_fma(table); }
}  // namespace tracefire::cpu
TF_TARGET_END
#endif
