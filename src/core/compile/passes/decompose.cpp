// SPDX-License-Identifier: Apache-2.0
#include "core/compile/passes/expansion.h"
#include "core/compile/passes/passes.h"
#include "core/compile/passes/placement.h"

namespace tracefire {
namespace {

/// Composites within composites: more rounds than any row is deep.
constexpr int kMaxRounds = 16;

/// True where the node is better off in pieces: nobody has a kernel for it, or its pieces become
/// part of a fused loop.
Result<bool> expands(const Graph& graph, const Node& node, const CompileOptions& options) {
  if (!expansion(node) || node_kind(node) != NodeKind::kKernel) return false;
  if (options.optimize && expansion_fuses(node)) return true;
  TF_ASSIGN(const Choice choice, choose_kernel(graph, node, node.device, options));
  return choice.kernel == nullptr;
}

/// One round; null where there is nothing to expand.
Result<GraphPtr> expand_once(const Graph& graph, const CompileOptions& options) {
  std::vector<bool> chosen(graph.nodes.size(), false);
  bool any = false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    TF_ASSIGN(const bool yes, expands(graph, graph.nodes[i], options));
    chosen[i] = yes;
    any = any || yes;
  }
  if (!any) return GraphPtr();

  const OpTable& table = OpTable::instance();
  Rewriter rewriter(table, graph);
  Builder& builder = rewriter.builder();
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const int32_t index = static_cast<int32_t>(i);
    const Node& node = graph.nodes[i];
    if (!chosen[i]) {
      rewriter.copy(index);
      continue;
    }
    builder.set_context(node.location, node.name, node.device, node.device_by_user);
    const std::vector<Value> results = expansion(node)(builder, node, rewriter.map(node.inputs));
    builder.set_context({}, "");
    TF_RETURN_IF_ERROR(builder.status());
    if (results.size() != node.outputs.size()) {
      return error(ErrorCode::kInternal, "the decomposition of ", table.name(node.op), " gives ",
                   results.size(), " results instead of ", node.outputs.size(),
                   ". This is a bug of Tracefire; please report it.");
    }
    for (size_t k = 0; k < results.size(); ++k) {
      rewriter.set({index, static_cast<int32_t>(k)}, results[k]);
    }
  }
  return rewriter.finish();
}

Result<GraphPtr> decompose_graph(const GraphPtr& source, const CompileOptions& options,
                                 Device results, bool* changed) {
  GraphPtr graph = source;
  for (size_t i = 0; i < source->nodes.size(); ++i) {
    const Node& node = source->nodes[i];
    if (!KnownOps::get().has_programs(node)) continue;
    for (size_t r = 0; r < node.regions.size(); ++r) {
      TF_ASSIGN(const GraphPtr region,
                decompose_graph(node.regions[r], options, results_device(node, r), changed));
      if (region == node.regions[r]) continue;
      auto now = std::make_shared<Graph>(*graph);
      now->nodes[i].regions[r] = region;
      graph = now;
    }
  }
  bool expanded = false;
  for (int round = 0; round < kMaxRounds; ++round) {
    TF_ASSIGN(const GraphPtr next, expand_once(*graph, options));
    if (!next) break;
    expanded = true;
    // The pieces want the device of the whole; those that no kernel accepts there fall back alone.
    auto placed = std::make_shared<Graph>(*next);
    for (Node& node : placed->nodes) TF_RETURN_IF_ERROR(place_node(*placed, options, &node));
    graph = placed;
  }
  if (!expanded) return graph;
  *changed = true;
  for (const Node& node : graph->nodes) {
    TF_ASSIGN(const bool left, expands(*graph, node, options));
    if (!left) continue;
    return error(ErrorCode::kNoKernel, OpTable::instance().name(node.op), " at ",
                 node.location.str(), ": no kernel of ", node.device.str(),
                 " accepts it, and it decomposes into itself.");
  }
  return insert_copies(graph, results, changed);
}

}  // namespace

Result<GraphPtr> decompose(const GraphPtr& graph, const CompileOptions& options, bool* changed) {
  return decompose_graph(graph, options, {}, changed);
}

}  // namespace tracefire
