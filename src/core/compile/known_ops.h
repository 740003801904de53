// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "backends/api/loop.h"
#include "core/ops/op_table.h"

namespace tracefire {

/// The ops that passes ask for by name, looked up once a process.
struct KnownOps {
  OpId constant, iota, random_bits, reshape, broadcast_to, transpose, cast, bitcast, stop_gradient,
      select, one_hot, copy, token, fused, random_uniform, matmul;
  OpId add, sub, mul, div, pow, neg, sqrt, square, exp, log, equal, maximum, minimum, logical_not;
  OpId reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_prod, reduce_any, reduce_all;
  OpId softmax, log_softmax;
  OpId if_op, while_op, call;

  static const KnownOps& get();

  /// The loop operation that computes the element-wise op by itself, or nullopt.
  std::optional<LoopOp> loop_op(OpId op) const { return loop_ops_[op]; }
  /// True where the node's regions run as programs of their own: if, while, call, not fused.
  bool has_programs(const Node& node) const { return !node.regions.empty() && node.op != fused; }
  /// Same elements in the same order under another shape: no work is left of these.
  bool is_alias(OpId op) const { return op == reshape || op == stop_gradient; }

 private:
  KnownOps();
  std::vector<std::optional<LoopOp>> loop_ops_;
};

}  // namespace tracefire
