// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/nn/recovery.h"
#include "lib/nn/trainer.h"

namespace tracefire::nn {

/// The epochs of a fit and their reports.
class Epochs {
 public:
  /// `watched`: somebody looks at the report of every epoch.
  Epochs(Model& model, Trainer& trainer, const FitOptions& options, bool watched, History* history);

  /// Runs epochs from `first` on and gives the number of the next one. Reports are in the history
  /// afterwards where somebody looks. Where a step fails on its data, the model has the state of
  /// the step before it.
  int64_t run(int64_t first);
  /// Reads the reports that nobody has looked at.
  void settle();
  /// After a failure: the same, up to the first of them that cannot be read.
  void settle_finished();

 private:
  void run_steps_of(int64_t epoch, int64_t lo, int64_t hi);
  const Order& order_of(int64_t epoch);

  Model& model_;
  Trainer& trainer_;
  const FitOptions& options_;
  bool watched_;
  std::vector<std::string> names_;
  uint32_t seed_;
  History* history_;
  std::vector<Tensors> waiting_;  ///< results of the epochs behind those of the history
  Order order_;
  int64_t ordered_ = -1;  ///< the epoch whose order that is
};

}  // namespace tracefire::nn
