// SPDX-License-Identifier: Apache-2.0
// Values that move between devices, here two virtual CPUs: eagerly, in functions, under gradients.
#include <doctest/doctest.h>

#include "support.h"

using namespace tracefire;
using namespace tracefire::testing;

namespace {

/// Before any work.
const bool two_cpus = (set_cpu_devices(2), true);

Device cpu(uint8_t index) { return {Device::kCpu, index}; }

Tensor on(uint8_t index, const std::vector<float>& values) {
  return Tensor::of(values, {static_cast<int64_t>(values.size())}, cpu(index));
}

size_t count(const std::string& text, const std::string& word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a tensor moves between devices eagerly, and stays where it is") {
  REQUIRE(two_cpus);
  const Tensor x = on(0, {1, 2, 3});
  const Tensor there = x.to(cpu(1));
  CHECK(there.device() == cpu(1));
  CHECK(there.values<float>() == std::vector<float>{1, 2, 3});
  CHECK(x.device() == cpu(0));
  const Tensor back = op("mul", {there, there}).to(cpu(0));
  CHECK(back.device() == cpu(0));
  CHECK(back.values<float>() == std::vector<float>{1, 4, 9});
  const Tensor same = x.to(cpu(0));
  CHECK(same.cell() == x.cell());
  CHECK(there.to(cpu(1)).cell() == there.cell());
  // What is pending moves, too, and moving does not fire it.
  const Tensor pending = op("add", {x, x});
  reset_proof();
  const Tensor moved = pending.to(cpu(1)), again = moved.to(cpu(0));
  CHECK(proof().runs == 0);
  CHECK(again.values<float>() == std::vector<float>{2, 4, 6});
  CHECK(moved.values<float>() == std::vector<float>{2, 4, 6});
  CHECK(moved.device() == cpu(1));
  // Any dtype and size.
  CHECK(Tensor::of<float>({}, {0, 2}, cpu(1)).to(cpu(0)).sizes() == std::vector<int64_t>{0, 2});
  CHECK(Tensor::scalar(int64_t{5}, cpu(1)).to(cpu(0)).item<int64_t>() == 5);
}

TEST_CASE("an operation may take its operands from any devices") {
  const Tensor sum_of_both = op("add", {on(0, {1, 2}), on(1, {10, 20})});
  CHECK(sum_of_both.values<float>() == std::vector<float>{11, 22});
  DeviceScope scope(cpu(1));
  const Tensor here = op("add", {on(0, {1, 2}), on(1, {10, 20})});
  CHECK(here.device() == cpu(1));
  CHECK(here.values<float>() == std::vector<float>{11, 22});
}

TEST_CASE("strings stay on the host, in any scope") {
  const Tensor text = Tensor::from_strings({"a", "b"}, {2});
  CHECK(text.to(cpu(1)).cell() == text.cell());
  DeviceScope scope(cpu(1));
  const Tensor upper = op("string_upper", {text});
  CHECK(upper.device() == cpu(0));
  CHECK(upper.strings() == std::vector<std::string>{"A", "B"});
  const Tensor length = op("string_length", {text});
  CHECK(length.device() == cpu(1));
  CHECK(length.values<int32_t>() == std::vector<int32_t>{1, 1});
}

TEST_CASE("a tensor moves inside a function") {
  const Function f = trace_function("moves", {{DType::kF32, {3}}}, [](const Tensors& args) {
    const Tensor there = args[0].to(cpu(1));
    DeviceScope scope(cpu(1));
    const Tensor doubled = op("mul", {there, vec({2, 2, 2})});
    return Tensors{doubled.to(cpu(0)), doubled, args[0].to(cpu(0)).to(cpu(1)).to(cpu(0))};
  });
  const Tensors out = f({vec({1, 2, 3})});
  CHECK(out[0].values<float>() == std::vector<float>{2, 4, 6});
  CHECK(out[0].device() == cpu(0));
  CHECK(out[1].device() == cpu(1));
  CHECK(out[1].values<float>() == std::vector<float>{2, 4, 6});
  CHECK(out[2].values<float>() == std::vector<float>{1, 2, 3});
  CHECK(out[2].device() == cpu(0));
  CHECK(f.program_text().find("/CPU:1") != std::string::npos);
  const Function nothing = trace_function("stays", {{DType::kF32, {3}}}, [](const Tensors& args) {
    return Tensors{args[0].to(default_device())};
  });
  CHECK(count(nothing.program_text(), "copy(") == 0);
  CHECK(nothing({vec({1, 2, 3})})[0].values<float>() == std::vector<float>{1, 2, 3});
}

TEST_CASE("arguments, captures and variables are brought to where the function wants them") {
  const Tensor captured = on(1, {10, 20});
  Variable state(on(1, {0, 0}), "state");
  CHECK(state.device() == cpu(1));
  const Function f = trace_function("mixed", {{DType::kF32, {2}}}, [&](const Tensors& args) {
    state.assign(op("add", {state.read(), args[0]}));
    return Tensors{op("add", {args[0], captured})};
  });
  for (uint8_t device : {uint8_t{0}, uint8_t{1}}) {
    const Tensor out = f({on(device, {1, 2})})[0];
    CHECK(out.device() == default_device());
    CHECK(out.values<float>() == std::vector<float>{11, 22});
  }
  CHECK(state.read().values<float>() == std::vector<float>{2, 4});
  CHECK(state.read().device() == cpu(1));
  // A variable stays on its device, wherever its new value comes from.
  state.assign(on(0, {5, 6}));
  CHECK(state.read().device() == cpu(1));
  CHECK(state.read().values<float>() == std::vector<float>{5, 6});
  CHECK(f({on(1, {1, 1})})[0].values<float>() == std::vector<float>{11, 21});
  CHECK(state.read().values<float>() == std::vector<float>{6, 7});
  const Function rows = trace_function("rows", {{DType::kF32, {2}}},
                                       [](const Tensors& args) { return Tensors{args[0]}; });
  CHECK(rows.collect_epoch({on(1, {1, 2, 3, 4})}, {}, 2, 0, 2, {0})[0].values<float>() ==
        std::vector<float>{1, 2, 3, 4});
  const Tensor order = Tensor::of<int32_t>({3, 2, 1, 0}, {4}, cpu(1));
  CHECK(rows.run_epoch({on(0, {1, 2, 3, 4})}, order, 2, 0, 2)[0].values<float>() ==
        std::vector<float>{2, 1});
}

TEST_CASE("gradients go the way back, to where their sources are") {
  auto loss_of = [](const Tensor& x, const Tensor& w) {
    const Tensor there = op("mul", {op("square", {x}).to(cpu(1)), w});
    return sum(there.to(cpu(0)));  // sum of w x^2
  };
  const Tensor x = on(0, {1, 2, 3}), w = on(1, {10, 20, 30});
  Tape tape;
  tape.watch(x);
  tape.watch(w);
  const Tensor loss = loss_of(x, w);
  tape.stop();
  CHECK(loss.item<float>() == 10 + 80 + 270);
  const Tensors eager = tape.gradients({loss}, {x, w});
  CHECK(eager[0].values<float>() == std::vector<float>{20, 80, 180});
  CHECK(eager[1].values<float>() == std::vector<float>{1, 4, 9});
  CHECK(eager[0].device() == cpu(0));
  CHECK(eager[1].device() == cpu(1));
  const Function f =
      trace_function("gradient", {{DType::kF32, {3}}}, [&](const Tensors& args) -> Tensors {
        const Tensor total = loss_of(args[0], w);
        const Tensors grads = gradients({total}, {args[0], w});
        return {total, grads[0], grads[1]};
      });
  const Tensors traced = f({x});
  CHECK(traced[0].item<float>() == 360);
  CHECK(traced[1].values<float>() == std::vector<float>{20, 80, 180});
  CHECK(traced[2].values<float>() == std::vector<float>{1, 4, 9});
  CHECK(traced[1].device() == default_device());  // the parameter's
  CHECK(traced[2].device() == cpu(1));
}

TEST_CASE("a device that is not there is refused where it is named") {
  std::string text;
  CHECK(error_of([] { vec({1}).to(Device{}); }, &text) == 201);
  CHECK(text.find("not set") != std::string::npos);
  CHECK(error_of([] { vec({1}).to(cpu(63)); }, &text) == 201);
  CHECK(text.find("/CPU:63") != std::string::npos);
  CHECK(error_of([] { Tensor().to(cpu(0)); }) != 0);
}
