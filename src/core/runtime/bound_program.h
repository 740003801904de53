// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "backends/api/arena.h"
#include "core/base/event.h"

namespace tracefire {

/// What one execution of a bound program needs for itself: arenas, workspaces, captured graphs.
/// Used by one run at a time; handed to the next in stream order.
struct Instance {
  struct Memory {
    BufferPtr arena;
    BufferPtr workspace;
  };
  std::map<Device, Memory> memory;

  /// A captured loop: the program repeated `unroll` times over fixed addresses.
  struct Captured {
    int64_t unroll = 0;
    bool collects = false;
    std::unique_ptr<CapturedGraph> graph;
  };
  std::vector<void*> captured_addresses;  ///< parameters the graphs were captured with
  std::vector<Captured> captured;
  std::vector<Storage> captured_results;  ///< per result; slots: empty
  /// Per result that is collected: a place for each of the unrolled runs, one after the other.
  std::vector<Storage> collected_results;
  std::vector<int32_t> collected;  ///< the results they are
  int64_t collected_runs = 0;      ///< how many runs they hold
  Storage captured_errors;         ///< the error block
};

/// What a value depends on: steps with data checks, and parameters. Poisoned where one of them is.
struct Needs {
  std::set<int32_t> checks, params;
};
/// Of each result of a program.
using ResultNeeds = std::shared_ptr<const std::vector<Needs>>;

/// A program with numbers for its sizes: launches, arena offsets, work of each step. Shared by all
/// threads; instances are pooled.
class BoundProgram {
 public:
  /// Steps whose sizes are not known yet (they depend on data) are bound when they run.
  static Result<std::shared_ptr<BoundProgram>> make(ProgramPtr program, const DimEnv& env);

  const Program& program() const { return *program_; }
  const ProgramPtr& program_ptr() const { return program_; }
  const DimEnv& env() const { return env_; }
  /// Null where the step has no launch or its sizes depend on data.
  const Launch* launch(size_t step) const { return launches_[step].get(); }
  /// Offset in the device's arena, or -1.
  int64_t offset(size_t value) const { return offsets_[value]; }
  const std::vector<Device>& devices() const { return devices_; }
  /// Steps that check data.
  size_t checks() const { return checks_; }
  /// Which of them `step` is: the number of its error word; -1 where it checks nothing.
  int32_t check(size_t step) const { return check_of_step_[step]; }
  const std::shared_ptr<const ProgramRecord>& record() const { return record_; }
  const std::shared_ptr<const std::vector<StepWork>>& work() const { return work_; }
  /// What the operands of a step with an effect depend on within one run: the step must not run
  /// where one of them failed. Empty for other steps.
  const Needs& needs(size_t step) const { return needs_[step]; }
  /// And what they depend on through slots, in a run that follows others of the same loop: what
  /// failed before it counts, not what failed in it, as its steps run in any order.
  const Needs& needs_before(size_t step) const { return needs_before_[step]; }
  /// True where a check is among them for some step.
  bool checks_before() const { return checks_before_; }
  /// What each result of the last of `runs` runs in a row depends on, through slots that the runs
  /// before assigned, too. A check stands for all runs: its word does not say in which it failed.
  ResultNeeds result_needs(int64_t runs) const;

  /// True once for each `timing` (Events::timing()) other than 0, in the run after `skipped`
  /// others: for programs on devices that work beside the host, measuring means waiting, so that
  /// few executions are measured, and the first one loads kernels.
  bool sample_now(uint64_t timing, uint64_t skipped) {
    if (timing == 0) return false;
    std::lock_guard<std::mutex> lock(mutex_);
    if (sampled_timing_ != timing) {
      sampled_timing_ = timing;
      runs_since_ = 0;
    }
    return runs_since_++ == skipped;
  }
  /// True where the host runs every step itself, so that a clock around it tells its time.
  bool runs_on_host() const { return runs_on_host_; }

  Result<std::unique_ptr<Instance>> acquire();
  void release(std::unique_ptr<Instance> instance);

 private:
  BoundProgram() = default;
  void fill_records();
  void fill_needs();
  /// Adds what slots depend on after one more run that assigned them. False where that is nothing.
  bool add_run(std::vector<Needs>* results) const;
  /// What the slots among its parameters depend on after runs with `results`.
  Needs through_slots(const Needs& needs, const std::vector<Needs>& results) const;

  ProgramPtr program_;
  DimEnv env_;
  std::vector<std::unique_ptr<Launch>> launches_;
  std::vector<int64_t> offsets_;
  std::map<Device, size_t> arena_bytes_;
  std::map<Device, size_t> workspace_bytes_;
  std::vector<Device> devices_;
  size_t checks_ = 0;
  std::vector<int32_t> check_of_step_;
  bool runs_on_host_ = true;
  std::vector<Needs> needs_, needs_before_;
  bool checks_before_ = false;
  ResultNeeds results_once_;    ///< after one run
  ResultNeeds results_always_;  ///< after so many that more change nothing
  int64_t runs_to_always_ = 1;
  std::shared_ptr<const ProgramRecord> record_;
  std::shared_ptr<const std::vector<StepWork>> work_;
  std::mutex mutex_;             ///< of what follows
  uint64_t sampled_timing_ = 0;  ///< what sample_now() was asked for last
  uint64_t runs_since_ = 0;      ///< and how often
  std::vector<std::unique_ptr<Instance>> free_;
};

/// Borrows an instance of a bound program, and gives it back on every way out.
class InstanceLease {
 public:
  static Result<InstanceLease> take(std::shared_ptr<BoundProgram> bound);
  InstanceLease(InstanceLease&&) = default;
  InstanceLease& operator=(InstanceLease&&) = delete;
  ~InstanceLease() {
    if (instance_) bound_->release(std::move(instance_));
  }
  Instance& operator*() { return *instance_; }

 private:
  InstanceLease(std::shared_ptr<BoundProgram> bound, std::unique_ptr<Instance> instance)
      : bound_(std::move(bound)), instance_(std::move(instance)) {}
  std::shared_ptr<BoundProgram> bound_;
  std::unique_ptr<Instance> instance_;
};

/// Types of a step's operands with numbers for sizes; false where one depends on unread data.
bool bound_types(const Program& program, const Step& step, const DimEnv& env,
                 std::vector<ValueType>* inputs, std::vector<ValueType>* outputs);

/// Binds one step's kernel. The node it sees has numbers for its symbols and lives for the call.
Result<std::unique_ptr<Launch>> bind_step(const Program& program, const Step& step,
                                          const DimEnv& env, const std::vector<ValueType>& inputs,
                                          const std::vector<ValueType>& outputs);

}  // namespace tracefire
