// SPDX-License-Identifier: Apache-2.0
#include "core/compile/passes/expansion.h"

#include "core/compile/known_ops.h"

namespace tracefire {
namespace {

/// one_hot as a comparison with the index, so that it becomes part of a loop.
std::vector<Value> expand_one_hot(Builder& b, const Node& node, const std::vector<Value>& inputs) {
  const int64_t depth = node.attrs.integer("depth");
  const Shape full = node.outputs[0].shape;
  Value indices = inputs[0];
  // Narrow indices would meet the same number twice where the depth is beyond their range.
  const DType dtype = dtype_size(b.dtype(indices)) < 4 ? DType::kI32 : b.dtype(indices);
  if (dtype != b.dtype(indices)) indices = b.op("cast", {indices}, {{"dtype", dtype}});
  // The classes lie on their own axis of the result; both sides have 1 where the other one varies.
  const int rank = full.rank();
  const int64_t given = node.attrs.integer("axis");
  const int axis = static_cast<int>(given < 0 ? given + rank : given);
  Shape column, classes;
  for (int i = 0; i < rank; ++i) column.push_back(i == axis ? Dim(1) : full[i]);
  for (int i = axis; i < rank; ++i) classes.push_back(i == axis ? depth : 1);
  const Value wanted = b.op("reshape", {indices}, {{"shape", column}});
  const Value place =
      b.op("iota", {}, {{"dtype", dtype}, {"shape", classes}, {"axis", int64_t{0}}});
  const Value hit = b.op("equal", {wanted, place});
  if (node.outputs[0].dtype == DType::kBool) return {hit};
  return {b.op("cast", {hit}, {{"dtype", node.outputs[0].dtype}})};
}

bool one_hot_expands(const Node& node) {
  const int64_t depth = node.attrs.integer("depth");
  return depth > 0 && depth <= std::numeric_limits<int32_t>::max();
}

}  // namespace

DecomposeFn expansion(const Node& node) {
  if (node.op == KnownOps::get().one_hot && one_hot_expands(node)) return expand_one_hot;
  return OpTable::instance().row(node.op).decompose;
}

bool expansion_fuses(const Node& node) {
  const KnownOps& known = KnownOps::get();
  if (node.op == known.one_hot) return one_hot_expands(node);
  // Loops draw words of at most 32 bits and count from 0.
  return node.op == known.random_uniform && node.inputs.size() == 1 &&
         node.outputs[0].dtype != DType::kF64;
}

}  // namespace tracefire
