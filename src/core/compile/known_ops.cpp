// SPDX-License-Identifier: Apache-2.0
#include "core/compile/known_ops.h"

namespace tracefire {

KnownOps::KnownOps() {
  const OpTable& table = OpTable::instance();
  constant = table.id("constant");
  iota = table.id("iota");
  random_bits = table.id("random_bits");
  reshape = table.id("reshape");
  broadcast_to = table.id("broadcast_to");
  transpose = table.id("transpose");
  cast = table.id("cast");
  bitcast = table.id("bitcast");
  stop_gradient = table.id("stop_gradient");
  select = table.id("select");
  one_hot = table.id("one_hot");
  copy = table.id("copy");
  token = table.id("token");
  fused = table.id("fused");
  random_uniform = table.id("random_uniform");
  matmul = table.id("matmul");
  add = table.id("add");
  sub = table.id("sub");
  mul = table.id("mul");
  div = table.id("div");
  pow = table.id("pow");
  neg = table.id("neg");
  sqrt = table.id("sqrt");
  square = table.id("square");
  exp = table.id("exp");
  log = table.id("log");
  equal = table.id("equal");
  maximum = table.id("maximum");
  minimum = table.id("minimum");
  logical_not = table.id("logical_not");
  reduce_sum = table.id("reduce_sum");
  reduce_mean = table.id("reduce_mean");
  reduce_max = table.id("reduce_max");
  reduce_min = table.id("reduce_min");
  reduce_prod = table.id("reduce_prod");
  reduce_any = table.id("reduce_any");
  reduce_all = table.id("reduce_all");
  softmax = table.id("softmax");
  log_softmax = table.id("log_softmax");
  if_op = table.id("if");
  while_op = table.id("while");
  call = table.id("call");

  // Rows and loop operations that do the same thing have the same name.
  loop_ops_.resize(table.rows().size());
  for (int i = 0; i < static_cast<int>(LoopOp::kCount); ++i) {
    const LoopOp op = static_cast<LoopOp>(i);
    if (loop_op_operands(op) == 0) continue;
    if (const auto row = table.find(loop_op_name(op))) loop_ops_[*row] = op;
  }
}

const KnownOps& KnownOps::get() {
  static const KnownOps ops;
  return ops;
}

}  // namespace tracefire
