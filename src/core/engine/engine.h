// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/compile/compile.h"
#include "core/engine/payload.h"
#include "core/runtime/executor.h"
#include "core/trace/flush.h"
#include "core/trace/record.h"

namespace tracefire {

/// The glue: fires pending work (trace -> compile -> runtime), publishes its values, keeps the
/// cache of programs. One per process.
class Engine final : public trace::Firer {
 public:
  /// Starts the engine on first use.
  static Engine& instance();

  void fire(std::span<const trace::CellPtr> cells, Trigger trigger) override;
  Device default_device() override;
  Status check_device(Device device) override;
  bool finishes_before_return(Device device, const Node& node,
                              const std::vector<ValueType>& inputs) override;

  /// Makes the cell ready and returns what it holds; its failure otherwise. Does not wait for the
  /// device and does not ask whether a data check failed.
  Result<std::shared_ptr<DevicePayload>> ready(const trace::CellPtr& cell, Trigger trigger);
  /// The same for several cells, which fire as one piece.
  Result<std::vector<std::shared_ptr<DevicePayload>>> ready(std::span<const trace::CellPtr> cells,
                                                            Trigger trigger);
  /// ready(), then waits for the device and raises what went wrong on the way to the value.
  Result<std::shared_ptr<DevicePayload>> observe(const trace::CellPtr& cell);
  /// The same for several cells with one wait a device, in which what `reader` holds is read, too.
  Result<std::vector<std::shared_ptr<DevicePayload>>> observe(std::span<const trace::CellPtr> cells,
                                                              HostReader* reader);

  /// Publishes a value or a failure of a pending cell that nobody else makes ready.
  void publish(const trace::CellPtr& cell, std::shared_ptr<DevicePayload> payload);
  void fail(const trace::CellPtr& cell, const Status& failure);

  /// The program of an eager graph, from the cache (by structure and options) or made now. An eager
  /// call never waits for a compiler: nothing is optimized.
  Result<ProgramPtr> program_of(const GraphPtr& graph);
  /// Options as the settings say now.
  CompileOptions compile_options() const;
  /// Goes up whenever a graph may compile to another program than before: with settings and masks.
  uint64_t choices_generation() const;

 private:
  Engine();
  struct Batch;
  /// What must run for `cells`, and the effects of this thread: nobody else fires these nodes.
  std::vector<trace::TraceNodePtr> claim(std::span<const trace::CellPtr> cells);
  void find_ends(Batch* batch);
  void fire_batch(Batch* batch, Trigger trigger);
  void wait_for_leaves(Batch* batch);
  /// Takes out what a failed value is needed for; why, where anything was taken out.
  Status drop_failed(Batch* batch);
  static Result<GraphPtr> build_graph(const Batch& batch);
  Status run_batch(Batch* batch, Trigger trigger);
  void wait(const trace::CellPtr& cell);

  std::mutex fire_mutex_;  ///< claims, publication
  std::condition_variable published_;

  using Entry = std::pair<std::string, HeldProgram>;
  std::mutex cache_mutex_;
  std::list<Entry> cache_order_;
  std::unordered_map<std::string, std::list<Entry>::iterator> cache_;
};

/// Serves print, assert and host_call steps.
Status serve_host_step(const Node& node, const std::vector<HostArray>& inputs,
                       std::vector<HostArray>* outputs);

}  // namespace tracefire
