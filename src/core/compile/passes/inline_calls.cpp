// SPDX-License-Identifier: Apache-2.0
#include "core/compile/known_ops.h"
#include "core/compile/passes/passes.h"

namespace tracefire {

Result<GraphPtr> inline_calls(const GraphPtr& source, const CompileOptions& options,
                              bool* changed) {
  TF_ASSIGN(const GraphPtr graph, rewrite_regions(source, options, changed, inline_calls));
  const KnownOps& known = KnownOps::get();
  bool any = false;
  for (const Node& node : graph->nodes) any = any || node.op == known.call;
  if (!any) return graph;

  Rewriter rewriter(OpTable::instance(), *graph);
  Builder& builder = rewriter.builder();
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    const int32_t index = static_cast<int32_t>(i);
    const Node& node = graph->nodes[i];
    if (node.op != known.call) {
      rewriter.copy(index);
      continue;
    }
    // Nodes of the body keep what they have; what they lack comes from the call.
    builder.set_context(node.location, node.name, node.device, node.device_by_user);
    TF_ASSIGN(const std::vector<Value> results,
              inline_graph(*node.regions[0], rewriter.map(node.inputs), &builder));
    builder.set_context({}, "");
    for (size_t k = 0; k < results.size(); ++k) {
      rewriter.set({index, static_cast<int32_t>(k)}, results[k]);
    }
  }
  *changed = true;
  return rewriter.finish();
}

}  // namespace tracefire
