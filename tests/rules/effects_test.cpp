// SPDX-License-Identifier: Apache-2.0
// What becomes of effects that fail: told once, with op and source line, and nobody else's affair.
#include <doctest/doctest.h>

#include "support.h"

using namespace tracefire;
using namespace tracefire::testing;

namespace {

HostFunction failing(const std::string& text) {
  return [text](const std::vector<HostArray>&) -> std::vector<HostArray> {
    throw std::runtime_error(text);
  };
}

Tensor bad_row() {
  return op("gather", {vec({1, 2, 3}), Tensor::of<int32_t>({7}, {1})}, {{"axis", int64_t{0}}});
}

void assert_true(const Tensor& cond, const std::string& message) {
  apply_op("assert", Tensors{cond}, {{"message", message}});
}

Tensor truth(bool value) {
  return op("greater", {Tensor::scalar(value ? 1 : 0), Tensor::scalar(0)});
}

/// Records with a source line.
struct At {
  At() {
    set_location_source([](const char** file, int32_t* line) {
      *file = "train.py";
      *line = 12;
      return true;
    });
  }
  ~At() { set_location_source(nullptr); }
};

}  // namespace

TEST_CASE("a host call without results that fails is raised once, by whoever asks next") {
  const std::vector<std::function<void()>> asking{
      [] { flush(); },
      [] { synchronize(); },
      [] {
        op("add", {vec({1}), vec({2})}).values<float>();
      },
      [] {
        op("add", {vec({1}), vec({2})}).wait();
      },
      [] {
        fetch(Tensors{op("add", {vec({1}), vec({2})})});
      },
  };
  for (const auto& ask : asking) {
    {
      At here;
      host_call(failing("no disk"), {vec({1})}, {});
    }
    std::string text;
    CHECK(error_of(ask, &text) == 304);
    CHECK(text.find("host_call") != std::string::npos);
    CHECK(text.find("train.py:12") != std::string::npos);
    CHECK(text.find("no disk") != std::string::npos);
    CHECK(error_of(ask) == 0);
    CHECK(error_of([] { flush(); }) == 0);
  }
}

TEST_CASE("several failures are raised one after the other, and do not stop effects or values") {
  std::vector<float> seen;
  const HostFunction note = [&](const std::vector<HostArray>& args) -> std::vector<HostArray> {
    seen.push_back(*reinterpret_cast<const float*>(args[0].bytes.data()));
    return {};
  };
  const Tensor before = op("mul", {vec({2}), vec({3})});
  host_call(failing("first"), {before}, {});
  host_call(note, {Tensor::scalar(1.0f)}, {});
  const Tensor between = op("mul", {before, vec({2})});
  assert_true(truth(false), "second");
  host_call(note, {Tensor::scalar(2.0f)}, {});
  const Tensor after = op("mul", {between, vec({2})});
  std::string text;
  CHECK(error_of([&] { flush(); }, &text) == 304);
  CHECK(text.find("first") != std::string::npos);
  CHECK(error_of([&] { after.values<float>(); }, &text) == 303);
  CHECK(text.find("second") != std::string::npos);
  CHECK(error_of([&] { flush(); }) == 0);
  CHECK(seen == std::vector<float>{1, 2});
  CHECK(after.values<float>() == std::vector<float>{24});
  CHECK(between.values<float>() == std::vector<float>{12});
}

TEST_CASE("effects happen before a value is read that was ready before them") {
  const Tensor ready = vec({1});
  ready.wait();
  int calls = 0;
  host_call(
      [&](const std::vector<HostArray>&) -> std::vector<HostArray> {
        ++calls;
        return {};
      },
      {}, {});
  ready.values<float>();
  CHECK(calls == 1);
  assert_true(truth(false), "too late");
  CHECK(error_of([&] { fetch(Tensors{ready}); }) == 303);
  CHECK(error_of([&] { ready.wait(); }) == 0);
}

TEST_CASE("a failure that a value carries is told by the value, each time, and not by flush") {
  const Tensor out = host_call(failing("no file"), {vec({1})}, {{DType::kF32, {1}}})[0];
  const Tensor dependent = op("add", {out, vec({1})});
  CHECK(error_of([&] { flush(); }) == 0);
  for (int i = 0; i < 2; ++i) {
    CHECK(error_of([&] { dependent.values<float>(); }) == 304);
    CHECK(error_of([&] { out.values<float>(); }) == 304);
  }
  CHECK(error_of([&] { flush(); }) == 0);
}

TEST_CASE("results that nobody holds carry nothing") {
  host_call(failing("no file"), {vec({1})}, {{DType::kF32, {1}}});
  CHECK(error_of([&] { flush(); }) == 304);
  CHECK(error_of([&] { flush(); }) == 0);
}

TEST_CASE("an effect does not run on what failed, and says why it did not") {
  bool called = false;
  const HostFunction note = [&](const std::vector<HostArray>&) -> std::vector<HostArray> {
    called = true;
    return {};
  };
  std::string text;
  {
    At here;
    host_call(note, {bad_row()}, {});  // a check of a kernel
  }
  CHECK(error_of([&] { flush(); }, &text) == 301);
  CHECK(text.find("gather") != std::string::npos);
  CHECK(text.find("train.py:12") != std::string::npos);
  CHECK(error_of([&] { flush(); }) == 0);
  const Tensor bad = bad_row();
  flush();  // computed earlier, in another run
  host_call(note, {bad}, {});
  CHECK(error_of([&] { flush(); }) == 301);
  CHECK(error_of([&] { bad.values<float>(); }) == 301);
  const Tensor out = host_call(failing("no file"), {vec({1})}, {{DType::kF32, {1}}})[0];
  host_call(note, {out}, {});
  print("{}", {out});
  CHECK(error_of([&] { flush(); }) == 304);
  CHECK(error_of([&] { flush(); }) == 0);  // one cause
  CHECK(error_of([&] { out.values<float>(); }) == 304);
  CHECK_FALSE(called);
}

TEST_CASE("branches and loops outside of functions tell what failed in them") {
  std::string text;
  cond(
      truth(true),
      [&]() -> Tensors {
        host_call(failing("in a branch"), {}, {});
        return {};
      },
      []() -> Tensors { return {}; });
  CHECK(error_of([&] { flush(); }, &text) == 304);
  CHECK(text.find("in a branch") != std::string::npos);
  CHECK(error_of([&] { flush(); }) == 0);
  auto loop = [&] {
    return while_loop(
        [](const Tensors& v) {
          return op("less", {v[0], Tensor::scalar(3)});
        },
        [&](const Tensors& v) -> Tensors {
          assert_true(op("less", {v[0], Tensor::scalar(1)}), "in a loop");
          return {op("add", {v[0], Tensor::scalar(1)})};
        },
        {Tensor::scalar(0)});
  };
  loop();  // its result is dropped
  CHECK(error_of([&] { flush(); }, &text) == 303);
  CHECK(text.find("in a loop") != std::string::npos);
  const Tensor result = loop()[0];
  CHECK(error_of([&] { flush(); }) == 0);
  CHECK(error_of([&] { result.item<int32_t>(); }) == 303);
}

TEST_CASE("a function tells at its call what failed in it, at any depth, and effects check first") {
  Variable count(Tensor::scalar(0.0f), "count");
  bool called = false;
  const HostFunction note = [&](const std::vector<HostArray>&) -> std::vector<HostArray> {
    called = true;
    return {};
  };
  auto traced = [&](const char* name, const std::function<void(const Tensor&)>& body) {
    return trace_function(name, {{DType::kI32, {}}}, [&](const Tensors& args) -> Tensors {
      body(args[0]);
      return {op("add", {args[0], args[0]})};
    });
  };
  const Function direct =
      traced("direct", [&](const Tensor& x) { host_call(failing("direct"), {x}, {}); });
  const Function nested = traced("nested", [&](const Tensor& x) {
    while_loop(
        [&](const Tensors& v) {
          return op("less", {v[0], x});
        },
        [&](const Tensors& v) -> Tensors {
          cond(
              op("equal", {v[0], Tensor::scalar(1)}),
              [&]() -> Tensors {
                assert_true(truth(false), "deep down");
                return {};
              },
              []() -> Tensors { return {}; });
          return {op("add", {v[0], Tensor::scalar(1)})};
        },
        {Tensor::scalar(0)});
  });
  const Function inner = traced("inner", [&](const Tensor& x) { nested({x}); });
  const Function checked = traced("checked", [&](const Tensor& x) {
    const Tensor row = op("gather", {vec({1, 2}), op("reshape", {x}, {{"shape", Shape{1}}})},
                          {{"axis", int64_t{0}}});
    host_call(note, {row}, {});
  });
  const Tensor zero = Tensor::scalar(0), five = Tensor::scalar(5);
  std::string text;
  CHECK(error_of([&] { direct({zero}); }, &text) == 304);
  CHECK(text.find("direct") != std::string::npos);
  for (const Function* function : {&nested, &inner}) {
    CHECK((*function)({Tensor::scalar(1)})[0].item<int32_t>() == 2);
    CHECK(error_of([&] { (*function)({five}); }, &text) == 303);
    CHECK(text.find("deep down") != std::string::npos);
  }
  CHECK(error_of([&] { checked({five}); }, &text) == 301);
  CHECK(text.find("gather") != std::string::npos);
  CHECK_FALSE(called);
  CHECK(checked({Tensor::scalar(1)})[0].item<int32_t>() == 2);
  CHECK(called);
  called = false;
  const Tensor bad = op("cast", {bad_row()}, {{"dtype", DType::kI32}});
  const Tensor bad_scalar = op("reshape", {bad}, {{"shape", Shape{}}});
  CHECK(error_of([&] { checked({bad_scalar}); }) == 301);  // failed before the call
  CHECK_FALSE(called);
  CHECK(error_of([&] { flush(); }) == 0);
}

TEST_CASE("the steps of an epoch tell what failed in them") {
  const Function step =
      trace_function("step", {{DType::kF32, {1}}}, [&](const Tensors& args) -> Tensors {
        assert_true(op("less", {sum(args[0]), Tensor::scalar(3.0f)}), "too large");
        return {args[0]};
      });
  const Tensor data = vec({0, 1, 2, 3, 4});
  CHECK(error_of([&] { step.run_epoch({data}, {}, 1, 0, 3); }) == 0);
  std::string text;
  CHECK(error_of([&] { step.run_epoch({data}, {}, 1, 0, 5); }, &text) == 303);
  CHECK(text.find("too large") != std::string::npos);
  CHECK(error_of([&] { step.collect_epoch({data}, {}, 1, 2, 5, {0}); }) == 303);
  CHECK(error_of([&] { flush(); }) == 0);
}

TEST_CASE("a scope that ends with a failing effect leaves it to the next observation") {
  {
    DeviceScope scope(parse_device("CPU:0"));
    host_call(failing("in a scope"), {}, {});
  }
  CHECK(error_of([&] { flush(); }) == 304);
  set_log_device_placement(true);
  host_call(failing("logged"), {}, {});
  set_log_device_placement(false);
  CHECK(error_of([&] { flush(); }) == 304);
  CHECK(error_of([&] { flush(); }) == 0);
}
