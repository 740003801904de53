// SPDX-License-Identifier: Apache-2.0
// The gradient of a tape of 100,000 operations was one program, whose planning took time by the
// square of its length; so did the fusion of a long function's gradient.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/base/event.h"
#include "tracefire/function.h"
#include "tracefire/grad.h"
#include "tracefire/ops.h"

namespace tracefire::test {
namespace {

constexpr int kLength = 20000;

/// w (1 + length): each operation adds w. Whole numbers, so that every sum is exact.
Tensor long_sum(const Tensor& w, int length) {
  Tensor x = w;
  for (int i = 0; i < length; ++i) x = add(x, w);
  return x;
}

/// The most steps that a program had while this lives.
class LongestProgram {
 public:
  LongestProgram() {
    Events::Subscriber subscriber;
    subscriber.run = [this](const RunEvent& event) {
      steps_ = std::max(steps_, event.program->steps.size());
    };
    listener_ = Events::instance().subscribe(std::move(subscriber));
  }
  ~LongestProgram() { Events::instance().unsubscribe(listener_); }
  size_t steps() const { return steps_; }

 private:
  size_t steps_ = 0;
  int listener_ = 0;
};

}  // namespace

TEST_CASE("a long tape and what it leaves are run in pieces") {
  const LongestProgram longest;
  const Tensor w = Tensor::of<float>({1, 3});
  Tape tape;
  tape.watch(w);
  const Tensor y = long_sum(w, kLength);
  const Tensor grad = tape.gradients({reduce_sum(y, {0})}, {w})[0];
  CHECK(grad.values<float>() == std::vector<float>(2, kLength + 1));
  CHECK(y.values<float>() == std::vector<float>{kLength + 1, 3 * (kLength + 1)});
  CHECK(longest.steps() <= 1024);
  CHECK(longest.steps() > 64);  // but not one by one
}

TEST_CASE("long eager chains, wide sums and values that nobody reads end") {
  const Tensor w = Tensor::scalar(1.0f);
  CHECK(long_sum(w, kLength).item<float>() == kLength + 1);
  std::vector<Tensor> parts;
  for (int i = 0; i < kLength / 4; ++i) parts.push_back(add(w, w));
  Tensor sum = w;
  for (const Tensor& part : parts) sum = add(sum, part);
  CHECK(sum.item<float>() == kLength / 2 + 1);
  long_sum(w, kLength);  // released without a recursion as deep as it is long
}

TEST_CASE("a long function and its gradient are compiled in linear time") {
  const Function function =
      trace_function("long", {{DType::kF32, Shape{2}}}, [](const Tensors& in) {
        const Tensor y = long_sum(in[0], kLength / 4);
        const Tensor half = mul(tanh(y), Tensor::scalar(0.0f));  // reads what came long before
        return Tensors{y, gradients({reduce_sum(add(y, half), {0})}, {in[0]})[0]};
      });
  const Tensors out = function({Tensor::of<float>({1, 3})});
  CHECK(out[0].values<float>() == std::vector<float>{kLength / 4 + 1, 3 * (kLength / 4 + 1)});
  CHECK(out[1].values<float>() == std::vector<float>(2, kLength / 4 + 1));
}

}  // namespace tracefire::test
