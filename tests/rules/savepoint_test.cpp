// SPDX-License-Identifier: Apache-2.0
// Rules of going back: a run that fails on its data leaves variables that can have their values
// back.
#include <doctest/doctest.h>

#include "support.h"

using namespace tracefire;
using namespace tracefire::testing;

namespace {

/// Adds table[row] to `total` and counts its runs; `host` is called with the row.
struct Summing {
  Variable total{Tensor::scalar(0.0f), "total"};
  Variable count{Tensor::scalar(0.0f), "count"};
  Variable rate{Tensor::scalar(1.0f), "rate"};

  Function step(const HostFunction& host = nullptr) const {
    return trace_function("step", {{DType::kI32, {1}}}, [&](const Tensors& args) -> Tensors {
      if (host) host_call(host, args, {});
      count.assign(op("add", {count.read(), Tensor::scalar(1.0f)}));
      const Tensor row = op("gather", {vec({1, 2, 3}), args[0]}, {{"axis", int64_t{0}}});
      total.assign(op("add", {total.read(), op("mul", {sum(row), rate.read()})}));
      return {total.read()};
    });
  }
  std::vector<float> state() const {
    return {total.read().item<float>(), count.read().item<float>()};
  }
};

Tensor row(int32_t number) { return Tensor::of(std::vector<int32_t>{number}, {1}); }

}  // namespace

TEST_CASE("a savepoint gives variables back what they held before a run that failed") {
  Summing model;
  const Function step = model.step();
  CHECK(step.can_fail());
  CHECK_FALSE(step.has_effects());
  CHECK(step.variables().size() == 3);
  REQUIRE(step.assigned().size() == 2);
  Savepoint point(step.assigned());
  step({row(2)});
  const uint64_t copies = proof().counted_copies;
  point.keep();
  point.check();
  step({row(0)});
  CHECK(model.state() == std::vector<float>{4, 2});
  CHECK(proof().counted_copies == copies);  // written in place, as without a savepoint
  point.keep();                             // again: what counts is the last
  const Tensor lost = step({row(7)})[0];
  CHECK(error_of([&] { point.check(); }) == 301);
  CHECK(error_of([&] { model.state(); }) == 301);
  point.restore();
  point.check();
  CHECK(model.state() == std::vector<float>{4, 2});
  CHECK(error_of([&] { lost.item<float>(); }) == 301);  // what was read before stays lost
  step({row(1)});
  CHECK(model.state() == std::vector<float>{6, 3});
}

TEST_CASE("a savepoint gives back variables that host code lost, and those of a whole epoch") {
  Summing model;
  const HostFunction host = [](const std::vector<HostArray>& in) -> std::vector<HostArray> {
    if (in[0].bytes[0] == 2) throw std::runtime_error("no 2, please");
    return {};
  };
  const Function step = model.step(host);
  CHECK(step.has_effects());
  Savepoint point(step.assigned());
  step({row(1)});
  point.keep();
  CHECK(error_of([&] { step({row(2)})[0].item<float>(); }) == 304);
  CHECK(error_of([&] { point.check(); }) != 0);
  point.restore();
  CHECK(model.state() == std::vector<float>{2, 1});

  Summing epochs;
  const Function plain = epochs.step();
  Savepoint before(plain.assigned());
  const Tensor good = Tensor::of(std::vector<int32_t>{0, 1, 2, 0}, {4});
  const Tensor bad = Tensor::of(std::vector<int32_t>{0, 1, 9, 0}, {4});
  plain.run_epoch({good}, Tensor(), 1, 0, 4);
  before.keep();
  plain.run_epoch({bad}, Tensor(), 1, 0, 4);
  CHECK(error_of([&] { before.check(); }) == 301);
  before.restore();
  plain.run_epoch({bad}, Tensor(), 1, 0, 2);
  CHECK(epochs.state() == std::vector<float>{10, 6});
}

TEST_CASE("a savepoint refuses to restore what it does not keep") {
  Summing model;
  Savepoint point({model.total});
  CHECK(error_of([&] { point.restore(); }) == 502);
  point.keep();
  point.restore();
  CHECK(error_of([&] { point.restore(); }) == 502);
  CHECK(error_of([&] { Savepoint({Variable()}); }) == 502);
  const Function pure = trace_function("pure", {}, [&](const Tensors&) -> Tensors {
    model.total.assign(op("add", {model.total.read(), model.rate.read()}));
    return {};
  });
  CHECK_FALSE(pure.can_fail());
  Savepoint none(std::vector<Variable>{});
  none.keep();
  none.restore();
}
