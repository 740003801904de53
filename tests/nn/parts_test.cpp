// SPDX-License-Identifier: Apache-2.0
// Initializers, layers, losses, metrics and optimizers, against Keras on JAX.
#include <cmath>

#include "nn/reference.h"
#include "tracefire/function.h"
#include "tracefire/grad.h"

using namespace tracefire;
using namespace tracefire::testing;

TEST_CASE("initializers give the numbers of keras.initializers for the same seeds") {
  const auto& draws = keras_values()["draws"];
  const Shape shape{7, 5};
  check_close(nn::glorot_uniform(7)(shape, DType::kF32), draws["glorot_uniform"], 0);
  check_close(nn::he_uniform(8)(shape, DType::kF32), draws["he_uniform"], 0);
  check_close(nn::he_normal(9)(shape, DType::kF32), draws["he_normal"], 2e-6);
  check_close(nn::glorot_uniform(7)(Shape{2, 3, 4}, DType::kF32),
              draws["glorot_uniform of a window"], 0);
  check_close(nn::uniform(-0.3, 0.2, 10)(shape, DType::kF32), draws["uniform"], 0);
  CHECK(nn::zeros()(Shape{2}, DType::kF32).values<float>() == std::vector<float>{0, 0});
  CHECK(nn::ones()(Shape{2}, DType::kF64).values<double>() == std::vector<double>{1, 1});
  CHECK(nn::filled_with(7)(Shape{1}, DType::kI32).values<int32_t>() == std::vector<int32_t>{7});
  CHECK(error_of([] { nn::uniform(1, 0); }) == 103);
  CHECK(error_of([] { nn::glorot_uniform(1)(Shape{2, 2}, DType::kI32); }) == 102);
}

TEST_CASE("set_seed makes first values, masks and orders repeat; without a seed they differ") {
  const auto weights = [](nn::Dense&& dense) {
    dense(Tensor::of<float>({1, 2, 3}, {1, 3}));
    return dense.kernel().read().values<float>();
  };
  nn::set_seed(3);
  const std::vector<float> first = weights(nn::Dense(4)), second = weights(nn::Dense(4));
  CHECK(first != second);
  nn::set_seed(3);
  CHECK(weights(nn::Dense(4)) == first);
  nn::set_seed(4);
  CHECK(weights(nn::Dense(4)) != first);
}

TEST_CASE("dropout: the masks of Keras, a new one each time, nothing outside of training") {
  const auto& expected = keras_values()["draws"];
  const nn::SeedGenerator keys(99);
  for (const auto& key : expected["keys"]) check_close(keys.next(), key, 0);

  std::vector<float> numbers(35);
  for (size_t i = 0; i < 35; ++i) numbers[i] = static_cast<float>(i + 1);
  const Tensor inputs = Tensor::of(numbers, {7, 5});
  nn::Dropout drop(0.4, 11);
  CHECK(drop(inputs).values<float>() == numbers);
  for (const auto& mask : expected["dropout"]) {
    check_close(drop(inputs, {.training = true}), mask, 2e-7);
  }
  CHECK(drop.trainable_variables().empty());
  CHECK(drop.variables().size() == 1);
}

TEST_CASE("dropout: as many zeros as the rate says, the mean kept, also in a traced function") {
  const int64_t n = 40000;
  const Tensor ones = Tensor::of(std::vector<float>(n, 1.0f), {n});
  nn::Dropout drop(0.3, 5);
  const Function f = trace_function("drop", {{DType::kF32, {n}}}, [&](const Tensors& args) {
    return Tensors{drop(args[0], {.training = true})};
  });
  std::vector<float> before;
  for (int run = 0; run < 3; ++run) {
    const std::vector<float> y = f({ones})[0].values<float>();
    double zeros = 0, sum = 0;
    for (float value : y) {
      zeros += value == 0;
      sum += static_cast<double>(value);
      if (value != 0) REQUIRE(value == doctest::Approx(1 / 0.7));
    }
    // Four standard deviations of the share of zeros: sqrt(0.3 * 0.7 / n).
    CHECK(std::abs(zeros / n - 0.3) < 4 * 0.0023);
    CHECK(std::abs(sum / n - 1) < 4 * 0.0033);
    CHECK(y != before);
    before = y;
  }
  nn::Dropout all(1.0), none(0.0);
  CHECK(all(ones, {.training = true}).values<float>() == std::vector<float>(n, 0));
  CHECK(none(ones, {.training = true}).values<float>() == std::vector<float>(n, 1));
  CHECK(error_of([] { nn::Dropout drop(1.1); }) == 103);
  CHECK(error_of([] { nn::Dropout drop(std::nan("")); }) == 103);
}

TEST_CASE("dense: its gradients are those of finite differences") {
  nn::Dense dense(3, {.activation = nn::tanh,
                      .kernel_initializer = nn::glorot_uniform(1),
                      .bias_initializer = nn::uniform(-1, 1, 2)});
  const Tensor x = draw({4, 5}, -1, 1, 3), weight = draw({4, 3}, -1, 1, 4);
  const auto loss_at = [&] {
    const Tensor y = cast(mul(dense(x), weight), DType::kF64);
    return reduce_sum(y, all_axes(y)).item<double>();
  };
  dense(x);
  const std::vector<Variable> variables = dense.trainable_variables();
  REQUIRE(variables.size() == 2);
  CHECK(variables[0].name() == "dense/kernel");
  CHECK(variables[1].name() == "dense/bias");
  const Function f = trace_function("grad", {}, [&](const Tensors&) {
    const Tensor y = mul(dense(x), weight);
    return gradients({reduce_sum(y, all_axes(y))}, {variables[0].read(), variables[1].read()});
  });
  const Tensors grads = f({});
  for (size_t v = 0; v < 2; ++v) {
    const std::vector<float> grad = grads[v].values<float>();
    const std::vector<float> start = variables[v].read().values<float>();
    for (size_t i = 0; i < grad.size(); ++i) {
      const auto moved = [&](float by) {
        std::vector<float> value = start;
        value[i] += by;
        variables[v].assign(Tensor::of(value, variables[v].shape().sizes()));
        return loss_at();
      };
      const float step = 0.01f;
      const double slope = (moved(step) - moved(-step)) / (2 * static_cast<double>(step));
      CHECK(static_cast<double>(grad[i]) == doctest::Approx(slope).epsilon(2e-3));
    }
    variables[v].assign(Tensor::of(start, variables[v].shape().sizes()));
  }
}

TEST_CASE("layers: shapes, inputs of more axes, and what does not fit") {
  nn::Dense dense(2, {.kernel_initializer = nn::ones(), .bias_initializer = nn::filled_with(0.5)});
  const Dim rows = Dim::fresh("N");
  CHECK(dense.output_shape(Shape{rows, 7, 3}) == Shape{rows, 7, 2});
  CHECK(dense.built());
  const Tensor y = dense(Tensor::of<float>({1, 2, 3, 4, 5, 6}, {1, 2, 3}));
  CHECK(y.sizes() == std::vector<int64_t>{1, 2, 2});
  CHECK(y.values<float>() == std::vector<float>{6.5f, 6.5f, 15.5f, 15.5f});
  nn::Flatten flatten;
  CHECK(flatten.output_shape(Shape{rows, 7, 3}) == Shape{rows, 21});
  nn::Dense plain(1, {.use_bias = false});
  plain(Tensor::of<float>({1}, {1, 1}));
  CHECK(plain.variables().size() == 1);

  std::string text;
  CHECK(error_of([&] { dense(Tensor::of<float>({1, 2}, {1, 2})); }, &text) == 101);
  CHECK(text.find("3 features") != std::string::npos);
  CHECK(text.find("(1, 2)") != std::string::npos);
  CHECK(error_of([&] { dense(Tensor::of<double>({1, 2, 3}, {1, 3})); }, &text) == 102);
  CHECK(text.find("float64") != std::string::npos);
  CHECK(error_of([] { nn::Dense bad(0); }) == 103);
  CHECK(error_of([] { nn::Dense(1)(Tensor::scalar(1.0f)); }) == 101);
  CHECK(error_of([] { nn::Activation none(nullptr); }) == 103);
}

TEST_CASE("activations against their formulas") {
  const std::vector<float> x{-2, -0.5f, 0, 0.25f, 3};
  const Tensor t = Tensor::of(x, {1, 5});
  const auto check = [&](const Tensor& y, auto formula) {
    std::vector<double> expected;
    for (float v : x) expected.push_back(formula(static_cast<double>(v)));
    check_close(cast(y, DType::kF64).values<double>(), expected, 1e-6, 1e-7);
  };
  check(nn::relu(t), [](double v) { return std::max(v, 0.0); });
  check(nn::tanh(t), [](double v) { return std::tanh(v); });
  check(nn::sigmoid(t), [](double v) { return 1 / (1 + std::exp(-v)); });
  check(nn::gelu(t), [](double v) { return v * 0.5 * std::erfc(-v / std::sqrt(2.0)); });
  double total = 0;
  for (float v : x) total += std::exp(static_cast<double>(v));
  check(nn::softmax(t), [&](double v) { return std::exp(v) / total; });
}

TEST_CASE("activations have one name, whichever namespaces are used") {
  using namespace tracefire;
  using namespace tracefire::nn;
  const Tensor x = Tensor::of<float>({-1, 2, 0, 3}, {2, 2});
  CHECK(relu(x).values<float>() == std::vector<float>{0, 2, 0, 3});
  Dense dense(2, softmax);
  CHECK(reduce_sum(dense(x), {-1}).values<float>()[0] == doctest::Approx(1));
  Activation along(log_softmax);  // any operation along an axis: the last
  CHECK(reduce_sum(exp(along(x)), {-1}).values<float>()[1] == doctest::Approx(1));
}

TEST_CASE("losses give the values of keras.losses") {
  const auto& expected = keras_values()["losses"];
  const Tensor y = Tensor::of<int32_t>({0, 3, 1, 2, 2, 0}, {6});
  const Tensor logits = draw({6, 4}, -3, 3, 21), p = nn::softmax(logits);
  const Tensor raw = draw({6, 4}, 0, 1, 22), target = div(raw, reduce_sum(raw, {1}, true));
  const Tensor certain = one_hot(y, 4);
  const auto check = [&](const std::string& name, const nn::Loss& loss, const Tensor& truth,
                         const Tensor& prediction) {
    INFO(name);
    check_close(loss.call(truth, prediction), expected[name], 2e-6, 1e-7);
    if (!expected.contains(name + " mean")) return;
    const double mean = expected[name + " mean"];
    CHECK(static_cast<double>(loss(truth, prediction).item<float>()) ==
          doctest::Approx(mean).epsilon(2e-6));
  };
  const nn::SparseCategoricalCrossentropy sparse, sparse_logits({.from_logits = true});
  check("sparse logits", sparse_logits, y, logits);
  check("sparse p", sparse, y, p);
  check("sparse certain", sparse, y, certain);
  check("sparse p", sparse, reshape(y, Shape{6, 1}), p);
  check("sparse logits", sparse_logits, reshape(cast(y, DType::kU8), Shape{6, 1}), logits);
  const nn::CategoricalCrossentropy whole, whole_logits({.from_logits = true});
  check("categorical logits", whole_logits, target, logits);
  check("categorical p", whole, target, p);
  check("categorical certain", whole, target, certain);
  const nn::MeanSquaredError squares;
  check("mse", squares, target, logits);
  const Tensor column = slice(target, Shape{0, 0}, Shape{6, 1});
  check("mse of a column", squares, reshape(column, Shape{6}),
        slice(logits, Shape{0, 0}, Shape{6, 1}));
}

TEST_CASE("metrics gather the figures of keras.metrics over batches, and start again") {
  const auto& expected = keras_values()["metrics"];
  const auto run = [&](const char* name, nn::Metric&& metric, auto truth) {
    INFO(name);
    std::vector<double> figures;
    for (uint32_t seed : {31u, 33u}) {
      metric.update(truth(seed), draw({9, 4}, -3, 3, seed + 1));
      figures.push_back(static_cast<double>(metric.result().item<float>()));
    }
    check_close(figures, expected[name].get<std::vector<double>>(), 1e-6);
    metric.reset();
    CHECK(metric.result().item<float>() == 0);
  };
  const auto labels = [](uint32_t seed) { return draw_labels(9, 4, seed); };
  const auto scores = [](uint32_t seed) { return draw({9, 4}, -3, 3, seed); };
  run("sparse", nn::SparseCategoricalAccuracy(), labels);
  run("categorical", nn::CategoricalAccuracy(), scores);
  run("mse", nn::Mean("mse", nn::MeanSquaredError()), scores);
  nn::Mean none("none");
  CHECK(error_of([&] { none.update(scores(1), scores(2)); }) == 502);
}

TEST_CASE("optimizers take the steps of keras.optimizers") {
  const auto& expected = keras_values()["optimizers"];
  const auto run = [&](const char* name, optim::Optimizer&& optimizer) {
    INFO(name);
    const Variable value(draw({3, 2}, -3, 3, 41), "value");
    for (uint32_t step = 0; step < 4; ++step) {
      optimizer.apply({draw({3, 2}, -3, 3, 50 + step)}, {value});
      check_close(value.read(), expected[name][step], 2e-6, 1e-7);
    }
    CHECK(optimizer.iterations().read().item<int64_t>() == 4);
  };
  run("sgd", optim::Sgd(0.1));
  run("momentum", optim::Sgd({.learning_rate = 0.1, .momentum = 0.9}));
  run("nesterov", optim::Sgd({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}));
  run("adam", optim::Adam(0.01));
  run("adam of other decays",
      optim::Adam({.learning_rate = 0.02, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3}));
}

TEST_CASE("optimizers: one composite node a variable, the rate may change, errors are clear") {
  const Variable a(Tensor::of<float>({1, 2}, {2}), "a"), b(Tensor::of<float>({3}, {1}), "b");
  optim::Adam adam(0.01);
  adam.build({a, b});
  const Function step = trace_function("step", {}, [&](const Tensors&) {
    const Tensor loss = add(reduce_sum(square(a.read()), {0}), reduce_sum(square(b.read()), {0}));
    adam.minimize(loss, {a, b});
    return Tensors{loss};
  });
  const std::string text = step.graph_text();
  size_t nodes = 0;
  for (size_t at = text.find("adam_update"); at != std::string::npos;
       at = text.find("adam_update", at + 1)) {
    ++nodes;
  }
  CHECK(nodes == 2);
  CHECK(step({})[0].item<float>() == 14);
  CHECK(a.read().values<float>()[0] == doctest::Approx(0.99));  // Adam's first step is the rate
  adam.set_learning_rate(0);
  const std::vector<float> before = a.read().values<float>();
  step({});
  CHECK(a.read().values<float>() == before);
  CHECK(adam.variables().size() == 6);

  std::string why;
  CHECK(error_of([&] { adam.apply({a.read()}, {a, b}); }) == 101);
  CHECK(error_of([&] { adam.apply({b.read()}, {a}); }, &why) == 101);
  CHECK(why.find("'a'") != std::string::npos);
  CHECK(error_of([&] { adam.apply({Tensor()}, {b}); }, &why) == 107);
  CHECK(why.find("'b'") != std::string::npos);
  CHECK(error_of([] { optim::Adam bad(-1.0); }) == 103);
  CHECK(error_of([] { optim::Adam bad(std::nan("")); }) == 103);
  CHECK(error_of([] { optim::Adam bad({.beta1 = 1.0}); }) == 103);
  CHECK(error_of([] { optim::Sgd bad({.momentum = -0.1}); }) == 103);
}
