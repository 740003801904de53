// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <numeric>

#include "core/base/status.h"
#include "lib/nn/epochs.h"
#include "lib/nn/progress.h"
#include "lib/nn/trainer.h"

namespace tracefire::nn {

Model::Model(std::string name) : Layer(std::move(name)), training_(std::make_shared<State>()) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

Model::State& Model::training() const {
  if (!training_) {
    error(ErrorCode::kBadUsage, "a model was used after it was moved from; use the one it went to")
        .throw_if_error();
  }
  return *training_;
}

void Model::compile(CompileOptions options) {
  State& state = training();
  const Session session(state.busy, name(), Activity::kCompile);
  std::set<std::string> names{"loss"};
  for (const Ref<Metric>& metric : options.metrics) {
    if (!metric) error(ErrorCode::kBadAttribute, "compile got an empty metric").throw_if_error();
    if (!names.insert(metric->name()).second) {
      error(ErrorCode::kBadAttribute, "compile got two figures called '", metric->name(),
            "'; give each metric a name of its own ('loss' is taken)")
          .throw_if_error();
    }
  }
  state.compiled = std::move(options);
  state.steps.clear();
}

const History& Model::history() const { return training().history; }

optim::Optimizer& Model::optimizer() const {
  if (!training().compiled.optimizer) {
    error(ErrorCode::kBadUsage, "model '", name(),
          "' has no optimizer; call compile() with one before it is trained")
        .throw_if_error();
  }
  return *training().compiled.optimizer;
}

Tensor Model::compute_loss(const Batch& batch, const Tensor& y_pred) const {
  if (!training().compiled.loss) {
    error(ErrorCode::kBadUsage, "model '", name(),
          "' has no loss; call compile() with one before it is trained or evaluated")
        .throw_if_error();
  }
  return (*training().compiled.loss)(batch.y, y_pred);
}

NamedTensors Model::update_metrics(const Batch& batch, const Tensor& y_pred, const Tensor& loss) {
  training().loss_mean.add(loss, batch.x.shape()[0].value());
  NamedTensors figures{{"loss", training().loss_mean.result()}};
  for (const Ref<Metric>& metric : training().compiled.metrics) {
    metric->update(batch.y, y_pred);
    figures.emplace_back(metric->name(), metric->result());
  }
  return figures;
}

void Model::reset_metrics() {
  training().loss_mean.reset();
  for (const Ref<Metric>& metric : training().compiled.metrics) metric->reset();
}

NamedTensors Model::train_step(const Batch& batch) {
  const Tensor y_pred = (*this)(batch.x, {.training = true});
  const Tensor loss = compute_loss(batch, y_pred);
  optimizer().minimize(loss, trainable_variables());
  return update_metrics(batch, y_pred, loss);
}

NamedTensors Model::test_step(const Batch& batch) {
  const Tensor y_pred = (*this)(batch.x);
  return update_metrics(batch, y_pred, compute_loss(batch, y_pred));
}

Tensor Model::predict_step(const Tensor& x) { return (*this)(x); }

namespace {

void check_options(const FitOptions& options) {
  if (options.epochs >= 1) return;
  error(ErrorCode::kBadUsage, "epochs is ", options.epochs, "; it must be at least 1")
      .throw_if_error();
}

}  // namespace

void Model::check_not_moved(const std::shared_ptr<State>& training) const {
  if (training_ == training) return;
  error(ErrorCode::kBadUsage,
        "a model was moved or assigned to while it was trained; do so when fit has returned")
      .throw_if_error();
}

History Model::fit(const data::Dataset& data, const FitOptions& options) {
  check_options(options);
  training();                                     // kBadUsage where there is none
  const std::shared_ptr<State> held = training_;  // on_epoch may move the model away
  const Session session(held->busy, name(), Activity::kFit);
  History& history = held->history;
  history = {};
  Trainer trainer(*this, data, options.batch_size, options.check_data, /*needs_truth=*/true);
  std::optional<Trainer> validation;
  if (options.validation.x.defined()) {
    validation.emplace(*this, options.validation, options.batch_size, options.check_data, true);
  }
  if (training().compiled.optimizer) training().compiled.optimizer->build(trainable_variables());

  const bool watched = options.verbose || options.on_epoch || validation;
  Epochs epochs(*this, trainer, options, watched, &history);
  Progress progress(options.epochs, options.verbose);
  try {
    for (int64_t epoch = 0, end = 0; epoch < options.epochs && !history.stopped; epoch = end) {
      end = epochs.run(epoch);
      if (!watched) continue;
      Report& report = history.epochs.back();
      if (validation) {
        const Report figures = validation->test();
        for (const auto& [name, value] : figures.figures()) report.set("val_" + name, value);
      }
      if (options.on_epoch) {
        const BetweenEpochs between(*held->busy);
        history.stopped = !options.on_epoch(epoch, report);
      }
      check_not_moved(held);
      progress.finished(epoch, report.str(), history.stopped);
    }
  } catch (...) {
    epochs.settle_finished();  // stays known
    throw;
  }
  epochs.settle();
  return history;
}

Report Model::evaluate(const data::Dataset& data, const EvaluateOptions& options) {
  const Session session(training().busy, name(), Activity::kEvaluate);
  return Trainer(*this, data, options.batch_size, options.check_data, /*needs_truth=*/true).test();
}

Tensor Model::predict(const Tensor& x, int64_t batch_size) {
  const Session session(training().busy, name(), Activity::kPredict);
  Trainer trainer(*this, {x, {}}, batch_size, /*check_data=*/false, /*needs_truth=*/false);
  return trainer.predict();
}

namespace {

/// "name  shape  numbers" with the columns of a table.
std::string summary_line(const std::string& name, const std::string& shape,
                         const std::string& count) {
  char line[256];
  std::snprintf(line, sizeof line, "%-28.28s %-24.24s %14.14s\n", name.c_str(), shape.c_str(),
                count.c_str());
  return line;
}

int64_t numbers_in(const std::vector<Variable>& variables) {
  int64_t count = 0;
  for (const Variable& variable : variables) count += variable.shape().elements().value();
  return count;
}

}  // namespace

std::string Model::summary(const Shape& input) {
  const Shape result = output_shape(input);
  std::string text = summary_line("layer", "result", "numbers");
  Shape shape = input;
  const bool chain = is_chain();
  for (const Ref<Layer>& layer : layers()) {
    if (chain) shape = layer->output_shape(shape);
    text += summary_line(layer->name(), chain ? shape.str() : "",
                         std::to_string(numbers_in(layer->variables())));
  }
  text += summary_line(name(), result.str(), std::to_string(numbers_in(variables())));
  text += "trainable: " + std::to_string(numbers_in(trainable_variables())) + "\n";
  return text;
}

Sequential::Sequential(std::vector<Ref<Layer>> layers, std::string name) : Model(std::move(name)) {
  for (Ref<Layer>& layer : layers) add(std::move(layer));
}

void Sequential::add(Ref<Layer> layer) {
  if (layer) {
    const std::string base = layer->name();
    const auto taken = [&](const std::string& name) {
      return std::any_of(layers().begin(), layers().end(), [&](const Ref<Layer>& other) {
        return other.shared() != layer.shared() && other->name() == name;
      });
    };
    for (int i = 1; taken(layer->name()); ++i) layer->set_name(base + "_" + std::to_string(i));
  }
  hold(std::move(layer));
}

Tensor Sequential::call(const Tensor& input, const Call& call) {
  Tensor x = input;
  for (size_t i = 0; i < layers().size(); ++i) {
    const Ref<Layer> layer = layers()[i];  // one's own layer may add layers when it is called
    x = (*layer)(x, call);
  }
  return x;
}

}  // namespace tracefire::nn
