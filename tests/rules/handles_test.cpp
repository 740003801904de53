// SPDX-License-Identifier: Apache-2.0
// Handles of the public API: what undefined ones say, what copies are, C++ types and dtypes.
#include <doctest/doctest.h>

#include <complex>
#include <memory>
#include <thread>

#include "error_codes.h"
#include "support.h"
#include "tracefire/half.h"

using namespace tracefire;
using namespace tracefire::testing;

TEST_CASE("C++ types and dtypes") {
  CHECK(Tensor::of<bool>({true, false, true}).values<bool>() ==
        std::vector<bool>{true, false, true});
  CHECK(Tensor::of<bool>({true, false}, {1, 2}).sizes() == std::vector<int64_t>{1, 2});
  const Tensor halves = Tensor::of<Half>({Half(1.5f), Half(-2.0f)});
  CHECK(halves.dtype() == DType::kF16);
  CHECK(static_cast<float>(halves.values<Half>()[1]) == -2.0f);
  CHECK(op("cast", {Tensor::scalar(BFloat16(0.5f))}, {{"dtype", DType::kF32}}).item<float>() ==
        0.5f);
  CHECK(op("logical_not", {Tensor::of<bool>({true, false})}).values<bool>() ==
        std::vector<bool>{false, true});
  CHECK(Tensor::scalar(5LL).dtype() == DType::kI64);
  CHECK(Tensor::scalar(5UL).item<unsigned long long>() == 5);
  CHECK(Tensor::scalar(int8_t{-3}).dtype() == DType::kI8);
  CHECK(Tensor::scalar(uint16_t{3}).dtype() == DType::kU16);
  CHECK(Tensor::scalar(1.0).dtype() == DType::kF64);
  CHECK(Tensor::scalar(1.0f).dtype() == DType::kF32);
  CHECK(Tensor::scalar(true).dtype() == DType::kBool);
  const std::complex<float> z(1, -2);
  CHECK(Tensor::scalar(z).dtype() == DType::kC64);
  CHECK(Tensor::of<std::complex<float>>({z, z}).values<std::complex<float>>()[1] == z);
  CHECK(Tensor::of<int32_t>({1, 2, 3}).sizes() == std::vector<int64_t>{3});
  CHECK(Tensor::of<float>({}).sizes() == std::vector<int64_t>{0});
  CHECK(error_of([] { Tensor::of<float>({1, 2}, {3}); }) == 101);
  CHECK(error_of([] { vec({1, 2}).item<float>(); }) == 101);
  CHECK(error_of([] { vec({1}).item<double>(); }) == 102);
}

TEST_CASE("host arrays of host functions have typed elements") {
  const HostFunction twice = [](const std::vector<HostArray>& args) {
    std::vector<float> values = args[0].values<float>();
    for (float& value : values) value *= 2;
    return std::vector<HostArray>{HostArray::of(values, args[0].sizes)};
  };
  CHECK(host_call(twice, {vec({1, 2})}, {{DType::kF32, {2}}})[0].values<float>() ==
        std::vector<float>{2, 4});
  const Tensor wrong = host_call(twice, {Tensor::of<int32_t>({1})}, {{DType::kF32, {1}}})[0];
  std::string text;
  CHECK(error_of([&] { wrong.values<float>(); }, &text) == 304);
  CHECK(text.find("int32") != std::string::npos);
}

TEST_CASE("devices by name, errors by name") {
  CHECK(Device::cpu() == parse_device("/CPU:0"));
  CHECK(Device::gpu(3) == parse_device("gpu:3"));
  try {
    vec({1}).values<int32_t>();
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.is(ErrorCode::kDTypeMismatch));
    CHECK_FALSE(error.is(ErrorCode::kShapeMismatch));
    CHECK(error.code() == "TF-E0102");
  }
}

TEST_CASE("copies of a variable are the same variable") {
  const Variable a(vec({1}), "a"), same = a, other(vec({1}), "a");
  CHECK(a == same);
  CHECK(a != other);
  same.assign(vec({2}));
  CHECK(a.read().values<float>() == std::vector<float>{2});
}

TEST_CASE("undefined handles are errors, whatever is asked of them") {
  const Tensor none;
  for (const std::function<void()>& use : std::vector<std::function<void()>>{
           [&] { none.dtype(); }, [&] { none.shape(); }, [&] { none.device(); },
           [&] { none.wait(); }, [&] { none.values<float>(); }, [&] { none.item<float>(); },
           [&] { none.strings(); }, [&] { none.sizes(); }, [&] { none.element_count(); },
           [&] {
             float x;
             none.copy_to(&x, 4);
           },
           [&] { fetch(Tensors{none}); }, [&] { none.to(Device::cpu()); },
           [&] { op("neg", {none}); }, [&] { print("{}", {none}); }, [&] { Variable v(none); },
           [&] {
             Tape tape;
             tape.watch(none);
           },
           [&] { Variable(vec({1})).assign(none); },
           [&] { trace_function("f", {}, [&](const Tensors&) { return Tensors{none}; }); }}) {
    CHECK(error_of(use) == 103);
  }
  const Variable variable;
  for (const std::function<void()>& use : std::vector<std::function<void()>>{
           [&] { variable.read(); }, [&] { variable.assign(vec({1})); }, [&] { variable.name(); },
           [&] { variable.trainable(); }, [&] { variable.dtype(); }, [&] { variable.shape(); },
           [&] { variable.device(); }}) {
    CHECK(error_of(use) == 502);
  }
  const Function function;
  for (const std::function<void()>& use : std::vector<std::function<void()>>{
           [&] { function({}); }, [&] { function.run_epoch({}, {}, 1, 0, 1); },
           [&] { function.collect_epoch({}, {}, 1, 0, 1, {}); }, [&] { function.graph_text(); },
           [&] { function.program_text(); }, [&] { function.variables(); },
           [&] { function.parameters(); }, [&] { function.outputs(); }}) {
    CHECK(error_of(use) == 502);
  }
}

TEST_CASE("a tape may be stopped and destroyed on another thread [threads]") {
  const Tensor x = vec({1, 2});
  auto tape = std::make_unique<Tape>();
  tape->watch(x);
  const Tensor y = sum(op("square", {x}));
  std::thread([&] { tape->stop(); }).join();
  op("square", {y});  // not recorded, not a crash
  CHECK(tape->gradients({y}, {x})[0].values<float>() == std::vector<float>{2, 4});
  tape->resume();
  const Tensor z = sum(op("mul", {y, x}));
  std::thread([&] { CHECK(op("exp", {vec({0})}).item<float>() == 1); }).join();  // its own affair
  CHECK(tape->gradients({z}, {x})[0].values<float>() == std::vector<float>{11, 17});
  std::thread([&] { tape.reset(); }).join();
  CHECK(op("add", {x, x}).values<float>() == std::vector<float>{2, 4});
  Tape next;
  next.watch(x);
  const Tensor w = sum(x);
  CHECK(next.gradients({w}, {x})[0].values<float>() == std::vector<float>{1, 1});
}
