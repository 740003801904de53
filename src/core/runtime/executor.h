// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/event.h"
#include "core/runtime/bound_program.h"
#include "core/runtime/run.h"
#include "tracefire/control.h"

namespace tracefire {

/// Serves host_call, print and assert steps. Called with no lock held; may run user code.
using HostHandler = std::function<Status(const Node& node, const std::vector<HostArray>& inputs,
                                         std::vector<HostArray>* outputs)>;

/// One execution: a program with storage for its parameters. Slot parameters are read and, where
/// the program assigns them, written in place.
struct RunRequest {
  ProgramPtr program;
  std::vector<Storage> params;       ///< tokens: empty
  std::vector<Run::Parent> parents;  ///< for each parameter the run it came from
  DimEnv env;
  Trigger trigger = Trigger::kObserved;
  /// Results that run_repeated() keeps of every run: run i leaves its value i places from the start
  /// of the result's storage. Other outputs are not returned then. Sizes must be known beforehand.
  std::vector<int32_t> collected;
  /// Set to true once anything was enqueued: from then on slots may have been written.
  bool* started = nullptr;
};

struct RunOutcome {
  std::vector<Storage> results;  ///< outputs; slots and tokens: empty
  std::vector<ValueType> types;  ///< of the results of one run, with numbers for sizes
  std::shared_ptr<Run> run;      ///< null where no check can fail
};

/// THE executor: everything that computes goes through run() or run_repeated(). Re-entrant.
class Executor {
 public:
  static Executor& instance();

  /// Enqueues the program; on a GPU it returns before the work is done.
  Result<RunOutcome> run(const RunRequest& request);
  /// `repeats` runs one after the other over the same storage. Where device and program allow it,
  /// captured graphs of up to 64 unrolled runs are replayed. Outputs are those of the last run.
  Result<RunOutcome> run_repeated(const RunRequest& request, int64_t repeats);

  /// Program bound to sizes, from the cache: of one program the sets of sizes that were used last,
  /// as many as the setting instance_cache_size says. Runs that go on keep theirs.
  Result<std::shared_ptr<BoundProgram>> bind(const ProgramPtr& program, const DimEnv& env);

  /// Lets go of what was bound for the program and its regions: arenas, captured graphs. Runs that
  /// go on keep theirs.
  void forget(const Program& program);

  void set_host_handler(HostHandler handler) { host_handler_ = std::move(handler); }
  const HostHandler& host_handler() const { return host_handler_; }
  /// Asked before a long loop's first step and between its replays; true stops it with kCancelled.
  void set_interrupt_check(std::function<bool()> check) { interrupted_ = std::move(check); }

 private:
  Result<RunOutcome> replay(const RunRequest& request, BoundProgram& bound, Instance& instance,
                            int64_t repeats);
  /// Keeps what the values that `runs` runs in a row left need to know of them.
  static void add_run(const RunRequest& request, const BoundProgram& bound,
                      std::vector<ErrorBlock> errors, int64_t runs, RunOutcome* outcome);
  /// How long steps took, [execution, step], where a subscriber asked for it.
  struct Times {
    std::vector<int64_t> step_ns;
    bool sampled = false;
  };
  void publish(const RunRequest& request, const BoundProgram& bound, uint64_t repeats,
               uint64_t launches, int64_t start_ns, Times times);

  /// Of a program's bound programs, drops the one that was not used for longest. Under mutex_.
  void forget_oldest(uint64_t program);

  using Entry = std::pair<std::string, std::shared_ptr<BoundProgram>>;
  std::mutex mutex_;
  std::list<Entry> order_;  // most recent first
  std::unordered_map<std::string, std::list<Entry>::iterator> bound_;
  std::unordered_map<uint64_t, size_t> sizes_;  // bound programs of each program in order_
  HostHandler host_handler_;
  std::function<bool()> interrupted_;
};

/// What compiled a program keeps it by this. At its end nothing of the program stays bound, so that
/// a model that is gone leaves no memory behind.
class HeldProgram {
 public:
  HeldProgram() = default;
  explicit HeldProgram(ProgramPtr program) : program_(std::move(program)) {}
  HeldProgram(HeldProgram&& other) noexcept : program_(std::move(other.program_)) {}
  HeldProgram& operator=(HeldProgram&& other) noexcept {
    program_.swap(other.program_);
    return *this;
  }
  ~HeldProgram() {
    if (program_ != nullptr) Executor::instance().forget(*program_);
  }
  const ProgramPtr& get() const { return program_; }

 private:
  ProgramPtr program_;
};

/// Largest unroll ≤ `most` that divides `repeats`, or `most` with a remainder where none is ≥ 16.
int64_t choose_unroll(int64_t repeats, int64_t most = 64);

}  // namespace tracefire
