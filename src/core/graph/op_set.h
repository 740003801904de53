// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "core/graph/graph.h"

namespace tracefire {

/// What graph code may ask about ops without knowing the op table, which implements it.
class OpSet {
 public:
  virtual ~OpSet() = default;
  virtual std::string_view name(OpId op) const = 0;
  virtual std::optional<OpId> find(std::string_view name) const = 0;
  virtual int version(OpId op) const = 0;
  /// Fills defaults, checks arity, attributes, regions, and infers `node->outputs` from the input
  /// types. The one place where shapes are computed.
  virtual Status infer(const std::vector<ValueType>& inputs, Node* node) const = 0;
  /// Class of the effect chain the op belongs to ("print", "host", …), or "" where it has none.
  virtual std::string_view effect(OpId op) const = 0;
};

}  // namespace tracefire
