// SPDX-License-Identifier: Apache-2.0
// A step that fails on its data: the error is thrown once, and the model has the state of the steps
// before it, with which it goes on. The reference is a twin that never ran the bad step.
#include <atomic>
#include <cmath>
#include <stdexcept>

#include "core/base/event.h"
#include "nn/reference.h"
#include "tracefire/config.h"
#include "tracefire/control.h"

using namespace tracefire;
using namespace tracefire::testing;

namespace {

constexpr int64_t kRows = 105, kBatch = 10, kWidth = 4, kAnEpoch = 11;  // ten batches and one of 5
std::atomic<int> calls{0};

/// What a layer of one's own does with its input, and with the number of the training step.
using Touch = Tensor (*)(const Tensor& x, const Tensor& step);

class Touchy : public nn::Layer {
 public:
  explicit Touchy(Touch touch) : Layer("touchy"), touch_(touch) {}

 protected:
  void build(const Shape&) override {
    steps_ = add_variable("steps", Shape{}, nn::zeros(), /*trainable=*/false);
  }
  Tensor call(const Tensor& input, const nn::Call& call) override {
    const Tensor result = touch_(input, steps_.read());
    if (call.training) steps_.assign(add(steps_.read(), Tensor::scalar(1.0f)));
    return result;
  }

 private:
  Touch touch_;
  Variable steps_;
};

/// Numbers of x up to 4 pick from a table.
Tensor looked_up(const Tensor& x, const Tensor&) {
  return gather(Tensor::of<float>({0.1f, -0.2f, 0.3f, 0.5f, -0.4f}, {5}), cast(x, DType::kI32));
}
Tensor checked(const Tensor& x, const Tensor&) { return check_finite(x, "x is finite"); }
Tensor through_the_host(const Tensor& x, const Tensor&) {
  const HostFunction look = [](const std::vector<HostArray>& in) -> std::vector<HostArray> {
    ++calls;
    for (const float value : in[0].values<float>()) {
      if (value == 99) throw std::runtime_error("no 99, please");
    }
    return {in[0]};
  };
  return host_call(look, {x}, {{DType::kF32, x.shape()}})[0];
}
/// Fails at step 17, the seventh of the second epoch.
Tensor until_step_17(const Tensor& x, const Tensor& step) {
  const Tensor ones = Tensor::of(std::vector<float>(17, 1.0f), {17});
  return mul(x, gather(ones, cast(step, DType::kI32)));
}
Tensor untouched(const Tensor& x, const Tensor&) { return x; }

nn::Sequential model_with(Touch touch) {
  nn::Sequential model({Touchy(touch), nn::Dense(8, {.kernel_initializer = nn::glorot_uniform(5)}),
                        nn::Dropout(0.2, 6),
                        nn::Dense(3, {.kernel_initializer = nn::glorot_uniform(7)})});
  model.compile({.optimizer = optim::Adam(0.01),
                 .loss = nn::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {nn::SparseCategoricalAccuracy()}});
  return model;
}

std::vector<float> numbers() {
  std::vector<float> values(kRows * kWidth);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i % 5);
  return values;
}
/// The first rows of the data; row `bad` holds `value`.
data::Dataset rows_of(int64_t rows, int64_t bad = -1, float value = 0) {
  std::vector<float> x = numbers();
  if (bad >= 0) x[static_cast<size_t>(bad * kWidth + 2)] = value;
  x.resize(static_cast<size_t>(rows * kWidth));
  std::vector<int32_t> y;
  for (int64_t i = 0; i < rows; ++i) y.push_back(static_cast<int32_t>(i % 3));
  return {Tensor::of(x, {rows, kWidth}), Tensor::of(y, {rows})};
}

nn::FitOptions in_order(int64_t epochs = 1) {
  return {.batch_size = kBatch,
          .epochs = epochs,
          .shuffle = false,
          .verbose = false,
          .check_data = false};
}

std::vector<std::vector<float>> state(const nn::Model& model) {
  std::vector<std::vector<float>> values;
  std::vector<Variable> variables = model.variables();
  for (const Variable& variable : model.optimizer().variables()) variables.push_back(variable);
  for (const Variable& variable : variables) {
    values.push_back(cast(variable.read(), DType::kF32).values<float>());
  }
  return values;
}

/// Both models have one state, and go on alike.
void check_twins(nn::Model& model, nn::Model& twin) {
  CHECK(state(model) == state(twin));
  const data::Dataset data = rows_of(kRows);
  const Tensor given = model.predict(data.x), expected = twin.predict(data.x);
  CHECK(given.values<float>() == expected.values<float>());
  CHECK(model.evaluate(data)["loss"] == twin.evaluate(data)["loss"]);
  const nn::History history = model.fit(data, in_order(2));
  CHECK(history["loss"] == twin.fit(data, in_order(2))["loss"]);
  CHECK(state(model) == state(twin));
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

struct Fault {
  Touch touch;
  float value;
  int code;
  const char* op;
};

}  // namespace

TEST_CASE("a step that fails on its data: the model keeps the steps before it and goes on") {
  const Fault faults[] = {{looked_up, 77, 301, "gather"},
                          {looked_up, -9, 301, "gather"},
                          {checked, INFINITY, 302, "check_finite"},
                          {through_the_host, 99, 304, "no 99, please"}};
  for (const Fault& fault : faults) {
    for (const int64_t row : {int64_t{7}, int64_t{64}, kRows - 1}) {
      for (const bool watched : {false, true}) {
        INFO(fault.op, ", row ", row, ", watched: ", watched);
        nn::Sequential model = model_with(fault.touch), twin = model_with(fault.touch);
        model.fit(rows_of(kRows), in_order());
        twin.fit(rows_of(kRows), in_order());
        nn::FitOptions options = in_order(3);
        if (watched) options.on_epoch = [](int64_t, const nn::Report&) { return true; };
        calls = 0;
        std::string text;
        CHECK(error_of([&] { model.fit(rows_of(kRows, row, fault.value), options); }, &text) ==
              fault.code);
        CHECK(has(text, fault.op));
        CHECK(has(text, "epoch 0, batch " + std::to_string(row / kBatch) + ", rows "));
        CHECK(model.history().epochs.empty());
        const int64_t good = row - row % kBatch;
        // Nothing that is seen outside is done twice.
        if (fault.touch == through_the_host) CHECK(calls == good / kBatch + 1);
        if (good > 0) twin.fit(rows_of(good), in_order());
        synchronize();  // the error is not told again
        check_twins(model, twin);
      }
    }
  }
}

TEST_CASE("a label that only the step sees costs no more than its step") {
  nn::Sequential model = model_with(untouched), twin = model_with(untouched);
  data::Dataset data = rows_of(kRows);
  std::vector<int32_t> labels = data.y.values<int32_t>();
  labels[64] = 5;
  data.y = Tensor::of(labels, {kRows});
  std::string text;
  CHECK(error_of([&] { model.fit(data, in_order()); }, &text) == 301);
  CHECK(has(text, "label 5 is out of range"));
  CHECK(has(text, "batch 6, rows 60 to 69"));
  twin.fit(rows_of(60), in_order());
  check_twins(model, twin);
  // A shuffled epoch names the rows as the user counts them.
  nn::FitOptions shuffled = in_order();
  shuffled.shuffle = true;
  shuffled.seed = 3;
  CHECK(error_of([&] { model.fit(data, shuffled); }, &text) == 301);
  CHECK((has(text, ", 64,") || has(text, ", 64.") || has(text, "rows 64,")));
  for (const std::vector<float>& values : state(model)) {
    for (const float value : values) CHECK(std::isfinite(value));
  }
}

TEST_CASE("a step of a later epoch fails: the epochs before it stay known") {
  for (const bool watched : {false, true}) {
    INFO("watched: ", watched);
    nn::Sequential model = model_with(until_step_17), twin = model_with(until_step_17);
    nn::FitOptions options = in_order(4);
    if (watched) options.on_epoch = [](int64_t, const nn::Report&) { return true; };
    std::string text;
    CHECK(error_of([&] { model.fit(rows_of(kRows), options); }, &text) == 301);
    CHECK(has(text, "epoch 1, batch 6, rows 60 to 69"));
    const nn::History whole = twin.fit(rows_of(kRows), in_order());
    CHECK(model.history()["loss"] == whole["loss"]);
    twin.fit(rows_of(60), in_order());
    CHECK(state(model) == state(twin));
    CHECK(model.optimizer().iterations().read().item<int64_t>() == kAnEpoch + 6);
  }
}

TEST_CASE("a failed evaluation, validation or prediction costs nothing") {
  nn::Sequential model = model_with(looked_up), twin = model_with(looked_up);
  model.fit(rows_of(kRows), in_order());
  twin.fit(rows_of(kRows), in_order());
  const data::Dataset bad = rows_of(kRows, 64, 77);
  std::string text;
  CHECK(error_of([&] { model.evaluate(bad, {.batch_size = kBatch, .check_data = false}); },
                 &text) == 301);
  CHECK(has(text, "batch 6, rows 60 to 69"));
  CHECK(error_of([&] { model.predict(bad.x).values<float>(); }) == 301);
  nn::FitOptions validated = in_order();
  validated.validation = bad;
  CHECK(error_of([&] { model.fit(rows_of(kRows), validated); }) == 301);
  twin.fit(rows_of(kRows), in_order());
  check_twins(model, twin);
}

TEST_CASE("a reset_metrics of one's own that throws beside a failed step leaves a whole state") {
  struct Own : nn::Sequential {
    using nn::Sequential::Sequential;
    int left = 1 << 20;
    void reset_metrics() override {
      if (left-- <= 0) throw std::runtime_error("no more epochs, please");
      nn::Sequential::reset_metrics();
    }
  };
  Own model({Touchy(looked_up), nn::Dense(3, {.kernel_initializer = nn::glorot_uniform(5)})});
  model.compile({.optimizer = optim::Adam(0.01),
                 .loss = nn::SparseCategoricalCrossentropy({.from_logits = true})});
  model.fit(rows_of(kRows), in_order());
  const std::vector<std::vector<float>> before = state(model);
  model.left = 1;  // the first epoch's, and neither the second's nor that of steps run again
  CHECK_THROWS(model.fit(rows_of(kRows, 64, 77), in_order(3)));
  CHECK(state(model) == before);
  model.left = 1;
  CHECK(model.fit(rows_of(kRows), in_order()).epochs.size() == 1);
}

TEST_CASE("epochs that go well: their state is copied once for many, and only where one can fail") {
  std::atomic<int> copies{0};
  Events::Subscriber subscriber;
  subscriber.copy = [&](const CopyEvent& event) {
    if (std::string_view(event.reason).find("in case a step fails") != std::string_view::npos) {
      ++copies;
    }
  };
  const auto id = Events::instance().subscribe(std::move(subscriber));
  const data::Dataset data = rows_of(kRows);
  nn::Sequential line({nn::Dense(1)});
  line.compile({.optimizer = optim::Sgd(), .loss = nn::MeanSquaredError()});
  line.fit({data.x, cast(data.y, DType::kF32)}, in_order(5));
  CHECK(copies == 0);
  nn::Sequential model = model_with(untouched);
  model.fit(data, in_order(5));
  CHECK(copies == 1);
  nn::FitOptions watched = in_order(5);
  watched.on_epoch = [](int64_t, const nn::Report&) { return true; };
  model.fit(data, watched);
  CHECK(copies == 1 + 5);
  Events::instance().unsubscribe(id);
}
