// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph.h"

namespace tracefire {

std::string ValueType::str() const { return std::string(dtype_name(dtype)) + shape.str(); }

UseCounts::UseCounts(const Graph& graph) : params_(graph.params.size()) {
  nodes_.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) nodes_.emplace_back(node.outputs.size());
  auto use = [this](Value value) {
    if (!value.valid()) return;
    size_t index = static_cast<size_t>(value.index);
    ++(value.is_param() ? params_ : nodes_[static_cast<size_t>(value.node)])[index];
  };
  for (const Node& node : graph.nodes) {
    for (Value input : node.inputs) use(input);
  }
  for (const ResultValue& result : graph.results) use(result.value);
}

int UseCounts::of(Value value) const {
  size_t index = static_cast<size_t>(value.index);
  return (value.is_param() ? params_ : nodes_[static_cast<size_t>(value.node)])[index];
}

}  // namespace tracefire
