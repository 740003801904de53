// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lib/nn/session.h"
#include "tracefire/function.h"
#include "tracefire/nn.h"

namespace tracefire::nn {

enum class StepKind : uint8_t { kTrain, kTest, kPredict };

/// A step traced for one type of batch.
struct TracedStep {
  StepKind kind;
  std::vector<TensorSpec> batch;              ///< types of x and, where given, y
  std::vector<const trace::Slot*> trainable;  ///< variables trained when it was traced
  Function function;
  std::vector<std::string> names;  ///< of its results; empty for predictions
};

struct Model::State {
  std::shared_ptr<Busy> busy = std::make_shared<Busy>();
  CompileOptions compiled;
  Mean loss_mean{"loss"};
  std::vector<TracedStep> steps;
  History history;
};

/// The order in which an epoch uses rows; without rows: as they lie.
struct Order {
  std::vector<int32_t> rows;
  Tensor full, rest;  ///< the rows of full batches, and of the rest where there is one
};

/// Runs a model's steps over data on the device. Knows no layer, loss, metric or optimizer by name:
/// it traces the model's own step methods.
class Trainer {
 public:
  /// Moves the data to the default device, creates the model's variables and checks the data.
  Trainer(Model& model, const data::Dataset& data, int64_t batch_size, bool check_data,
          bool needs_truth);

  /// What an epoch's steps run: one function for full batches, one for the rest of the rows.
  std::vector<Function> functions(StepKind kind);
  int64_t steps() const { return full_ + (rest_ > 0 ? 1 : 0); }
  /// Results of the last of an epoch's steps lo … hi - 1, not waited for.
  Tensors run(StepKind kind, const Order& order, int64_t lo, int64_t hi);
  /// "batch 6, rows 120 to 139".
  std::string place(const Order& order, int64_t step) const;
  /// An order of rows, on the device.
  Order order_of(std::vector<int32_t> rows) const;
  /// Tests on all rows. The metrics begin at 0.
  Report test();
  /// Predictions of every step, one after the other.
  Tensor predict();
  /// Names of the results of run().
  const std::vector<std::string>& names(StepKind kind);
  int64_t rows() const { return rows_; }

 private:
  void check_truth(const Shape& predictions) const;
  int64_t rows_in(int64_t step) const { return step < full_ ? batch_ : rest_; }
  const TracedStep& step(StepKind kind, int64_t rows);
  TracedStep trace(StepKind kind, std::vector<TensorSpec> batch);
  /// Arrays of the data, as the steps take them.
  Tensors arrays(StepKind kind) const;
  const Tensor& rows_in_order(bool rest);

  Model& model_;
  data::Dataset data_;
  int64_t rows_, batch_, full_, rest_;
  Tensor in_order_, rest_in_order_;  ///< made when first needed
};

/// Scalars as numbers, read from the device at once. `groups[i]` are the results of one epoch.
std::vector<Report> read_reports(const std::vector<std::string>& names,
                                 const std::vector<Tensors>& groups);

}  // namespace tracefire::nn
