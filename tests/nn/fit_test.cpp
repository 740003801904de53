// SPDX-License-Identifier: Apache-2.0
// Training against Keras on JAX, and what fit promises beside the figures.
#include <cmath>

#include "nn/reference.h"
#include "tracefire/config.h"
#include "tracefire/observe.h"

using namespace tracefire;
using namespace tracefire::testing;

namespace {

/// Keras on JAX multiplied in full float32, too.
const bool full_precision = (set_tensor_float_32(false), true);

/// small_model() of make_values.py.
nn::Sequential small_model(Ref<optim::Optimizer> optimizer) {
  nn::Sequential model(
      {nn::Dense(16, {.activation = nn::relu, .kernel_initializer = nn::glorot_uniform(61)}),
       nn::Dropout(0.3, 62), nn::Dense(3, {.kernel_initializer = nn::glorot_uniform(63)})});
  model.compile({.optimizer = std::move(optimizer),
                 .loss = nn::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {nn::SparseCategoricalAccuracy()}});
  return model;
}

data::Dataset small_data() { return {draw({205, 6}, 0, 1, 71), draw_labels(205, 3, 72)}; }
data::Dataset held_data() { return {draw({50, 6}, 0, 1, 73), draw_labels(50, 3, 74)}; }

nn::FitOptions in_order(int64_t batch, int64_t epochs = 3) {
  return {.batch_size = batch, .epochs = epochs, .shuffle = false, .verbose = false};
}

void check_history(const char* name, const nn::Model& model, const nn::History& history) {
  INFO(name);
  const auto& expected = keras_values()["fits"][name];
  for (const auto& [key, values] : expected.items()) {
    const std::string figure = key;  // INFO cannot hold a structured binding in Clang 14
    INFO(figure);
    if (figure == "weights") {
      std::vector<double> sums;
      for (const Variable& v : model.trainable_variables()) {
        const Tensor size = abs(cast(v.read(), DType::kF64));
        sums.push_back(reduce_sum(size, all_axes(size)).item<double>());
      }
      check_close(sums, values.get<std::vector<double>>(), 1e-5);
    } else {
      check_close(history[figure], values.get<std::vector<double>>(), 1e-5);
    }
  }
}

}  // namespace

TEST_CASE(
    "fit gives Keras's history and weights: full and partial batches, dropout, two optimizers") {
  const data::Dataset data = small_data();
  {
    nn::Sequential model = small_model(optim::Adam(0.01));
    check_history("full batches", model, model.fit(data, in_order(41)));
    const data::Dataset held = held_data();
    const nn::Report figures = model.evaluate(held);
    check_close({figures["loss"], figures["accuracy"]},
                keras_values()["fits"]["evaluate"].get<std::vector<double>>(), 1e-5);
    const Tensor predictions = model.predict(held.x);
    CHECK(predictions.sizes() == std::vector<int64_t>{50, 3});
    check_close(predictions, keras_values()["fits"]["predict"], 2e-5, 5e-6);
  }
  {
    nn::Sequential model = small_model(optim::Adam(0.01));
    check_history("partial batch", model, model.fit(data, in_order(32)));
  }
  {
    nn::Sequential model = small_model(optim::Adam(0.01));
    check_history("one batch", model, model.fit(data.x, data.y, in_order(500)));
  }
  {
    nn::Sequential model = small_model(optim::Sgd({.learning_rate = 0.1, .momentum = 0.9}));
    check_history("momentum", model, model.fit(data, in_order(32)));
  }
  {
    nn::Sequential model = small_model(optim::Adam(0.01));
    nn::FitOptions options = in_order(32);
    options.validation = held_data();
    const nn::History history = model.fit(data, options);
    check_history("validation", model, history);
    CHECK(history.epochs.back().figures().size() == 4);
  }
}

TEST_CASE("fit on the digits: the demo's network follows Keras's history") {
  const auto [train, test] = data::split_every(data::digits(), 5);
  const auto run = [&, train = train, test = test](const char* name,
                                                   Ref<optim::Optimizer> optimizer, double later) {
    INFO(name);
    const auto dense = [](int64_t units, nn::ActivationFunction activation, uint32_t seed) {
      return nn::Dense(units, {.activation = std::move(activation),
                               .kernel_initializer = nn::glorot_uniform(seed)});
    };
    nn::Sequential model({dense(128, nn::relu, 81), nn::Dropout(0.2, 82), dense(64, nn::relu, 83),
                          dense(10, nn::softmax, 84)});
    model.compile({.optimizer = std::move(optimizer),
                   .loss = nn::SparseCategoricalCrossentropy(),
                   .metrics = {nn::SparseCategoricalAccuracy()}});
    const nn::History history = model.fit(train, in_order(64, 5));
    const auto& expected = keras_values()["digits"][name];
    const std::vector<double> loss = expected["loss"], accuracy = expected["accuracy"];
    check_close({history["loss"][0]}, {loss[0]}, 1e-5);
    check_close(history["loss"], loss, later);
    check_close(history["accuracy"], accuracy, 0, 2.0 / 1437);  // two digits of all
    const nn::Report figures = model.evaluate(test);
    check_close({figures["loss"]}, {expected["evaluate"][0]}, 2 * later);
    check_close({figures["accuracy"]}, {expected["evaluate"][1]}, 0, 1.0 / 360);
  };
  run("momentum", optim::Sgd({.learning_rate = 0.05, .momentum = 0.9}), 1e-5);
  // Adam makes steps of the rate's size from gradients of any size: rounding of those near 0 grows.
  run("adam", optim::Adam(), 1e-3);
}

TEST_CASE("fit: an epoch waits for nothing unless somebody watches, and reads little") {
  nn::Sequential model = small_model(optim::Adam(0.01));
  const data::Dataset data = small_data();
  model.fit(data, in_order(41, 1));
  reset_proof();
  const nn::History history = model.fit(data, in_order(41, 4));
  CHECK(history.epochs.size() == 4);
  const Proof after = proof();
  uint64_t updates = 0;
  for (const Proof::Row& row : after.rows) {
    if (row.op == "adam_update") updates += row.runs;
  }
  // Epochs, batches, variables. A GPU without a kernel of its own for Adam runs its pieces, fused.
  if (default_device().kind != Device::kGpu) CHECK(updates == 4 * 5 * 4);
  // On a GPU: checks of the data, once each, and all epochs' figures at once.
  CHECK(after.synchronizations <= 4);
}

TEST_CASE("fit: shuffled epochs see every row once, and repeat with the seed") {
  // The sum of a weight-free step over the data tells which rows it saw.
  const data::Dataset data{draw({37, 2}, 0, 1, 1), draw_labels(37, 2, 2)};
  const auto losses = [&](uint32_t seed, bool shuffle) {
    nn::Sequential model = small_model(optim::Adam(0.01));
    return model.fit(
        data,
        {.batch_size = 8, .epochs = 3, .shuffle = shuffle, .seed = seed, .verbose = false})["loss"];
  };
  CHECK(losses(1, true) == losses(1, true));
  CHECK(losses(1, true) != losses(2, true));
  CHECK(losses(1, true) != losses(1, false));

  // With a rate of 0 and no dropout an epoch's mean is that of all rows, in any order.
  nn::Sequential still({nn::Dense(2, {.kernel_initializer = nn::glorot_uniform(3)})});
  still.compile({.optimizer = optim::Sgd(0.0),
                 .loss = nn::SparseCategoricalCrossentropy({.from_logits = true})});
  const std::vector<double> means =
      still.fit(data, {.batch_size = 8, .epochs = 3, .verbose = false})["loss"];
  const double all = still.evaluate(data)["loss"];
  for (double mean : means) CHECK(mean == doctest::Approx(all).epsilon(1e-6));
}

TEST_CASE("fit: on_epoch sees every epoch and ends training; a second fit goes on") {
  nn::Sequential model = small_model(optim::Adam(0.01));
  const data::Dataset data = small_data();
  std::vector<int64_t> seen;
  nn::FitOptions options = in_order(41, 10);
  options.on_epoch = [&](int64_t epoch, const nn::Report& report) {
    CHECK(report["loss"] > 0);
    seen.push_back(epoch);
    return epoch < 2;
  };
  const nn::History history = model.fit(data, options);
  CHECK(seen == std::vector<int64_t>{0, 1, 2});
  CHECK(history.stopped);
  CHECK(history.epochs.size() == 3);
  const nn::History more = model.fit(data, in_order(41, 1));
  CHECK_FALSE(more.stopped);
  CHECK(model.optimizer().iterations().read().item<int64_t>() == 4 * 5);
}

TEST_CASE("a frozen layer keeps its weights, and a step traced before is not used again") {
  nn::Sequential model = small_model(optim::Adam(0.01));
  const data::Dataset data = small_data();
  model.fit(data, in_order(41, 1));
  model.layers()[0]->set_trainable(false);
  CHECK(model.trainable_variables().size() == 2);
  const std::vector<float> kept = model.layers()[0]->variables()[0].read().values<float>();
  const std::vector<float> moved = model.layers()[2]->variables()[0].read().values<float>();
  model.fit(data, in_order(41, 1));
  CHECK(model.layers()[0]->variables()[0].read().values<float>() == kept);
  CHECK(model.layers()[2]->variables()[0].read().values<float>() != moved);
}

TEST_CASE("summary, names and reports") {
  nn::Sequential model = small_model(optim::Adam());
  const std::string text = model.summary(Shape{Dim::fresh("N"), 6});
  for (const char* part :
       {"dense ", "dense_1", "dropout", "(N, 16)", "(N, 3)", "112", "trainable: 163"}) {
    INFO(text, part);
    CHECK(text.find(part) != std::string::npos);
  }
  nn::Report report;
  report.set("loss", 0.25);
  report.set("accuracy", 1);
  report.set("loss", 0.5);
  CHECK(report.str() == "loss 0.5000  accuracy 1.0000");
  std::string why;
  CHECK(error_of([&] { report["los"]; }, &why) == 301);
  CHECK(why.find("loss, accuracy") != std::string::npos);
  CHECK(error_of([] { nn::History()["loss"]; }) == 301);
}

TEST_CASE("a layer whose build failed may be built again, and traced steps are not kept for ever") {
  class Picky : public nn::Layer {
   public:
    Picky() : Layer("picky") {}

   protected:
    void build(const Shape& input) override {
      add_variable("first", Shape{2});
      if (input[1] != Dim(3)) throw std::runtime_error("three features, please");
    }
    Tensor call(const Tensor& x, const nn::Call&) override { return x; }
  };
  Picky picky;
  CHECK_THROWS_WITH(picky(draw({1, 2}, 0, 1, 1)), "three features, please");
  CHECK(picky.variables().empty());
  picky(draw({1, 3}, 0, 1, 1));
  CHECK(picky.variables().size() == 1);

  nn::Sequential model({nn::Dense(1)});
  for (int64_t rows = 1; rows < 40; ++rows) {
    CHECK(model.predict(draw({rows, 2}, 0, 1, 1), 64).sizes() == std::vector<int64_t>{rows, 1});
  }
}
