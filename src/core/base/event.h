// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tracefire/device.h"
#include "tracefire/export.h"

namespace tracefire {

/// Why pending work was fired. Names and descriptions are in schema/events.json, in this order.
enum class Trigger : uint8_t {
  kObserved,      ///< a value was read
  kNodeLimit,     ///< 256 nodes were pending
  kByteLimit,     ///< they pinned 256 MiB
  kIdle,          ///< the device was about to run dry
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
  uint8_t placement = 0;  ///< backends/api Placement, in its order
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
};

enum class CopyKind : uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice, kSlotRelocation };
struct CopyEvent {
  CopyKind kind;
  uint64_t bytes;
  const char* reason;  ///< static text: "numpy view alive", "observed", "step input"
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
  };
  /// Returns the number that unsubscribe() takes.
  int subscribe(Subscriber subscriber);
  /// When this returns, no other thread is inside the subscriber's callbacks; a callback may
  /// unsubscribe itself. Python callers release the GIL around it.
  void unsubscribe(int id);
  /// True while anybody subscribes: only then need an executor take times.
  bool active() const;
  void publish(const RunEvent& event);
  void publish(const CopyEvent& event);
  void publish_synchronize(Device device);

 private:
  Events();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tracefire
