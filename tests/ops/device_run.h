// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "backends/api/device_backend.h"
#include "backends/ref/oracle.h"

namespace tracefire::test {

/// One node bound to numbers, as kernels are asked about it, with its own copy of all parts.
class BoundNode {
 public:
  BoundNode(GraphPtr graph, DeviceBackend& device);
  BoundNode(const BoundNode&) = delete;
  const NodeView& view() const { return view_; }
  const Node& node() const { return graph_->nodes[0]; }

 private:
  GraphPtr graph_;
  std::vector<ValueType> inputs_;
  std::shared_ptr<const LoopProgram> loop_;
  NodeView view_;
};

struct DeviceResult {
  std::vector<ref::Array> outputs;
  std::optional<ref::Failure> failure;
  double seconds = 0;  ///< of one run, the best of several where asked for
};

/// Runs one kernel on host arrays. `timed`: at least 5 runs and 0.2 s, after one to warm up.
/// `shapes` gives the sizes of results that depend on data.
Result<DeviceResult> run_kernel(DeviceBackend& device, const Kernel& kernel, const NodeView& view,
                                const std::vector<ref::Array>& inputs,
                                const std::vector<ref::Array>& shapes, bool timed = false);

/// The devices that cases run on: those of this machine, and the oracle's own.
std::vector<DeviceBackend*> case_devices();

}  // namespace tracefire::test
