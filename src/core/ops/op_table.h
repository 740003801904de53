// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "core/graph/op_set.h"
#include "core/ops/op_row.h"

namespace tracefire {

/// All rows, in a fixed order: the index is the OpId of this process (files hold names).
class OpTable final : public OpSet {
 public:
  static const OpTable& instance();

  std::span<const OpRow> rows() const { return rows_; }
  const OpRow& row(OpId op) const { return rows_[op]; }
  /// The OpId of `name`; a name that does not exist is a bug and throws kInternal.
  OpId id(std::string_view name) const;

  std::string_view name(OpId op) const override { return rows_[op].name; }
  std::optional<OpId> find(std::string_view name) const override;
  int version(OpId op) const override { return rows_[op].version; }
  Status infer(const std::vector<ValueType>& inputs, Node* node) const override;
  std::string_view effect(OpId op) const override { return rows_[op].effect; }

 private:
  OpTable();
  std::vector<OpRow> rows_;
  std::vector<std::pair<std::string_view, OpId>> by_name_;  // sorted
};

/// The error for a name that no row has, with the closest one that exists.
Status unknown_op(std::string_view name);

/// The node with numbers for its symbols, in result types and shape attributes.
Node bind_node(const Node& node, const DimEnv& env);

/// Work of a node with bound sizes. A control node adds its regions: one pass through a loop, the
/// dearer of two branches.
Cost node_cost(const Graph& graph, const Node& node, const DimEnv& env);

// Families; each file of this room defines one.
std::vector<OpRow> elementwise_rows();
std::vector<OpRow> movement_rows();
std::vector<OpRow> reduction_rows();
std::vector<OpRow> product_rows();
std::vector<OpRow> random_rows();
std::vector<OpRow> composite_rows();
std::vector<OpRow> control_rows();
std::vector<OpRow> host_rows();

}  // namespace tracefire
