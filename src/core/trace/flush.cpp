// SPDX-License-Identifier: Apache-2.0
#include "core/trace/flush.h"

namespace tracefire::trace {

FiringLimits& firing_limits() {
  static FiringLimits limits;
  return limits;
}

void flush_pending(Trigger trigger) {
  Eager& state = eager();
  std::vector<CellPtr> wanted;
  for (const auto& weak : state.pending) {
    if (TraceNodePtr node = weak.lock()) {
      for (const auto& output : node->outputs) {
        CellPtr cell = output.lock();
        if (cell && cell->state.load(std::memory_order_acquire) == Cell::kPending) {
          wanted.push_back(std::move(cell));
        }
      }
    }
  }
  state.pending.clear();
  state.pinned_bytes = 0;
  if (!wanted.empty() || !state.effects.empty()) firer().fire(wanted, trigger);
}

void after_record(const std::vector<CellPtr>& outputs) {
  if (Scope::current() != nullptr || outputs.empty()) return;
  Eager& state = eager();
  if (state.inside > 0) return;
  const FiringLimits& limits = firing_limits();
  if (limits.op_by_op) {
    flush_pending(Trigger::kPlacementLog);
    return;
  }
  if (const TraceNodePtr& node = outputs[0]->producer) {
    std::vector<ValueType> types;
    for (const CellPtr& input : node->inputs) types.push_back(input->type);
    if (firer().finishes_before_return(outputs[0]->device, node->node, types)) {
      firer().fire(outputs, Trigger::kCpuClock);
      return;
    }
  }
  if (static_cast<int64_t>(state.pending.size()) >= limits.nodes) {
    flush_pending(Trigger::kNodeLimit);
  } else if (state.pinned_bytes >= limits.bytes) {
    flush_pending(Trigger::kByteLimit);
  }
}

}  // namespace tracefire::trace
