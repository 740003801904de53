// SPDX-License-Identifier: Apache-2.0
// A layer that came twice in a model was renamed for ever, its variables were counted and updated
// twice, and a model could be made a part of itself.
#include "nn/reference.h"
#include "tracefire/grad.h"

namespace tracefire::testing {
namespace {

using Layers = std::vector<Ref<nn::Layer>>;

nn::CompileOptions squared_error(double rate) {
  return {.optimizer = optim::Sgd(rate), .loss = nn::MeanSquaredError()};
}

}  // namespace

TEST_CASE("a layer that comes twice shares its variables, which count once") {
  const auto dense = std::make_shared<nn::Dense>(2, nn::DenseOptions{.name = "both"});
  nn::Sequential model(Layers{dense, nn::Activation(nn::tanh), dense});
  const Tensor x = draw({4, 2}, -1, 1, 1), y = draw({4, 2}, -1, 1, 2);
  model.predict(x);
  CHECK(dense->name() == "both");
  CHECK(model.variables().size() == 2);
  CHECK(model.trainable_variables().size() == 2);
  CHECK(model.summary(Shape{4, 2}).find("trainable: 6\n") != std::string::npos);

  // The same network by hand: w -> tanh(x w + b) w + b, one step of gradient descent.
  const std::vector<Tensor> before{dense->kernel().read(), dense->bias().read()};
  std::vector<Tensor> expected;
  const double rate = 0.5;
  {
    Tape tape;
    tape.watch(before[0]);
    tape.watch(before[1]);
    const auto layer = [&](const Tensor& in) { return add(matmul(in, before[0]), before[1]); };
    const Tensor loss = reduce_mean(square(sub(layer(tanh(layer(x))), y)), {0, 1});
    const Tensors grads = tape.gradients({loss}, before);
    for (size_t i = 0; i < 2; ++i) {
      const Tensor step = mul(grads[i], Tensor::scalar(static_cast<float>(rate)));
      expected.push_back(sub(before[i], step));
    }
  }
  model.compile(squared_error(rate));
  model.fit(x, y, {.batch_size = 4, .shuffle = false, .verbose = false});
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<float> got = model.variables()[i].read().values<float>();
    const std::vector<float> wanted = expected[i].values<float>();
    REQUIRE(got.size() == wanted.size());
    for (size_t k = 0; k < got.size(); ++k)
      CHECK(got[k] == doctest::Approx(wanted[k]).epsilon(1e-5));
  }
}

TEST_CASE(
    "a layer shared by models in a model counts once; frozen in one, it trains in the other") {
  const auto dense = std::make_shared<nn::Dense>(2);
  const auto first = std::make_shared<nn::Sequential>(Layers{dense}, "first");
  const auto second = std::make_shared<nn::Sequential>(Layers{dense, nn::Dense(2)}, "second");
  nn::Sequential model(Layers{first, second, first});
  model.predict(draw({3, 2}, -1, 1, 1));
  CHECK(model.variables().size() == 4);
  first->set_trainable(false);
  CHECK(model.trainable_variables().size() == 4);
  dense->set_trainable(false);
  CHECK(model.trainable_variables().size() == 2);
  // Layers that halve many times over are walked once each, not 2^60 times.
  Ref<nn::Layer> tower = dense;
  for (int i = 0; i < 60; ++i) tower = std::make_shared<nn::Sequential>(Layers{tower, tower});
  CHECK(tower->variables().size() == 2);
}

TEST_CASE("different layers of one name are numbered, the same layer is not") {
  const auto dense = std::make_shared<nn::Dense>(2);
  nn::Sequential model(Layers{dense, nn::Dense(2), dense, nn::Dense(2)});
  std::vector<std::string> names;
  for (const auto& layer : model.layers()) names.push_back(layer->name());
  CHECK(names == std::vector<std::string>{"dense", "dense_1", "dense", "dense_2"});
}

TEST_CASE("a model cannot be a part of itself") {
  const auto outer = std::make_shared<nn::Sequential>(Layers{}, "outer");
  const auto middle = std::make_shared<nn::Sequential>(Layers{outer}, "middle");
  std::string text;
  CHECK(error_of([&] { outer->add(outer); }, &text) == 103);
  CHECK(text.find("itself") != std::string::npos);
  CHECK(error_of([&] { outer->add(middle); }, &text) == 103);
  CHECK(text.find("'middle'") != std::string::npos);
  CHECK(outer->layers().empty());
  outer->add(nn::Dense(1));  // still usable
  CHECK(middle->predict(draw({3, 2}, -1, 1, 1)).sizes() == std::vector<int64_t>{3, 1});
}

TEST_CASE("an optimizer refuses a variable that comes twice") {
  const Variable w(Tensor::scalar(1.0f), "w");
  const Tensor one = Tensor::scalar(1.0f);
  optim::Sgd sgd(0.5);
  std::string text;
  CHECK(error_of([&] { sgd.apply({one, one}, {w, w}); }, &text) == 103);
  CHECK(text.find("'w'") != std::string::npos);
  CHECK(w.read().item<float>() == 1.0f);
  sgd.apply({one}, {w});
  CHECK(w.read().item<float>() == 0.5f);
}

}  // namespace tracefire::testing
