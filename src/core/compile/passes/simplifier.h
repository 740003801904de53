// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "core/compile/constants.h"
#include "core/compile/known_ops.h"
#include "core/graph/builder.h"

namespace tracefire {

/// Rewrites a graph node by node. A node that comes in has its operands in the new graph; out comes
/// a value that stands for it: an existing one, a simpler node, or the node itself. What rules make
/// goes through the rules again, so that one walk is nearly enough.
class Simplifier {
 public:
  explicit Simplifier(const Graph& source);
  Result<GraphPtr> run();
  /// True where a rule or an equal node replaced something.
  bool changed() const { return changed_; }

 private:
  /// The value for `node` (one result), by the rules below, an equal node, or a new one.
  Value simplified(Node node);
  /// Equal node, or a new one.
  Value add(Node node);
  /// A node made by a rule, with place and origin of the node being simplified.
  Value make(OpId op, std::vector<Value> inputs, Attrs attrs = {});
  Value make_constant(const Scalar& scalar, const Shape& shape);

  // Rules: the value that stands for the node, or an invalid one. simplify_rules.cpp.
  Value rule(const Node& node);
  Value constants(const Node& node);
  Value arithmetic(const Node& node);
  Value implicit_broadcast(const Node& node);
  Value cast(const Node& node);
  Value select(const Node& node);
  Value reshape(const Node& node);
  Value broadcast(const Node& node);
  Value transpose(const Node& node);
  Value reduction(const Node& node);
  Value matmul(const Node& node);

  const Shape& shape(Value value) const { return builder_.graph().type(value).shape; }
  DType dtype(Value value) const { return builder_.graph().type(value).dtype; }
  /// The node that makes `value` where it is an `op`, else null. Valid until a node is added.
  const Node* producer(Value value, OpId op) const;
  /// The one number that `value` consists of, where it is known.
  std::optional<Scalar> number(Value value) const;
  bool is_number(Value value, double wanted) const;
  /// `value` where it has the node's shape; broadcast to it otherwise.
  Value shaped(Value value, const Node& node);
  Value reshaped(Value value, const Shape& to);

  const OpTable& table_;
  const KnownOps& known_;
  const Graph& source_;
  Rewriter rewriter_;
  Builder& builder_;
  Node origin_;  ///< device, location and name of what rules make
  std::unordered_multimap<size_t, int32_t> seen_;
  bool changed_ = false;
};

}  // namespace tracefire
