// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/runtime/bound_program.h"
#include "core/runtime/host_reader.h"

namespace tracefire {

/// "in 'gather' (dense/lookup) from train.py:12": where in the user's program something went wrong.
std::string place_of(const Node& node);

/// A word for each step of a program that checks data, in their order, on one device. Each has its
/// own: a check that fails must not hide another one, on which other values depend.
struct ErrorBlock {
  Storage storage;
  size_t words = 0;
  size_t bytes() const { return words * sizeof(ErrorWord); }
};
/// Adds the failures in a block that `reader` has read, in the order of the steps.
void add_failures(const HostReader& reader, size_t read, size_t words,
                  std::vector<ErrorWord>* failed);
/// The error that a check of `program` left behind.
Status check_failure(const Program& program, const ErrorWord& word);

/// One execution of a program, or of many runs of it in a row, kept by the values it made: knows
/// whether a data check failed on the way to one of them. Asked when a value is observed; waits for
/// the device then.
class Run {
 public:
  struct Parent {
    std::shared_ptr<Run> run;
    int32_t result;
  };
  /// Error blocks of the devices the program ran on, for each parameter the run it came from (null
  /// where it was checked or cannot fail), and what each result depends on.
  Run(ProgramPtr program, std::vector<ErrorBlock> blocks, std::vector<Parent> params,
      ResultNeeds needs);
  ~Run();

  /// OK, or the first failed check that result `index` depends on, naming op and source line.
  Status check(int32_t index);
  /// False where no check can ever fail: values need not keep this run.
  bool can_fail() const { return can_fail_; }
  /// Runs in a row before this one that nobody asked yet.
  int depth() const { return depth_; }
  /// True where neither this run nor one before it failed a check; then forgets those before. Waits
  /// for the device.
  bool settle();

 private:
  friend class UnreadErrors;
  Status read_errors();
  /// Keeps what was read; mutex_ is held.
  void keep_failures(std::vector<ErrorWord> words);
  /// The first check of this run alone that result `index` depends on; adds the runs to ask next.
  Status check_words(int32_t index, std::vector<Parent>* parents);
  ProgramPtr program_;
  std::mutex mutex_;
  std::vector<ErrorBlock> blocks_;  // until read
  std::vector<Parent> params_;
  ResultNeeds needs_;
  std::atomic<bool> can_fail_{false};
  std::atomic<int> depth_{0};
  bool read_ = false;
  std::vector<ErrorWord> words_;
};

/// Error blocks behind several values, read in one go with the values themselves, so that check()
/// of each of them waits for nothing any more.
class UnreadErrors {
 public:
  /// Adds the blocks of `run` and of all runs before it that nobody has read.
  void add(const std::shared_ptr<Run>& run, HostReader* reader);
  /// Gives them to their runs, once `reader` has run.
  void deliver(const HostReader& reader);

 private:
  struct Read {
    size_t number;
    size_t words;
  };
  struct Entry {
    std::shared_ptr<Run> run;
    std::vector<Read> reads;
  };
  std::set<const Run*> seen_;
  std::vector<Entry> entries_;
};

}  // namespace tracefire
