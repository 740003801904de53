// SPDX-License-Identifier: Apache-2.0
// Rules of regions, effects and data-dependent sizes.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "support.h"

using namespace tracefire;
using namespace tracefire::testing;

TEST_CASE("if: both branches, with a gradient, capturing nothing") {
  const Function f = trace_function(
      "piecewise", {{DType::kF32, {}}, {DType::kF32, {3}}}, [](const Tensors& args) -> Tensors {
        const Tensor x = args[1];
        const Tensor factor = op("mul", {args[0], Tensor::scalar(3.0f)});  // outside the branches
        const Tensor pred = op("greater", {args[0], Tensor::scalar(0.0f)});
        const Tensor y = cond(
            pred,
            [&]() -> Tensors {
              return {op("mul", {x, factor})};
            },
            [&]() -> Tensors {
              return {op("mul", {op("square", {x}), factor})};
            })[0];
        const Tensor total = sum(y);
        return {y, gradients({total}, {x})[0], gradients({total}, {args[0]})[0]};
      });
  const Tensor x = vec({1, 2, 3});
  const Tensors yes = f({Tensor::scalar(2.0f), x});
  CHECK(yes[0].values<float>() == std::vector<float>{6, 12, 18});
  CHECK(yes[1].values<float>() == std::vector<float>{6, 6, 6});
  CHECK(yes[2].item<float>() == 18);  // 3 * (1 + 2 + 3)
  const Tensors no = f({Tensor::scalar(-1.0f), x});
  CHECK(no[0].values<float>() == std::vector<float>{-3, -12, -27});
  CHECK(no[1].values<float>() == std::vector<float>{-6, -12, -18});
  CHECK(no[2].item<float>() == 42);  // 3 * (1 + 4 + 9)
}

TEST_CASE("while: forward, with captures and a variable, eager and traced") {
  Variable calls(Tensor::scalar(int32_t{0}), "calls", false);
  auto power = [&](const Tensor& base, int32_t n) {
    return while_loop(
        [&](const Tensors& vars) {
          return op("less", {vars[0], Tensor::scalar(n)});
        },
        [&](const Tensors& vars) -> Tensors {
          calls.assign(op("add", {calls.read(), Tensor::scalar(int32_t{1})}));
          return {op("add", {vars[0], Tensor::scalar(int32_t{1})}), op("mul", {vars[1], base})};
        },
        {Tensor::scalar(int32_t{0}), Tensor::of<float>({1, 1}, {2})});
  };
  CHECK(power(vec({2, 3}), 5)[1].values<float>() == std::vector<float>{32, 243});
  CHECK(calls.read().item<int32_t>() == 5);
  const Function f =
      trace_function("power", {{DType::kF32, {2}}},
                     [&](const Tensors& args) -> Tensors { return {power(args[0], 3)[1]}; });
  CHECK(f({vec({2, 10})})[0].values<float>() == std::vector<float>{8, 1000});
  CHECK(calls.read().item<int32_t>() == 8);
}

TEST_CASE("while stops at max_iterations") {
  const Tensors out = while_loop(
      [](const Tensors& vars) {
        return op("less", {vars[0], Tensor::scalar(100)});
      },
      [](const Tensors& vars) -> Tensors {
        return {op("add", {vars[0], Tensor::scalar(1)})};
      },
      {Tensor::scalar(0)}, 7);
  CHECK(out[0].item<int32_t>() == 7);
}

TEST_CASE("host_call and print keep program order inside a loop") {
  std::vector<int32_t> seen;
  std::atomic<bool> other_thread{false};
  const std::thread::id me = std::this_thread::get_id();
  const HostFunction note = [&](const std::vector<HostArray>& args) -> std::vector<HostArray> {
    other_thread = std::this_thread::get_id() != me;
    seen.push_back(*reinterpret_cast<const int32_t*>(args[0].bytes.data()));
    HostArray doubled = args[0];
    *reinterpret_cast<int32_t*>(doubled.bytes.data()) *= 2;
    return {doubled};
  };
  const Function f =
      trace_function("noted", {{DType::kI32, {}}}, [&](const Tensors& args) -> Tensors {
        return while_loop(
            [&](const Tensors& vars) {
              return op("less", {vars[0], args[0]});
            },
            [&](const Tensors& vars) -> Tensors {
              print("step {}", {vars[0]});
              const Tensor twice = host_call(note, {vars[0]}, {{DType::kI32, {}}})[0];
              host_call(note, {twice}, {{DType::kI32, {}}});
              print("twice {}", {twice});
              return {op("add", {vars[0], Tensor::scalar(1)}), op("add", {vars[1], twice})};
            },
            {Tensor::scalar(0), Tensor::scalar(0)});
      });
  StderrText said;
  const Tensors out = f({Tensor::scalar(3)});
  const std::string text = said.end();
  CHECK(out[1].item<int32_t>() == 6);
  CHECK(seen == std::vector<int32_t>{0, 0, 1, 2, 2, 4});
  CHECK(other_thread);
  CHECK(text == "step 0\ntwice 0\nstep 1\ntwice 2\nstep 2\ntwice 4\n");
}

TEST_CASE("an effect runs although nobody uses its result, in program order") {
  std::vector<float> seen;
  const HostFunction note = [&](const std::vector<HostArray>& args) -> std::vector<HostArray> {
    seen.push_back(*reinterpret_cast<const float*>(args[0].bytes.data()));
    return {};
  };
  for (float value : {1.0f, 2.0f, 3.0f}) host_call(note, {Tensor::scalar(value)}, {});
  flush();
  CHECK(seen == std::vector<float>{1, 2, 3});
}

TEST_CASE("a failing host function poisons what depends on it and nothing else") {
  const HostFunction fail = [](const std::vector<HostArray>&) -> std::vector<HostArray> {
    throw std::runtime_error("no such file: colours.txt");
  };
  const Tensor other = op("add", {vec({1}), vec({2})});
  CHECK(other.values<float>() == std::vector<float>{3});
  const Tensor bad = host_call(fail, {vec({1})}, {{DType::kF32, {1}}})[0];
  const Tensor dependent = op("add", {bad, vec({1})});
  std::string text;
  CHECK(error_of([&] { dependent.values<float>(); }, &text) == 304);
  CHECK(text.find("colours.txt") != std::string::npos);
  CHECK(op("add", {other, vec({1})}).values<float>() == std::vector<float>{4});
  const HostFunction throw_number = [](const std::vector<HostArray>&) -> std::vector<HostArray> {
    throw 42;
  };
  const Tensor lost = host_call(throw_number, {vec({1})}, {{DType::kF32, {1}}})[0];
  CHECK(error_of([&] { lost.values<float>(); }, &text) == 304);
  CHECK(text.find("threw what is no std::exception") != std::string::npos);
}

TEST_CASE("a data-dependent size is read once and the rest is bound to it") {
  const Tensor x = Tensor::of<int32_t>({3, 1, 3, 2, 1, 3}, {6});
  const Tensors parts = apply_op("unique", Tensors{x});
  const Tensor doubled = op("mul", {parts[0], Tensor::scalar(2)});
  CHECK_FALSE(doubled.shape().is_constant());
  const std::vector<int32_t> values = doubled.values<int32_t>();
  CHECK(values.size() == 3);
  CHECK(doubled.sizes() == std::vector<int64_t>{3});
  // and the values by way of the inverse give the input back
  const Tensor back = op("gather", {doubled, parts[1]}, {{"axis", int64_t{0}}});
  CHECK(back.values<int32_t>() == std::vector<int32_t>{6, 2, 6, 4, 2, 6});

  const Function f =
      trace_function("unique_sum", {{DType::kI32, {6}}}, [](const Tensors& args) -> Tensors {
        const Tensor unique = apply_op("unique", args)[0];
        return {unique, sum(unique)};
      });
  const Tensors traced = f({x});
  CHECK(traced[0].sizes() == std::vector<int64_t>{3});
  CHECK(traced[1].item<int32_t>() == 6);
  CHECK(f({Tensor::of<int32_t>({5, 5, 5, 5, 5, 5}, {6})})[0].sizes() == std::vector<int64_t>{1});
}

TEST_CASE("while: a condition may assign, and is asked once more than the body runs") {
  const auto ask = [](bool traced, bool reads, int64_t most) {
    Variable asked(Tensor::scalar(0.0f));
    Variable done(Tensor::scalar(0.0f));
    const auto loop = [&](const Tensors&) {
      return while_loop(
          [&](const Tensors& now) {
            asked.assign(op("add", {asked.read(), Tensor::scalar(1.0f)}));
            return op("less", {reads ? asked.read() : now[0], Tensor::scalar(5.0f)});
          },
          [&](const Tensors& now) {
            done.assign(op("add", {done.read(), Tensor::scalar(1.0f)}));
            return Tensors{op("add", {now[0], Tensor::scalar(1.0f)})};
          },
          {Tensor::scalar(0.0f)}, most);
    };
    const float count = traced ? trace_function("loop", {}, loop)({})[0].item<float>()
                               : loop({})[0].item<float>();
    return std::vector<float>{count, asked.read().item<float>(), done.read().item<float>()};
  };
  for (const bool traced : {false, true}) {
    CHECK(ask(traced, false, -1) == std::vector<float>{5, 6, 5});
    CHECK(ask(traced, true, -1) == std::vector<float>{4, 5, 4});
    CHECK(ask(traced, false, 2)[0] == 2);
  }
}
