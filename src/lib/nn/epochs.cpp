// SPDX-License-Identifier: Apache-2.0
#include "lib/nn/epochs.h"

#include <algorithm>

#include "core/base/status.h"
#include "lib/nn/shuffle.h"
#include "tracefire/profiler.h"

namespace tracefire::nn {
namespace {

/// Epochs that nobody looks at between two looks at what came of them, where a step can fail.
constexpr int64_t kEpochsAtOnce = 16;

}  // namespace

Epochs::Epochs(Model& model, Trainer& trainer, const FitOptions& options, bool watched,
               History* history)
    : model_(model),
      trainer_(trainer),
      options_(options),
      watched_(watched),
      names_(trainer.names(StepKind::kTrain)),
      seed_(options.seed      ? *options.seed
            : options.shuffle ? next_seed()
                              : 0),
      history_(history) {}

const Order& Epochs::order_of(int64_t epoch) {
  if (options_.shuffle && ordered_ != epoch) {
    profiler::Input feed("shuffle");
    std::vector<int32_t> rows = shuffled_rows(trainer_.rows(), seed_, epoch);
    feed.stop();
    order_ = trainer_.order_of(std::move(rows));
    ordered_ = epoch;
  }
  return order_;
}

void Epochs::run_steps_of(int64_t epoch, int64_t lo, int64_t hi) {
  // Steps that are run again give the results of their epochs anew.
  const auto before = static_cast<size_t>(epoch) - history_->epochs.size();
  waiting_.resize(std::min(waiting_.size(), before));
  if (lo == 0) model_.reset_metrics();
  Tensors results = trainer_.run(StepKind::kTrain, order_of(epoch), lo, hi);
  if (hi == trainer_.steps()) waiting_.push_back(std::move(results));
}

int64_t Epochs::run(int64_t first) {
  const int64_t count = watched_ ? 1 : std::min(kEpochsAtOnce, options_.epochs - first);
  const int64_t an_epoch = trainer_.steps();
  const auto run = [&](int64_t lo, int64_t hi) {
    for (int64_t step = lo; step < hi;) {
      const int64_t epoch = step / an_epoch, begin = epoch * an_epoch;
      const int64_t end = std::min(hi, begin + an_epoch);
      run_steps_of(first + epoch, step - begin, end - begin);
      step = end;
    }
  };
  const auto place = [&](int64_t step) {
    const int64_t epoch = first + step / an_epoch;
    return concat_text("epoch ", epoch, ", ", trainer_.place(order_of(epoch), step % an_epoch),
                       ". The model has the state of the step before it and can be trained on");
  };
  const Steps steps{trainer_.functions(StepKind::kTrain), count * an_epoch, run, place};
  const bool look = watched_ || is_kept(steps);
  run_steps(steps, [&] {
    if (look) settle();
  });
  return first + count;
}

void Epochs::settle() {
  for (Report& report : read_reports(names_, waiting_)) {
    history_->epochs.push_back(std::move(report));
  }
  waiting_.clear();
}

void Epochs::settle_finished() {
  try {
    for (const Tensors& results : waiting_) {
      history_->epochs.push_back(read_reports(names_, {results})[0]);
    }
  } catch (const Error&) {  // whoever asks has an error to tell already
  }
  waiting_.clear();
}

}  // namespace tracefire::nn
