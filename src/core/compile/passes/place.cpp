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

/// `region` and `results` are unset for a whole program; a region gets its operands on the one and
/// leaves its results on the other.
Result<GraphPtr> place_graph(const GraphPtr& source, const CompileOptions& options, Device region,
                             Device results, bool* changed) {
  auto graph = std::make_shared<Graph>(*source);
  bool moved = false;
  place_params(region.is_set() ? region : options.device, region.is_set(), graph.get(), &moved);
  for (Node& node : graph->nodes) {
    const Device before = node.device;
    TF_RETURN_IF_ERROR(place_node(*graph, options, &node));
    moved = moved || node.device != before;
    if (!KnownOps::get().has_programs(node)) continue;
    for (size_t r = 0; r < node.regions.size(); ++r) {
      TF_ASSIGN(node.regions[r], place_graph(node.regions[r], options, node.device,
                                             results_device(node, r), &moved));
    }
  }
  *changed = *changed || moved;
  return insert_copies(moved ? graph : source, results, changed);
}

}  // namespace

Result<GraphPtr> place(const GraphPtr& graph, const CompileOptions& options, bool* changed) {
  return place_graph(graph, options, {}, {}, changed);
}

}  // namespace tracefire
