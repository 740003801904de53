// SPDX-License-Identifier: Apache-2.0
// A layer, a loss and a training step of one's own. The trainer treats them as it treats those of
// the library: the step is traced once, and whole epochs run on the device.
#include <cstdio>

#include "tracefire/grad.h"
#include "tracefire/nn.h"
#include "tracefire/ops.h"

using namespace tracefire;

/// A dense layer with a way around it: x + tanh(x kernel).
class Residual : public nn::Layer {
 public:
  Residual() : Layer("residual") {}

 protected:
  void build(const Shape& input) override {
    const Dim width = input[input.rank() - 1];
    kernel_ = add_variable("kernel", Shape{width, width}, nn::glorot_uniform());
  }
  Tensor call(const Tensor& x, const nn::Call&) override {
    return add(x, tanh(matmul(x, kernel_.read())));
  }

 private:
  Variable kernel_;
};

/// log cosh of the difference: square near 0, straight far away.
class LogCosh : public nn::Loss {
 public:
  Tensor call(const Tensor& y_true, const Tensor& y_pred) const override {
    const Tensor off = abs(sub(y_pred, y_true));
    const Tensor two = Tensor::scalar(2.0f), log2 = Tensor::scalar(0.6931472f);
    const Tensor rest = log1p(exp(neg(mul(two, off))));
    return reduce_mean(sub(add(off, rest), log2), {1});
  }
};

/// Trains as fit does, and also says how long the gradients of the first layer are.
class Watched : public nn::Sequential {
 public:
  using Sequential::Sequential;

  nn::NamedTensors train_step(const nn::Batch& batch) override {
    const Tensor y_pred = (*this)(batch.x, {.training = true});
    const Tensor loss = compute_loss(batch, y_pred);
    std::vector<Tensor> values;
    for (const Variable& variable : trainable_variables()) values.push_back(variable.read());
    const std::vector<Tensor> grads = gradients({loss}, values);
    optimizer().apply(grads, trainable_variables());
    nn::NamedTensors figures = update_metrics(batch, y_pred, loss);
    figures.emplace_back("slope", sqrt(reduce_sum(square(grads[0]))));
    return figures;
  }
};

int main() {
  // y is the sum of squares of four numbers.
  nn::set_seed(1);
  const Tensor x = nn::uniform(-1, 1)(Shape{512, 4}, DType::kF32);
  const data::Dataset data{x, reduce_sum(square(x), {1}, true)};
  Watched model({nn::Dense(32), Residual(), Residual(), nn::Dense(1)});
  model.compile({.optimizer = optim::Adam(0.01), .loss = LogCosh()});
  const nn::History history = model.fit(data, {.batch_size = 64, .epochs = 100});
  std::printf("loss %.4f -> %.4f, last slope %.4f\n", history["loss"].front(),
              history["loss"].back(), history["slope"].back());
}
