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

TEST_CASE("unrolled steps divide the repeats where they can") {
  CHECK(choose_unroll(469) == 64);
  CHECK(choose_unroll(468) == 52);
  CHECK(choose_unroll(64) == 64);
  CHECK(choose_unroll(7) == 7);
  CHECK(choose_unroll(468, 20) == 18);
  CHECK(choose_unroll(469, 3) == 3);
  CHECK(choose_unroll(469, 1) == 1);
}
