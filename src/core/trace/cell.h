// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace tracefire::trace {

class Scope;

/// What a fired value is made of; only the engine knows (device storage and the run behind it).
class Payload {
 public:
  virtual ~Payload() = default;
};

struct TraceNode;

/// A value of the trace: pending until it is fired, then published once. Immutable afterwards.
struct Cell {
  enum State : int { kPending = 0, kReady = 1, kFailed = 2 };

  uint64_t id = 0;  ///< unique in the process
  ValueType type;
  Device device;  ///< fixed when traced
  /// Scope that owns the value: parameters and nodes of a function being traced. Eager: 0.
  uint64_t scope = 0;

  std::shared_ptr<TraceNode> producer;  ///< set while pending; guarded by the fire lock
  int32_t result = 0;                   ///< which result of the producer

  std::atomic<int> state{kPending};
  std::shared_ptr<Payload> payload;  ///< valid once state is kReady
  Status failure;                    ///< valid once state is kFailed

  ~Cell();
};
using CellPtr = std::shared_ptr<Cell>;

/// A recorded operation. Immutable.
struct TraceNode {
  Node node;            ///< inputs unused here: cells instead
  uint64_t serial = 0;  ///< program order over all threads
  std::vector<CellPtr> inputs;
  std::vector<std::weak_ptr<Cell>> outputs;
  std::atomic<bool> claimed{false};  ///< some thread is firing it
};
using TraceNodePtr = std::shared_ptr<TraceNode>;

/// A variable. `current` is what a read gives outside of functions.
struct Slot {
  uint64_t id = 0;
  std::string name;
  ValueType type;
  Device device;
  bool trainable = true;

  std::mutex mutex;
  CellPtr current;                ///< guarded by mutex
  std::shared_ptr<Payload> home;  ///< the engine's: memory that programs bind; guarded by mutex
};
using SlotPtr = std::shared_ptr<Slot>;

uint64_t next_id();
CellPtr make_cell(ValueType type, Device device, uint64_t scope);
/// A leaf that is ready.
CellPtr make_ready_cell(ValueType type, Device device, std::shared_ptr<Payload> payload);

}  // namespace tracefire::trace
