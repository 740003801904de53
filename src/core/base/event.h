// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/location.h"
#include "event_schema.h"  // generated from schema/events.json: Trigger, Placement, CopyReason
#include "tracefire/device.h"

namespace tracefire {

// The one record of what ran. The executor writes it; placement log, profiler, proof and metrics
// read it. Counters are always on; events are built and handed out only while somebody listens.

/// One step of a bound program, as it was compiled: what, where, by which kernel, and why that one.
struct StepInfo {
  std::string op;       ///< "matmul"
  std::string tf_name;  ///< "MatMul"
  std::string node;     ///< name scope of the node, "dense/matmul"; may be empty
  Device device;
  int lane = 0;         ///< queue of the device
  std::string kernel;   ///< "gemm_f32_nt"
  std::string library;  ///< what the kernel is of, with its version: "cublasLt 13.1", "tracefire"
  Placement placement = Placement::kOnDevice;
  std::vector<std::string> refusals;  ///< why kernels before it in the list were not taken
  int nodes = 1;                      ///< graph nodes that it stands for
  double flops = 0;                   ///< of one execution, with the sizes of the instance
  double bytes = 0;                   ///< memory traffic of one execution
  Location location;
};

/// The steps of one bound instance of a program, with their counters. Made by the executor when it
/// binds, kept by the instance. When the last holder lets go of it, its counts are kept in
/// step_totals(). Everything but the counters is immutable; counting is thread-safe.
class StepTable : public std::enable_shared_from_this<StepTable> {
 public:
  static std::shared_ptr<StepTable> make(uint64_t program, std::string name, uint64_t instance,
                                         std::vector<StepInfo> steps);
  ~StepTable();
  StepTable(const StepTable&) = delete;
  StepTable& operator=(const StepTable&) = delete;

  uint64_t program() const { return program_; }
  const std::string& name() const { return name_; }
  uint64_t instance() const { return instance_; }
  const std::vector<StepInfo>& steps() const { return steps_; }

  /// All steps have run `times` more times. emit() does this.
  void count_runs(int64_t times) const { runs_.fetch_add(times, std::memory_order_relaxed); }
  /// Step `index` has run `times` more (or, negative, fewer) times than its table: for steps in
  /// branches and loops.
  void count_step(size_t index, int64_t times) const;
  int64_t runs() const { return runs_.load(std::memory_order_relaxed); }
  int64_t executions(size_t index) const;

 private:
  StepTable(uint64_t program, std::string name, uint64_t instance, std::vector<StepInfo> steps);

  const uint64_t program_;
  const std::string name_;
  const uint64_t instance_;
  const std::vector<StepInfo> steps_;
  mutable std::atomic<int64_t> runs_{0};
  std::unique_ptr<std::atomic<int64_t>[]> extra_;  // by step
};

/// A number for a new program, different from all others of this process.
uint64_t next_program_number();

/// One firing of a bound program. The pointers are good during the callback; keep
/// `table->shared_from_this()` to read the steps later.
struct RunEvent {
  const StepTable* table = nullptr;
  Trigger trigger = Trigger::kObserved;
  int64_t replays = 1;    ///< times that the steps of the table ran
  bool captured = false;  ///< as a captured graph
  bool failed = false;
  int64_t start_ns = 0;              ///< event_clock_ns() at the start
  int64_t wall_ns = 0;               ///< until the run returned; work may still be queued on a GPU
  int64_t device_ns = -1;            ///< time of the device, -1 where it was not measured
  const int64_t* step_ns = nullptr;  ///< by step, where each was timed; else nullptr
  Location location;                 ///< the line that fired it
};

/// Bytes that moved between devices, or were copied where a buffer could have been used in place.
struct CopyEvent {
  Device from;
  Device to;
  int64_t bytes = 0;
  CopyReason reason = CopyReason::kInput;
  int64_t start_ns = 0;  ///< event_clock_ns() at the start
  int64_t wall_ns = 0;
  Location location;
};

/// Callbacks of one listener; empty ones are left out. They run on the thread that emits, with no
/// lock held, and must not throw.
struct EventListener {
  std::function<void(const RunEvent&)> on_run;
  std::function<void(const CopyEvent&)> on_copy;
};

/// Starts to call `listener`; returns its id (above 0). Thread-safe.
int64_t subscribe(EventListener listener);
/// Stops it. When this returns, no other thread is inside its callbacks; a callback may unsubscribe
/// itself. Python callers release the GIL around it.
void unsubscribe(int64_t id);
/// True while anybody listens: then the executor takes times, else it need not.
bool listening();

/// Counts, and hands the event to the listeners. Costs two atomic additions where nobody listens.
void emit(const RunEvent& event);
void emit(const CopyEvent& event);

/// Nanoseconds of the monotonic clock that events use.
int64_t event_clock_ns();

/// Executions of one kind of step since the process started, over all programs, also those gone.
struct StepTotal {
  StepInfo step;  ///< flops and bytes are those of all executions together
  int64_t executions = 0;
};
/// Steps equal in everything but flops, bytes and lane are one entry. In no particular order.
std::vector<StepTotal> step_totals();

struct CopyTotal {
  Device from;
  Device to;
  CopyReason reason = CopyReason::kInput;
  int64_t count = 0;
  int64_t bytes = 0;
};
std::vector<CopyTotal> copy_totals();

/// Firings since the process started, by what triggered them.
int64_t run_count(Trigger trigger);

}  // namespace tracefire
