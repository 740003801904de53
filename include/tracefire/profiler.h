// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tracefire/export.h"

/// Where the time and the memory go: operations, kernels, steps, input, memory over time. It reads
/// the executor's records and counts nothing by itself.
///
///   profiler::Session session;
///   for (int i = 0; i < 100; ++i) {
///     profiler::Input input("read");   // until the end of the block or stop()
///     Batch batch = read();
///     input.stop();
///     profiler::Step step("train", i);
///     train(batch);
///   }
///   std::cout << session.stop().str();
namespace tracefire::profiler {

struct TRACEFIRE_API Options {
  bool step_times = true;      ///< measures single operations
  bool memory = true;          ///< keeps bytes in use over time
  size_t max_events = 100000;  ///< slices of the time line; later ones are counted, not kept
};

/// Durations in microseconds. p50 and p99 are right within 5 %.
struct TRACEFIRE_API Durations {
  uint64_t count = 0;  ///< how many were measured
  double total_us = 0, mean_us = 0, p50_us = 0, p99_us = 0;
};

/// What a profile found. Everything since start().
struct TRACEFIRE_API Profile {
  /// One operation of the program, or one kernel where `op` is empty.
  struct Row {
    std::string op;                    ///< "matmul"
    std::string name;                  ///< layer or name scope: "dense/matmul"; may be empty
    std::string device;                ///< "/GPU:0"
    std::string kernel;                ///< "cublaslt_matmul"
    std::string library;               ///< "cuBLASLt 13.1"
    std::string location;              ///< first source line
    std::vector<std::string> symbols;  ///< device kernels that it launches
    uint64_t runs = 0;                 ///< executions, those inside replays counted
    /// Of the executions that were measured, but total_us is for all runs: runs * mean_us.
    Durations time;
    double share = 0;  ///< of the total of its device, 0 to 1
    /// "measured": a clock around each execution; "sampled": a few executions outside the captured
    /// graph, each waited for, so that launch and wait are part of the time; "CUPTI": as the driver
    /// reports it; "none": no time.
    std::string source;
    double flops = 0, bytes = 0;  ///< of all runs
  };
  /// Steps, annotations and input of one name.
  struct Span {
    std::string name;
    std::string kind;  ///< "step" "input" "annotation"
    Durations time;
    Durations between;  ///< steps: from the end of one to the begin of the next
  };
  struct Program {
    std::string name;
    uint64_t records = 0;     ///< a loop is one
    uint64_t executions = 0;  ///< of its steps
    uint64_t graph_launches = 0;
    double host_us = 0;  ///< until all was queued; on a CPU, until it was done
  };
  struct MemoryPoint {
    double at_us;  ///< since the start of the profile
    uint64_t bytes;
  };
  struct Memory {
    std::string device;
    uint64_t peak = 0;  ///< bytes in use
    double peak_at_us = 0;
    std::vector<std::pair<std::string, uint64_t>> holders;  ///< at the peak, largest first
    std::vector<MemoryPoint> points;
  };
  /// A slice of the time line.
  struct Slice {
    std::string name;
    std::string kind;  ///< "program" "operation" "step" "input" "annotation" "wait"
    uint32_t thread = 0;
    double start_us = 0, span_us = 0;
    uint64_t executions = 0;  ///< programs: how many the slice stands for
  };

  std::string command;  ///< of the process
  int64_t pid = 0;
  std::string started;  ///< RFC 3339, UTC
  double wall_us = 0;
  double active_us = 0;         ///< from the first record to the last
  std::vector<Row> operations;  ///< most time first
  std::vector<Row> kernels;     ///< the same by kernel
  std::vector<Span> spans;
  std::vector<Program> programs;
  std::vector<Memory> memory;
  std::vector<Slice> slices;
  /// Host time for data: in Input scopes and in the feed of fit(), and between steps besides.
  double input_us = 0, between_us = 0;
  uint64_t waits = 0;  ///< times the host waited for a device
  double wait_us = 0;
  std::vector<std::string> notes;  ///< what was left out and how to read the times

  /// Tables for people, in lines of at most `columns` columns (40 at least; names without blanks
  /// may be longer): what does not fit beside the rest of its row goes below it.
  std::string str(int columns = 80) const;
  /// A process of tracefire.profile/1 (schema/cli/profile.json); with `slices`, also the time line.
  std::string json(bool slices = false) const;
  /// What json(true) wrote. Throws kBadUsage for anything else.
  static Profile from_json(const std::string& text);
  /// Trace events, for Perfetto and chrome://tracing.
  std::string trace() const;
  /// One file without scripts that works offline.
  std::string html() const;
  /// An XSpace for TensorBoard's profile plugin, in protobuf's wire format.
  std::string xplane() const;
  /// Writes profile.txt, profile.json, profile.html and trace.json into a folder, which is made
  /// where it is missing; files get mode 0600. Throws kCannotWrite.
  void write(const std::string& directory) const;
};

/// Begins to record. Throws kBadUsage while a profile is being recorded.
TRACEFIRE_API void start(const Options& options = {});
/// Ends the recording and returns it. Throws kBadUsage where none was begun.
TRACEFIRE_API Profile stop();
TRACEFIRE_API bool running();

/// start() now; stop() or the end of the block ends the recording.
class TRACEFIRE_API Session {
 public:
  explicit Session(const Options& options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  Profile stop();

 private:
  bool open_;
};

/// Names a stretch of host time. Costs two readings of a clock while a profile is recorded, else
/// one load.
class TRACEFIRE_API Annotation {
 public:
  explicit Annotation(const std::string& name) : Annotation(name, 0, -1) {}
  ~Annotation() { stop(); }
  Annotation(const Annotation&) = delete;
  Annotation& operator=(const Annotation&) = delete;
  /// Ends it before the block does.
  void stop();

 protected:
  Annotation(const std::string& name, uint8_t kind, int64_t step);

 private:
  std::string name_;
  int64_t start_ns_ = 0;  ///< 0: not recorded
  int64_t step_;
  uint8_t kind_;
};

/// One step of a loop. What lies between two steps of a name counts as time without work.
class TRACEFIRE_API Step : public Annotation {
 public:
  explicit Step(const std::string& name, int64_t step = -1) : Annotation(name, 1, step) {}
};

/// Fetching or preparing data.
class TRACEFIRE_API Input : public Annotation {
 public:
  explicit Input(const std::string& name) : Annotation(name, 2, -1) {}
};

}  // namespace tracefire::profiler
