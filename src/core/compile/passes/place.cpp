// SPDX-License-Identifier: Apache-2.0
#include "core/compile/passes/passes.h"
#include "core/compile/passes/placement.h"

namespace tracefire {
namespace {

/// Devices of the parameters. Those of a region live where its node is, because its operands are
/// brought there; a program's without a device go to the default one.
void place_params(Device device, bool region, Graph* graph, bool* changed) {
  for (Param& param : graph->params) {
    Device wanted = region || !param.device.is_set() ? device : param.device;
    if (param.type.dtype == DType::kString) wanted = kHostDevice;
    if (param.type.dtype == DType::kToken) wanted = {};
    *changed = *changed || param.device != wanted;
    param.device = wanted;
  }
}

Result<GraphPtr> place_graph(const GraphPtr& source, const CompileOptions& options,
                             Device region_device, bool* changed) {
  const bool region = region_device.is_set();
  auto graph = std::make_shared<Graph>(*source);
  bool moved = false;
  place_params(region ? region_device : options.device, region, graph.get(), &moved);
  for (Node& node : graph->nodes) {
    const Device before = node.device;
    TF_RETURN_IF_ERROR(place_node(*graph, options, &node));
    moved = moved || node.device != before;
    if (!KnownOps::get().has_programs(node)) continue;
    for (GraphPtr& inner : node.regions) {
      TF_ASSIGN(inner, place_graph(inner, options, node.device, &moved));
    }
  }
  *changed = *changed || moved;
  return insert_copies(moved ? graph : source, region_device, changed);
}

}  // namespace

Result<GraphPtr> place(const GraphPtr& graph, const CompileOptions& options, bool* changed) {
  return place_graph(graph, options, {}, changed);
}

}  // namespace tracefire
