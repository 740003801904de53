// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/runtime/bound_program.h"
#include "core/runtime/executor.h"

namespace tracefire {

/// The addresses of one execution: where each value of a bound program lives right now, and the
/// walk over its steps. Calls come in this order; what stands in brackets may be left out:
///
///     [set_result()]  [set_error_block()]  where results and failures go
///     prepare()                            allocates what was not given
///     [time_steps()]  run_steps()          values are there, slots still hold the old ones
///     [keep_results()]  [outputs()]        read results while old slot values are there, too
///     finish_slots()                       slots hold the new values
///
/// From finish_slots() it goes on with set_result() (another place for the next run) or with
/// run_steps(), any number of times. After a failed call the frame is only to be destroyed; what
/// its slots hold then is what the steps that ran wrote.
class Frame {
 public:
  Frame(Executor& executor, std::shared_ptr<BoundProgram> bound, Instance& instance,
        const RunRequest& request);

  /// Runs all steps once. May be called again: the values are computed anew in the same places.
  Status run_steps();
  /// Writes new slot values that were not computed in place into their slots.
  Status finish_slots();
  /// Storage of result `index` (outputs only).
  Result<Storage> result(size_t index);
  /// True where the value of result `index` is there after any number of runs: what a slot holds by
  /// then, or a parameter that no run writes.
  bool stays(size_t index) const;
  /// Types of all results and storage of the outputs. Before finish_slots(), which writes over old
  /// values that may be outputs.
  Status outputs(RunOutcome* outcome);
  /// Where keep_results() leaves result `index` from now on. With `direct`, steps write it there in
  /// the first place if they can: kernels expect the alignment of the arena.
  void set_result(size_t index, Storage place, bool direct);
  /// Allocates result storage that was not given and error words.
  Status prepare();
  /// Copies results to their places, except those computed there. Before finish_slots().
  Status keep_results();
  void set_error_block(Device device, Storage storage) { errors_[device] = std::move(storage); }
  std::vector<ErrorBlock> error_blocks() const { return blocks(errors_); }
  const DimEnv& env() const { return env_; }
  /// From now on run_steps() appends how long each step took to `times`, until it is null. Where
  /// the host does not run the steps itself, each is waited for.
  void time_steps(std::vector<int64_t>* times) { times_ = times; }

 private:
  int32_t root(int32_t value) const;
  bool is_assigned(int32_t param) const;
  bool is_dynamic(int32_t value) const;
  /// Where a value is; allocates data-dependent and region results on first mention.
  Result<Storage> storage(int32_t value);
  Result<Storage> storage_for_output(const Step& step, int32_t value);
  Result<ValueType> type(int32_t value) const;

  Status run_step(size_t index, const Step& step);
  Status run_kernel(size_t index, const Step& step);
  Status run_copy(const Step& step);
  Status run_if(const Step& step);
  Status run_while(const Step& step);
  Status run_call(const Step& step);
  Status run_host_call(size_t index, const Step& step);
  std::vector<ErrorBlock> blocks(const std::map<Device, Storage>& storages) const;
  /// Between two runs: keeps what the error blocks hold, for the steps of the next one that ask.
  Status keep_errors();
  /// The first failed check on the way to the operands of a step with an effect. What `reader`
  /// holds is read in the same wait.
  Status check_operands(size_t index, HostReader* reader);
  Result<std::vector<HostArray>> host_operands(size_t index, const Step& step);
  Status read_sizes(size_t index);
  Result<bool> read_predicate(const Storage& storage);
  Result<std::vector<Storage>> run_region(const Program& region, std::vector<Storage> params);
  Result<std::vector<Storage>> operands(const Step& step, size_t from);
  Status keep_results(const Step& step, std::vector<Storage> storages);

  Executor& executor_;
  std::shared_ptr<BoundProgram> bound_;
  const Program& program_;
  Instance& instance_;
  std::vector<Storage> params_;
  std::vector<Run::Parent> parents_;
  /// What set_result() said of a result, and whether its steps write to that place.
  struct Place {
    Storage storage;
    bool direct = false;
    bool written_there = false;
  };
  std::vector<Place> results_;        ///< per result
  std::vector<Storage> dynamic_;      ///< per value
  std::map<Device, Storage> errors_;  ///< error blocks
  /// What they held when the run before this one ended; only where a step asks.
  std::map<Device, Storage> errors_before_;
  bool again_ = false;  ///< slots hold what a run before this one wrote
  DimEnv env_;
  Trigger trigger_;
  std::vector<int64_t>* times_ = nullptr;
};

}  // namespace tracefire
