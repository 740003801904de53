// SPDX-License-Identifier: Apache-2.0
#include "core/trace/cell.h"

namespace tracefire::trace {

uint64_t next_id() {
  static std::atomic<uint64_t> counter{1};
  return counter.fetch_add(1, std::memory_order_relaxed);
}

Cell::~Cell() {
  // A chain of pending nodes is a chain of owners: release it in a loop, not by recursion.
  std::vector<TraceNodePtr> doomed;
  if (producer) doomed.push_back(std::move(producer));
  while (!doomed.empty()) {
    TraceNodePtr node = std::move(doomed.back());
    doomed.pop_back();
    if (node.use_count() != 1) continue;
    for (CellPtr& input : node->inputs) {
      if (input.use_count() == 1 && input->producer) doomed.push_back(std::move(input->producer));
    }
  }
}

CellPtr make_cell(ValueType type, Device device, uint64_t scope) {
  auto cell = std::make_shared<Cell>();
  cell->id = next_id();
  cell->type = std::move(type);
  cell->device = device;
  cell->scope = scope;
  return cell;
}

CellPtr make_ready_cell(ValueType type, Device device, std::shared_ptr<Payload> payload) {
  CellPtr cell = make_cell(std::move(type), device, 0);
  cell->payload = std::move(payload);
  cell->state.store(Cell::kReady, std::memory_order_release);
  return cell;
}

}  // namespace tracefire::trace
