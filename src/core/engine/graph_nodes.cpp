// SPDX-License-Identifier: Apache-2.0
// A function's graph for graph viewers.
#include "core/engine/function_state.h"
#include "core/ops/op_table.h"

namespace tracefire {

std::vector<GraphNode> Function::nodes() const {
  const Graph& graph = *state().lowered.graph;
  std::vector<GraphNode> out;
  for (size_t i = 0; i < graph.params.size(); ++i) {
    const Param& param = graph.params[i];
    const char* op = param.kind == ParamKind::kSlot    ? "Variable"
                     : param.kind == ParamKind::kInput ? "Placeholder"
                                                       : "Effects";
    out.push_back({concat_text(param.name.empty() ? "parameter" : param.name, '_', i),
                   op,
                   param.device.is_set() ? param.device.str() : "",
                   param.type.str(),
                   "",
                   {}});
  }
  const size_t params = out.size();
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const std::string op(OpTable::instance().name(node.op));
    GraphNode described{concat_text(node.name.empty() ? op : node.name, '_', i),
                        op,
                        node.device.is_set() ? node.device.str() : "",
                        node.outputs.empty() ? "" : node.outputs[0].str(),
                        "",
                        {}};
    if (node.location.file != nullptr) described.location = node.location.str();
    for (const Value input : node.inputs) {
      const auto at = input.is_param() ? static_cast<size_t>(input.index)
                                       : params + static_cast<size_t>(input.node);
      described.inputs.push_back(out[at].name);
    }
    out.push_back(std::move(described));
  }
  return out;
}

}  // namespace tracefire
