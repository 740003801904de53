// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tracefire/placement.h"
#include "tracefire/device.h"
#include "tracefire/export.h"

namespace tracefire {

/// Why pending work was fired. Names and descriptions are in schema/events.json, in this order.
enum class Trigger : uint8_t {
  kObserved,      ///< a value was read
  kNodeLimit,     ///< 256 nodes were pending
  kByteLimit,     ///< they pinned 256 MiB
  kCall,          ///< a function was called
  kScopeEnd,      ///< a device scope ended
  kExit,          ///< flush() or the end of the process
  kPlacementLog,  ///< op by op while the placement log is on
  kCpuClock,      ///< an op of more than about 1 ms on the CPU has finished when its call returns
};
/// "observed", "node_limit" … as files and metrics write it.
const char* trigger_name(Trigger trigger);

/// What is the same in every run of a step. Lives as long as its program.
struct StepRecord {
  std::string op;       ///< "matmul"
  std::string tf_name;  ///< "MatMul"
  std::string name;     ///< "dense/matmul"; may be empty
  Device device;
  std::string kernel;     ///< "cublaslt_matmul"
  std::string library;    ///< "cuBLASLt 13.1"
  Placement placement = Placement::kOnDevice;
  std::string reason;     ///< why it fell back; empty otherwise
  std::vector<std::string> refusals;
  std::string location;                     ///< "train.py:12"
  std::vector<std::string> kernel_symbols;  ///< device kernels one execution launches
};

/// Steps of one bound program: the numbers that depend on sizes.
struct StepWork {
  double flops = 0;
  double bytes = 0;
};

struct ProgramRecord {
  uint64_t id = 0;
  std::string name;
  std::string precision;  ///< "tf32", "highest"
  std::vector<StepRecord> steps;
};

/// One run of a program: the only bookkeeping of what was executed. A replay of a captured graph
/// is one record that stands for `repeats` executions of the listed steps.
struct RunEvent {
  std::shared_ptr<const ProgramRecord> program;
  std::shared_ptr<const std::vector<StepWork>> work;  ///< one entry a step
  Trigger trigger = Trigger::kObserved;
  bool captured = false;
  uint64_t repeats = 1;         ///< executions of the step list this record stands for
  uint64_t graph_launches = 0;  ///< of them by how many replays
  /// Steps that ran (control flow may skip some); empty: all. Regions report runs of their own.
  std::vector<int32_t> steps;
  int64_t start_ns = 0;  ///< steady clock
  int64_t host_ns = 0;   ///< host time until everything was enqueued (on a CPU: done)
  /// Where a subscriber asked for step_times: how long each step took, [execution, step], for the
  /// executions that were measured; empty where none was.
  std::vector<int64_t> step_ns;
  /// step_ns comes from a few executions that ran outside the captured graph and were waited for
  /// step by step: launch and wait are part of the times.
  bool sampled = false;
};

enum class CopyKind : uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice, kSlotRelocation };
struct CopyEvent {
  CopyKind kind;
  uint64_t bytes;
  const char* reason;  ///< static text: "numpy view alive", "observed", "step input"
};

/// The host waited for a device.
struct WaitEvent {
  Device device;
  int64_t start_ns = 0;  ///< steady clock
  int64_t wait_ns = 0;
};

/// A block of device memory was taken or given back. Published in the order in which it happens,
/// under the allocator's lock: callbacks take no device memory.
struct MemoryEvent {
  Device device;
  const void* block;      ///< its address, the same when it is given back
  uint64_t bytes;         ///< of the block
  bool taken;             ///< else given back
  uint64_t in_use;        ///< bytes of the device's live blocks after it
  std::string_view what;  ///< who takes it: "train_step", "kernel workspace"; empty when given back
};

enum class SpanKind : uint8_t {
  kPlain,  ///< a stretch of the program that somebody named
  kStep,   ///< one step of a loop
  kInput,  ///< fetching or preparing data
};
/// A stretch of host time with a name: step markers, annotations, the feed of fit().
struct SpanEvent {
  std::string name;
  SpanKind kind = SpanKind::kPlain;
  int64_t step = -1;     ///< number of the step; -1: none
  int64_t start_ns = 0;  ///< steady clock
  int64_t span_ns = 0;
};

/// The event sink. Readers (placement log, proof, profiler, metrics) subscribe; the executor
/// publishes. Callbacks run on the publishing thread with no lock of the executor held, and must
/// not fire work. Publishing costs one atomic load where nobody listens.
class TRACEFIRE_API Events {
 public:
  static Events& instance();
  struct Subscriber {
    std::function<void(const RunEvent&)> run;
    std::function<void(const CopyEvent&)> copy;
    std::function<void(Device)> synchronize;  ///< the host waited for a device
    std::function<void(const WaitEvent&)> wait;
    std::function<void(const MemoryEvent&)> memory;
    std::function<void(const SpanEvent&)> span;
    /// Asks executors to measure steps (RunEvent::step_ns); costs a clock reading a step.
    bool step_times = false;
  };
  /// Returns the number that unsubscribe() takes.
  int subscribe(Subscriber subscriber);
  /// When this returns, no other thread is inside the subscriber's callbacks; a callback may
  /// unsubscribe itself. Python callers release the GIL around it.
  void unsubscribe(int id);
  /// True while anybody subscribes: only then need an executor take times.
  bool active() const;
  /// 0, or a number that changes whenever another subscriber begins to ask for step times.
  uint64_t timing() const;
  bool wants_memory() const;
  bool wants_spans() const;
  /// Now, on the clock of all events.
  static int64_t now_ns();
  void publish(const RunEvent& event);
  void publish(const CopyEvent& event);
  void publish(const MemoryEvent& event);
  void publish(const SpanEvent& event);
  /// A wait that began at `start_ns` and ends now.
  void publish_synchronize(Device device, int64_t start_ns);

 private:
  Events();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tracefire
