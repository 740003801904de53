// SPDX-License-Identifier: Apache-2.0
// What users write themselves: layers, losses, metrics, optimizers, steps.
#include <cmath>

#include "nn/reference.h"

using namespace tracefire;
using namespace tracefire::testing;

namespace {

/// x gain, with one gain a feature, and noise in training.
class Scale : public nn::Layer {
 public:
  Scale() : Layer("scale"), seeds_(add_seed_generator(11)) {}

 protected:
  void build(const Shape& input) override {
    gain_ = add_variable("gain", Shape{input[input.rank() - 1]}, nn::ones());
    calls_ = add_variable("calls", Shape{}, nn::zeros(), /*trainable=*/false);
  }
  Tensor call(const Tensor& input, const nn::Call& call) override {
    const Tensor y = mul(input, gain_.read());
    if (!call.training) return y;
    calls_.assign(add(calls_.read(), Tensor::scalar(1.0f)));
    const Tensor noise = random_uniform(seeds_.next(), input.shape());
    return add(y, mul(noise, Tensor::scalar(0.1f)));
  }

 private:
  nn::SeedGenerator seeds_;
  Variable gain_, calls_;
};

/// Two layers held inside of one.
class Block : public nn::Layer {
 public:
  explicit Block(int64_t units)
      : Layer("block"), scale_(add_layer(Scale())), dense_(add_layer(nn::Dense(units))) {}

 protected:
  Tensor call(const Tensor& input, const nn::Call& call) override {
    return (*dense_)((*scale_)(input, call), call);
  }

 private:
  std::shared_ptr<Scale> scale_;
  std::shared_ptr<nn::Dense> dense_;
};

/// Mean of |difference| to the power p.
class PowerError : public nn::Loss {
 public:
  explicit PowerError(float power) : power_(power) {}
  Tensor call(const Tensor& y_true, const Tensor& y_pred) const override {
    return reduce_mean(pow(abs(sub(y_true, y_pred)), Tensor::scalar(power_)), {1});
  }

 private:
  float power_;
};

/// Largest |difference| of the epoch: no mean.
class Worst : public nn::Metric {
 public:
  Worst() : Metric("worst"), largest_(add_variable("largest")) {}
  void update(const Tensor& y_true, const Tensor& y_pred) override {
    const Tensor off = abs(sub(y_true, y_pred));
    largest_.assign(maximum(largest_.read(), reduce_max(off, all_axes(off))));
  }
  Tensor result() const override { return largest_.read(); }

 private:
  Variable largest_;
};

/// Steps by the sign of the gradient, less each time.
class Signs : public optim::Optimizer {
 public:
  explicit Signs(double rate) : Optimizer("signs", rate) {}

 protected:
  void update(const Tensor& grad, const Variable& variable, const std::vector<Variable>&,
              const optim::Step& step) override {
    const Tensor rate = div(step.learning_rate, sqrt(cast(step.number, DType::kF32)));
    variable.assign(sub(variable.read(), mul(sign(grad), rate)));
  }
};

data::Dataset plane() {
  const Tensor x = draw({64, 3}, -1, 1, 1);
  const Tensor slope = Tensor::of<float>({2, -1, 0.5f}, {3, 1});
  return {x, matmul(x, slope)};
}

}  // namespace

TEST_CASE("a layer, a loss, a metric and an optimizer of one's own train like the library's") {
  nn::set_seed(5);
  auto block = std::make_shared<Block>(1);
  nn::Sequential model({block});
  model.compile({.optimizer = Signs(0.1), .loss = PowerError(1.5), .metrics = {Worst()}});
  const nn::History history =
      model.fit(plane(), {.batch_size = 16, .epochs = 40, .verbose = false});
  const std::vector<double> loss = history["loss"], worst = history["worst"];
  CHECK(loss.back() < 0.1 * loss.front());
  CHECK(worst.back() < worst.front());
  CHECK(worst.back() > loss.back());
  // gain, calls, keys of Scale; kernel, bias of Dense
  CHECK(block->variables().size() == 5);
  CHECK(block->trainable_variables().size() == 3);
  const Variable calls = block->variables()[2];
  CHECK(calls.name() == "scale/calls");
  CHECK(calls.read().item<float>() == 160);  // evaluation does not count
  model.evaluate(plane());
  CHECK(calls.read().item<float>() == 160);
}

namespace {

/// Learns by its own step: two halves, one loss each, one optimizer of its own beside fit's.
class Pair : public nn::Model {
 public:
  Pair() : Model("pair"), left_(add_layer(nn::Dense(1))), right_(add_layer(nn::Dense(1))) {}

  nn::NamedTensors train_step(const nn::Batch& batch) override {
    const Tensor left = loss(*left_, batch), right = loss(*right_, batch);
    optimizer().minimize(left, left_->trainable_variables());
    own_.minimize(right, right_->trainable_variables());
    return {{"left", left}, {"right", right}};
  }
  nn::NamedTensors test_step(const nn::Batch& batch) override {
    return {{"left", loss(*left_, batch)}, {"right", loss(*right_, batch)}};
  }

 protected:
  Tensor call(const Tensor& x, const nn::Call& call) override {
    return add((*left_)(x, call), (*right_)(x, call));
  }

 private:
  static Tensor loss(nn::Layer& half, const nn::Batch& batch) {
    const Tensor off = sub(half(batch.x), batch.y);
    return reduce_mean(square(off), all_axes(off));
  }
  std::shared_ptr<nn::Dense> left_, right_;
  optim::Adam own_{0.1};
};

}  // namespace

TEST_CASE("a train_step of one's own, with two losses and two optimizers") {
  nn::set_seed(6);
  Pair model;
  model.compile({.optimizer = optim::Sgd(0.2)});
  // One batch an epoch: the step's own figures are the epoch's.
  const nn::History history =
      model.fit(plane(), {.batch_size = 64, .epochs = 60, .verbose = false});
  CHECK(history["left"].back() < 0.05 * history["left"].front());
  CHECK(history["right"].back() < 0.05 * history["right"].front());
  const nn::Report report = model.evaluate(plane(), {.batch_size = 64});
  CHECK(report["left"] <= history["left"].back());
  CHECK(error_of([&] { report["loss"]; }) == 301);
}

TEST_CASE("steps that give no scalars, and models without loss or optimizer, are refused") {
  struct Rows : nn::Sequential {
    Rows() : Sequential({nn::Dense(1)}) {}
    nn::NamedTensors train_step(const nn::Batch& batch) override {
      return {{"rows", (*this)(batch.x)}};
    }
  };
  Rows rows;
  std::string why;
  CHECK(error_of([&] { rows.fit(plane(), {.verbose = false}); }, &why) == 101);
  CHECK(why.find("'rows'") != std::string::npos);
  struct Silent : nn::Sequential {
    Silent() : Sequential({nn::Dense(1)}) {}
    nn::NamedTensors train_step(const nn::Batch&) override { return {}; }
  };
  Silent silent;
  CHECK(error_of([&] { silent.fit(plane(), {.verbose = false}); }) == 502);

  nn::Sequential plain({nn::Dense(1)});
  CHECK(error_of([&] { plain.fit(plane(), {.verbose = false}); }, &why) == 502);
  CHECK(why.find("compile") != std::string::npos);
  plain.compile({.loss = nn::MeanSquaredError()});
  CHECK(error_of([&] { plain.fit(plane(), {.verbose = false}); }, &why) == 502);
  CHECK(why.find("optimizer") != std::string::npos);
  CHECK(plain.evaluate(plane())["loss"] > 0);  // needs none
  CHECK(error_of([&] {
          plain.compile({.loss = nn::MeanSquaredError(),
                         .metrics = {nn::Mean("a", nn::MeanSquaredError()), nn::Mean("a")}});
        }) == 103);
  CHECK(error_of([&] { plain.compile({.metrics = {nn::Mean("loss")}}); }) == 103);

  // A layer whose result does not reach the loss.
  class Unused : public nn::Layer {
   public:
    Unused() : Layer("unused") {}

   protected:
    void build(const Shape&) override { add_variable("lost", Shape{2}); }
    Tensor call(const Tensor& x, const nn::Call&) override { return x; }
  };
  nn::Sequential model({Unused(), nn::Dense(1)});
  model.compile({.optimizer = optim::Sgd(), .loss = nn::MeanSquaredError()});
  CHECK(error_of([&] { model.fit(plane(), {.verbose = false}); }, &why) == 107);
  CHECK(why.find("unused/lost") != std::string::npos);
}
