// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/reduce/reduce_table.h"

#include "backends/cpu/tile/isa_target.h"

namespace tracefire::cpu {
namespace {

ReduceTable make_table(Isa isa) {
  ReduceTable table;
  fill_reduce_baseline(&table);
#if TF_X86_64
  if (isa >= Isa::kAvx2) fill_reduce_avx2(&table);
#else
  (void)isa;
#endif
  return table;
}

}  // namespace

const ReduceFunctions* reduce_functions(ReduceOp op, RegType type, Isa isa) {
  if (isa > best_isa()) return nullptr;
  static const ReduceTable baseline = make_table(Isa::kBaseline), avx2 = make_table(Isa::kAvx2);
  const ReduceTable& table = isa == Isa::kBaseline ? baseline : avx2;
  return &table.entries[static_cast<size_t>(op)][static_cast<size_t>(type)];
}

const ReduceFunctions& reduce_functions(ReduceOp op, RegType type) {
  return *reduce_functions(op, type, best_isa());
}

}  // namespace tracefire::cpu
