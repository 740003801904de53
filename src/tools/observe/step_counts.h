// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/event.h"

namespace tracefire {

/// How often each step of each program ran: a run costs a few additions and no text. What it keeps
/// alive is bounded; beyond that it is drained into rows of whoever holds it. Not thread-safe.
class StepCounts {
 public:
  /// Counts the steps of a run. Before another program would be one too many, drains all of them.
  /// `each`: void(const ProgramRecord&, const StepRecord&, const StepWork&, uint64_t runs), for
  /// steps that ran by a kernel.
  template <class Each>
  void add(const RunEvent& event, Each each) {
    auto found = programs_.find(event.work.get());
    if (found == programs_.end()) {
      const size_t steps = event.program->steps.size();
      if (programs_.size() >= kMostPrograms || steps_ + steps > kMostSteps) drain(each);
      steps_ += steps;
      found = programs_.emplace(event.work.get(), Counts()).first;
      found->second = {event.program, event.work, std::vector<uint64_t>(steps)};
    }
    std::vector<uint64_t>& counts = found->second.runs;
    if (event.steps.empty()) {
      for (uint64_t& runs : counts) runs += event.repeats;
    } else {
      for (int32_t step : event.steps) counts[static_cast<size_t>(step)] += event.repeats;
    }
  }

  /// Tells the counts of all programs and lets go of them.
  template <class Each>
  void drain(Each each) {
    for (const auto& [work, counts] : programs_) {
      for (size_t i = 0; i < counts.runs.size(); ++i) {
        const StepRecord& step = counts.program->steps[i];
        if (counts.runs[i] == 0 || step.kernel.empty()) continue;
        each(*counts.program, step, (*counts.work)[i], counts.runs[i]);
      }
    }
    clear();
  }

  void clear() {
    programs_.clear();
    steps_ = 0;
  }

 private:
  static constexpr size_t kMostPrograms = 256;
  static constexpr size_t kMostSteps = size_t{1} << 16;

  struct Counts {
    std::shared_ptr<const ProgramRecord> program;
    std::shared_ptr<const std::vector<StepWork>> work;
    std::vector<uint64_t> runs;
  };
  std::map<const void*, Counts> programs_;  ///< by the address of their work
  size_t steps_ = 0;                        ///< of programs_
};

}  // namespace tracefire
