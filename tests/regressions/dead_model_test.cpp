// SPDX-License-Identifier: Apache-2.0
// The memory of models and functions that are gone was kept for a thousand programs.
#include <doctest/doctest.h>

#include "tracefire/tracefire.h"

namespace tracefire::test {
namespace {

size_t in_use() {
  flush();
  return static_cast<size_t>(memory_info(default_device()).in_use);
}

}  // namespace

TEST_CASE("a model that is gone leaves no memory behind") {
  const auto [train, test] = data::split_every(data::digits(), 5);
  const auto live = [&train = train] {
    nn::Sequential model({nn::Dense(500, nn::relu), nn::Dense(10)});
    model.compile({.optimizer = optim::Sgd(),
                   .loss = nn::SparseCategoricalCrossentropy({.from_logits = true})});
    model.fit(train, {.batch_size = 64, .epochs = 1, .verbose = false});
    model.evaluate(train, {.batch_size = 100});
    return in_use();
  };
  live();  // what is kept for all models
  const size_t before = in_use();
  const size_t with_a_model = live();
  CHECK(with_a_model > before + 100'000);
  for (int i = 0; i < 3; ++i) live();
  CHECK(in_use() < before + 100'000);
}

TEST_CASE("a function that is gone leaves no memory behind, nor do its branches and loops") {
  const size_t before = in_use();
  for (int i = 0; i < 5; ++i) {
    const Tensor x = Tensor::of<float>(std::vector<float>(100'000, 1.f), {100'000});
    const Function f = trace_function("f", {{DType::kF32, {100'000}}}, [](const Tensors& args) {
      const Tensors chosen = cond(
          less(reduce_sum(args[0]), Tensor::scalar(0.f)), [&] { return Tensors{neg(args[0])}; },
          [&] { return Tensors{exp(sin(args[0]))}; });
      return while_loop(
          [](const Tensors& now) { return less(reduce_sum(now[0]), Tensor::scalar(1e6f)); },
          [](const Tensors& now) { return Tensors{add(now[0], now[0])}; }, chosen);
    });
    f({x})[0].wait();
  }
  CHECK(in_use() <= before + 1000);
}

}  // namespace tracefire::test
