// SPDX-License-Identifier: Apache-2.0
// Epochs that keep what every step gives, and rows as they lie.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <numeric>

#include "core/runtime/executor.h"
#include "support.h"

using namespace tracefire;
using namespace tracefire::testing;

namespace {

Tensor counted(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 1.0f);
  return Tensor::of(values, sizes);
}

/// Gives values of every rank, of sizes that are multiples of a kernel's alignment and not, twice
/// the same one, and a variable before and after its change.
Function many_results(const Variable& steps, int64_t batch, int64_t width) {
  return trace_function(
      "many", {{DType::kF32, {batch, width}}}, [&](const Tensors& args) -> Tensors {
        const Tensor x = args[0], before = steps.read();
        steps.assign(op("add", {before, Tensor::scalar(1.0f)}));
        const Tensor scaled = op("mul", {x, steps.read()});
        return {
            scaled,
            sum(scaled),
            op("reshape", {scaled}, {{"shape", Shape{1, batch, width, 1}}}),
            op("cast", {op("greater", {scaled, Tensor::scalar(9.0f)})}, {{"dtype", DType::kI64}}),
            scaled,
            before,
            steps.read(),
            x};
      });
}

}  // namespace

TEST_CASE("an epoch that is collected gives exactly what its steps give one by one") {
  for (const std::array<int64_t, 3>& sizes : std::vector<std::array<int64_t, 3>>{
           {4, 3, 5}, {2, 32, 70}, {8, 8, 64}, {1, 1, 3}, {5, 64, 1}}) {
    const int64_t batch = sizes[0], width = sizes[1], steps = sizes[2];
    CAPTURE(batch);
    CAPTURE(width);
    const Tensor data = counted({batch * steps + 1, width});
    Variable one(Tensor::scalar(0.0f)), whole(Tensor::scalar(0.0f));
    const Function single = many_results(one, batch, width);
    const Function together = many_results(whole, batch, width);
    std::vector<int32_t> wanted(static_cast<size_t>(together.outputs()));
    std::iota(wanted.begin(), wanted.end(), 0);
    const Tensors joined = together.collect_epoch({data}, {}, batch, 0, steps, wanted);
    REQUIRE(joined.size() == wanted.size());
    for (int64_t step = 0; step < steps; ++step) {
      const Tensors expected = single.run_epoch({data}, {}, batch, step, step + 1);
      for (size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i);
        const std::vector<HostValue> values = fetch(Tensors{expected[i], joined[i]});
        const int64_t rows = expected[i].rank() == 0 ? 1 : values[0].sizes[0];
        REQUIRE(values[1].sizes[0] == steps * rows);
        REQUIRE(values[1].bytes == values[0].bytes * static_cast<size_t>(steps));
        const auto* place =
            static_cast<const char*>(values[1].data) + values[0].bytes * static_cast<size_t>(step);
        CHECK(std::memcmp(place, values[0].data, values[0].bytes) == 0);
      }
    }
    CHECK(whole.read().item<float>() == static_cast<float>(steps));
    // And again: what was given before stays.
    const std::vector<float> before = joined[0].values<float>();
    const Tensor next = together.collect_epoch({data}, {}, batch, 0, steps, {1})[0];
    CHECK(joined[0].values<float>() == before);
    CHECK(next.sizes() == std::vector<int64_t>{steps});
  }
}

TEST_CASE("a part of the results is collected, in an order of choice") {
  Variable steps(Tensor::scalar(0.0f));
  const Function f = many_results(steps, 2, 3);
  const Tensor data = counted({8, 3});
  const Tensor order = Tensor::of<int32_t>({7, 6, 5, 4, 3, 2, 1, 0}, {8});
  const Tensors out = f.collect_epoch({data}, order, 2, 1, 4, {6, 7, 6});
  REQUIRE(out.size() == 3);
  CHECK(out[0].values<float>() == std::vector<float>{1, 2, 3});
  CHECK(out[2].values<float>() == std::vector<float>{1, 2, 3});
  CHECK(out[1].values<float>() ==
        std::vector<float>{16, 17, 18, 13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3});
  CHECK(f.collect_epoch({data}, order, 2, 0, 1, {}).empty());
  CHECK(steps.read().item<float>() == 4);
  std::string text;
  CHECK(error_of([&] { f.collect_epoch({data}, {}, 2, 0, 1, {8}); }, &text) == 103);
  CHECK(text.find("output 8") != std::string::npos);
  CHECK(error_of([&] { f.collect_epoch({data}, {}, 2, 0, 1, {-1}); }) == 103);
}

TEST_CASE("sizes that data decide cannot be collected") {
  const Function f = trace_function("sizes", {{DType::kI32, {4}}}, [](const Tensors& args) {
    return Tensors{apply_op("unique", args)[0]};
  });
  const Tensor data = Tensor::of<int32_t>({1, 1, 2, 3, 4, 4, 4, 4}, {8});
  std::string text;
  CHECK(error_of([&] { f.collect_epoch({data}, {}, 4, 0, 2, {0}); }, &text) != 0);
  CHECK(text.find("depends on data") != std::string::npos);
  CHECK(f.run_epoch({data}, {}, 4, 0, 2)[0].sizes() == std::vector<int64_t>{1});
}

TEST_CASE("rows as they lie are those of the order 0, 1, 2, …, and must be there") {
  const Function f = trace_function("rows", {{DType::kF32, {3, 2}}},
                                    [](const Tensors& args) -> Tensors { return {args[0]}; });
  const Tensor data = counted({10, 2});
  CHECK(f.collect_epoch({data}, {}, 3, 1, 3, {0})[0].values<float>() ==
        std::vector<float>{7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18});
  CHECK(f.run_epoch({data}, {}, 3, 0, 3)[0].values<float>() ==
        std::vector<float>{13, 14, 15, 16, 17, 18});
  std::string text;
  CHECK(error_of([&] { f.run_epoch({data}, {}, 3, 0, 4); }, &text) == 101);
  CHECK(text.find("12 rows") != std::string::npos);
}

TEST_CASE("one program serves data and orders of any length") {
  const Function f = trace_function("rows", {{DType::kF32, {2, 2}}}, [](const Tensors& args) {
    return Tensors{op("mul", {args[0], Tensor::scalar(2.0f)})};
  });
  Programs programs;
  for (int64_t rows : {4, 6, 20}) {
    f.collect_epoch({counted({rows, 2})}, {}, 2, 0, rows / 2, {0})[0].wait();
    CHECK(programs.count() == 1);
  }
  Programs ordered;
  for (int64_t rows : {4, 20, 6}) {
    std::vector<int32_t> order(static_cast<size_t>(rows));
    std::iota(order.rbegin(), order.rend(), 0);
    const Tensor out = f.run_epoch({counted({rows, 2})}, Tensor::of(order, {rows}), 2, 0, 1)[0];
    CHECK(out.values<float>()[1] == static_cast<float>(4 * rows));
    CHECK(ordered.count() == 1);
  }
}

TEST_CASE("variables that swap in every step, and their old values, survive a loop") {
  Variable a(vec({1, 2}), "a"), b(vec({3, 4}), "b");
  const Function swap =
      trace_function("swap", {{DType::kF32, {1}}}, [&](const Tensors&) -> Tensors {
        const Tensor old_a = a.read(), old_b = b.read();
        a.assign(old_b);
        b.assign(old_a);
        return {old_a, a.read()};
      });
  const Tensor data = vec({0, 0, 0, 0, 0, 0, 0});
  Tensors last = swap.run_epoch({data}, {}, 1, 0, 2);
  CHECK(a.read().values<float>() == std::vector<float>{1, 2});
  CHECK(last[0].values<float>() == std::vector<float>{3, 4});
  CHECK(last[1].values<float>() == std::vector<float>{1, 2});
  last = swap.run_epoch({data}, {}, 1, 0, 7);
  CHECK(a.read().values<float>() == std::vector<float>{3, 4});
  CHECK(last[0].values<float>() == std::vector<float>{1, 2});
  CHECK(swap.collect_epoch({data}, {}, 1, 0, 3, {0})[0].values<float>() ==
        std::vector<float>{3, 4, 1, 2, 3, 4});
}

TEST_CASE("what was poisoned in any step of an epoch poisons what later steps compute from it") {
  // delta -> speed -> weight -> loss: each step's loss sees the others a step, and two, later.
  Variable weight(vec({1}), "weight"), speed(vec({0}), "speed"), other(vec({5}), "other");
  const Tensor table = vec({1, 2, 3});
  const Function step =
      trace_function("step", {{DType::kI32, {1}}}, [&](const Tensors& args) -> Tensors {
        const Tensor loss = op("mul", {weight.read(), Tensor::scalar(2.0f)});
        const Tensor untouched = op("add", {other.read(), vec({1})});
        weight.assign(op("sub", {weight.read(), speed.read()}));
        speed.assign(op("gather", {table, args[0]}, {{"axis", int64_t{0}}}));
        other.assign(untouched);
        return {loss, untouched};
      });
  const auto rows = [](const std::vector<int32_t>& indices) {
    return Tensor::of(indices, {static_cast<int64_t>(indices.size())});
  };
  const Tensor good = rows({0, 1, 2, 0}), bad = rows({0, 7, 2, 0});
  const auto reset = [&] {
    weight.assign(vec({1}));
    speed.assign(vec({0}));
  };

  SUBCASE("in the same epoch") {
    const Tensors out = step.run_epoch({bad}, {}, 1, 0, 4);
    CHECK(error_of([&] { out[0].values<float>(); }) == 301);
    CHECK(out[1].values<float>() == std::vector<float>{9});
    CHECK(error_of([&] { weight.read().values<float>(); }) == 301);
    reset();
    CHECK(error_of([&] { step.collect_epoch({bad}, {}, 1, 0, 4, {0})[0].values<float>(); }) == 301);
  }
  SUBCASE("in an epoch before, of which one variable was given a good value") {
    step.run_epoch({bad}, {}, 1, 0, 2);
    weight.assign(vec({1}));
    // One step's loss is that of the good weight; the second one's comes from the bad speed.
    CHECK(step.run_epoch({good}, {}, 1, 0, 1)[0].values<float>() == std::vector<float>{2});
    step.run_epoch({bad}, {}, 1, 0, 2);
    weight.assign(vec({1}));
    CHECK(error_of([&] { step.run_epoch({good}, {}, 1, 0, 2)[0].values<float>(); }) == 301);
  }
  SUBCASE("only as far as the steps reach") {
    // The first step's index is in the speed at once, in the weight a step later, then in the loss.
    const Tensor first = rows({7, 1, 2});
    CHECK(step.run_epoch({first}, {}, 1, 0, 2)[0].values<float>() == std::vector<float>{2});
    reset();
    CHECK(error_of([&] { step.run_epoch({first}, {}, 1, 0, 3)[0].values<float>(); }) == 301);
    reset();
    CHECK(step.run_epoch({good}, {}, 1, 0, 4)[0].values<float>() == std::vector<float>{-4});
    CHECK(weight.read().values<float>() == std::vector<float>{-5});
  }
}

TEST_CASE("an effect of a later step does not run on what an earlier one poisoned") {
  Variable state(vec({0}), "state");
  std::vector<float> seen;
  const HostFunction note = [&](const std::vector<HostArray>& args) -> std::vector<HostArray> {
    seen.push_back(*reinterpret_cast<const float*>(args[0].bytes.data()));
    return {};
  };
  const Tensor table = vec({1, 2, 3});
  const Function step =
      trace_function("step", {{DType::kI32, {1}}}, [&](const Tensors& args) -> Tensors {
        host_call(note, {state.read()}, {});
        state.assign(op("gather", {table, args[0]}, {{"axis", int64_t{0}}}));
        return {};
      });
  const Tensor rows = Tensor::of<int32_t>({1, 2, 7, 0}, {4});
  CHECK(error_of([&] {
          step.run_epoch({rows}, {}, 1, 0, 4);
          state.read().values<float>();
          flush();
        }) != 0);
  CHECK(seen == std::vector<float>{0, 2, 3});
}

TEST_CASE("a check that fails hides no other one") {
  const Tensor table = vec({1, 2, 3});
  const auto row = [&](const Tensor& index) {
    return op("gather", {table, index}, {{"axis", int64_t{0}}});
  };
  const Function both = trace_function("both", {{DType::kI32, {1}}, {DType::kI32, {1}}},
                                       [&](const Tensors& args) -> Tensors {
                                         return {row(args[0]), row(args[1])};
                                       });
  const Tensor in = Tensor::of<int32_t>({1}, {1}), far = Tensor::of<int32_t>({7}, {1}),
               further = Tensor::of<int32_t>({8}, {1});
  std::string text;
  Tensors out = both({far, further});
  CHECK(error_of([&] { out[1].values<float>(); }, &text) == 301);
  CHECK(text.find("index 8") != std::string::npos);
  CHECK(error_of([&] { out[0].values<float>(); }, &text) == 301);
  CHECK(text.find("index 7") != std::string::npos);
  out = both({far, in});
  CHECK(out[1].values<float>() == std::vector<float>{2});
  CHECK(error_of([&] { out[0].values<float>(); }) == 301);
}

TEST_CASE("unrolled steps divide the repeats where they can") {
  CHECK(choose_unroll(469) == 64);
  CHECK(choose_unroll(468) == 52);
  CHECK(choose_unroll(64) == 64);
  CHECK(choose_unroll(7) == 7);
  CHECK(choose_unroll(468, 20) == 18);
  CHECK(choose_unroll(469, 3) == 3);
  CHECK(choose_unroll(469, 1) == 1);
}
