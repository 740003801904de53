// SPDX-License-Identifier: Apache-2.0
// Handles that were never given a value or were moved from, null, negative and impossible sizes,
// calls out of order: some of these crashed, hung, or threw what is no tracefire::Error.
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "nn/reference.h"
#include "support/paths.h"
#include "support/skip.h"
#include "tracefire/apply.h"
#include "tracefire/config.h"
#include "tracefire/control.h"
#include "tracefire/function.h"
#include "tracefire/grad.h"
#include "tracefire/observe.h"
#include "tracefire/profiler.h"
#include "tracefire/summary.h"

namespace tracefire::testing {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kHuge = int64_t{1} << 48;  // no machine holds so many bytes
constexpr auto kNoDType = static_cast<DType>(200);

/// Code of the error that `work` throws, 0 where it ends well, -1 for any other exception.
template <class Work>
int outcome(Work work) {
  try {
    work();
  } catch (const Error& failure) {
    const std::string text = failure.what();
    INFO(text);
    CHECK(text.rfind("[TF-E", 0) == 0);
    CHECK(text.size() > 20);
    return failure.number();
  } catch (const std::exception& failure) {
    FAIL_CHECK("not a coded error: ", failure.what());
    return -1;
  }
  return 0;
}

Tensor floats(const std::vector<int64_t>& sizes, float value = 0.5f) {
  size_t count = 1;
  for (int64_t size : sizes) count *= static_cast<size_t>(size);
  return Tensor::of(std::vector<float>(count, value), sizes);
}

nn::CompileOptions regression() {
  return {.optimizer = optim::Adam(), .loss = nn::MeanSquaredError()};
}

/// A value that was moved from.
template <class T>
T hollow(T value) {
  T other = std::move(value);
  return value;  // NOLINT: this is the point
}

}  // namespace

TEST_CASE("public edge: undefined and moved-from tensors") {
  Tensor moved = floats({2});
  const Tensor taken = std::move(moved);
  for (const Tensor& none : {Tensor(), moved}) {
    CHECK_FALSE(none.defined());
    char byte;
    CHECK(outcome([&] { none.dtype(); }) == 103);
    CHECK(outcome([&] { none.shape(); }) == 103);
    CHECK(outcome([&] { none.device(); }) == 103);
    CHECK(outcome([&] { none.rank(); }) == 103);
    CHECK(outcome([&] { none.to(Device::cpu()); }) == 103);
    CHECK(outcome([&] { none.wait(); }) == 103);
    CHECK(outcome([&] { none.copy_to(&byte, 1); }) == 103);
    CHECK(outcome([&] { none.values<float>(); }) == 103);
    CHECK(outcome([&] { none.item<float>(); }) == 103);
    CHECK(outcome([&] { none.strings(); }) == 103);
    CHECK(outcome([&] { none.element_count(); }) == 103);
    CHECK(outcome([&] { none.sizes(); }) == 103);
    CHECK(outcome([&] { fetch(std::vector<Tensor>{taken, none}); }) == 103);
    CHECK(outcome([&] { add(taken, none); }) == 103);
    CHECK(outcome([&] { concat(std::vector<Tensor>{taken, none}, 0); }) == 103);
    CHECK(outcome([&] { Variable v(none); }) == 103);
    CHECK(outcome([&] { Variable(taken).assign(none); }) == 103);
  }
}

TEST_CASE("public edge: host memory that is not there, sizes that cannot be") {
  const float one = 1;
  CHECK(outcome([] { Tensor::from_host(nullptr, DType::kF32, {2}); }) == 103);
  CHECK(outcome([] { Tensor::from_host(nullptr, DType::kF32, {0}).wait(); }) == 0);
  CHECK(outcome([&] { Tensor::from_host(&one, DType::kF32, {-1}); }) == 101);
  CHECK(outcome([&] { Tensor::from_host(&one, DType::kF32, {kLeast, kLeast}); }) == 101);
  CHECK(outcome([&] { Tensor::from_host(&one, DType::kF32, {kMost, kMost, kMost}); }) == 101);
  CHECK(outcome([&] { Tensor::from_host(&one, DType::kF32, {kHuge}); }) == 203);
  for (DType none : {DType::kInvalid, DType::kString, DType::kToken, kNoDType}) {
    CHECK(outcome([&] { Tensor::from_host(&one, none, {}); }) == 102);
  }
  CHECK(outcome([&] { Tensor::from_host(&one, DType::kF32, {}, Device{77, 9}); }) == 201);
  CHECK(outcome([&] { Tensor::of<float>({1, 2}, {-1, -2}); }) == 101);
  CHECK(outcome([&] { Tensor::of<float>({1, 2}, {kMost, kMost}); }) == 101);
  CHECK(outcome([&] { Tensor::from_strings({"a"}, {-1}); }) == 101);
  CHECK(outcome([&] { Tensor::from_strings({"a"}, {2}); }) == 101);
  CHECK(outcome([&] { floats({2}).copy_to(nullptr, 8); }) == 103);
  float two[2];
  CHECK(outcome([&] { floats({2}).copy_to(two, 4); }) == 101);
  CHECK(outcome([&] { floats({2}).item<float>(); }) == 101);
  CHECK(outcome([&] { floats({2}).values<double>(); }) == 102);
  CHECK(outcome([&] { floats({2}).to(Device{}); }) == 201);
  CHECK(outcome([&] { floats({2}).to(Device{77, 9}).wait(); }) == 201);
  CHECK(fetch({}).empty());
}

TEST_CASE("public edge: shapes and symbols") {
  const Shape shape{2, 3};
  CHECK(outcome([&] { shape[2]; }) == 104);
  CHECK(outcome([&] { shape[-1]; }) == 104);
  CHECK(outcome([&] { Shape()[0]; }) == 104);
  CHECK(outcome([&] { Dim::from_symbol(1 << 30).str(); }) == 108);
  CHECK(outcome([&] { Dim::from_symbol(1 << 30).bound(); }) == 108);
  CHECK(outcome([&] { free_symbols(Dim::from_symbol(1 << 30) + Dim(1)); }) == 108);
  CHECK(outcome([&] { DimEnv().eval(Dim::from_symbol(1 << 30)); }) == 108);
  CHECK((Dim(kMost) * Dim(kMost)).value() == kMost);
  CHECK(floor_div(Dim(kLeast), Dim(-1)).value() == kMost);
  CHECK(floor_div(Dim(1), Dim(0)).value() == 0);
  CHECK(dtype_size(kNoDType) == 0);
  CHECK(!dtype_name(kNoDType).empty());
  CHECK(outcome([] { parse_device(""); }) == 201);
  CHECK(outcome([] { parse_device("GPU:99999999999999999999"); }) == 201);
  CHECK(outcome([] { register_device_kind(std::string(1000, 'x')); }) == 201);
  CHECK(outcome([] { memory_info(Device{}); }) == 201);
  CHECK(outcome([] { memory_info(Device{200, 200}); }) == 201);
  CHECK(outcome([] { change_setting("", ""); }) == 503);
  CHECK(outcome([] { setting("nosuch"); }) == 503);
  CHECK(outcome([] { set_cpu_devices(-1); }) == 503);
}

TEST_CASE("public edge: undefined variables, functions and refs") {
  Variable moved(floats({2}));
  const Variable taken = std::move(moved);
  for (const Variable& none : {Variable(), moved}) {
    CHECK(outcome([&] { none.read(); }) == 502);
    CHECK(outcome([&] { none.assign(floats({2})); }) == 502);
    CHECK(outcome([&] { none.name(); }) == 502);
    CHECK(outcome([&] { none.shape(); }) == 502);
    CHECK(outcome([&] { none.dtype(); }) == 502);
    CHECK(outcome([&] { none.device(); }) == 502);
    CHECK(outcome([&] { none.trainable(); }) == 502);
    CHECK(outcome([&] { optim::Adam().build({none}); }) == 502);
    CHECK(outcome([&] { optim::Sgd().apply({floats({2})}, {none}); }) == 502);
  }
  // A size that data decides is no size of a variable.
  const Tensor some = apply_op("unique", std::vector<Tensor>{floats({4})})[0];
  CHECK(outcome([&] { Variable v(some); }) == 108);

  const Function none;
  CHECK(outcome([&] { none({}); }) == 502);
  CHECK(outcome([&] { none.run_epoch({}, Tensor(), 1, 0, 1); }) == 502);
  CHECK(outcome([&] { none.collect_epoch({}, Tensor(), 1, 0, 1, {}); }) == 502);
  CHECK(outcome([&] { none.graph_text(); }) == 502);
  CHECK(outcome([&] { none.program_text(); }) == 502);
  CHECK(outcome([&] { none.variables(); }) == 502);
  CHECK(outcome([&] { none.parameters(); }) == 502);

  const Ref<nn::Layer> empty;
  CHECK(outcome([&] { empty->name(); }) == 502);
  CHECK(outcome([&] { (*empty)(floats({2, 2})); }) == 502);
}

TEST_CASE("public edge: a shape that nothing can hold is a coded error on every device") {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  return test::skip("AddressSanitizer ends a process that asks for so much memory");
#endif
#endif
  std::vector<Device> devices{Device::cpu()};
  for (const char* kind : {"REF", "NULL"}) devices.push_back({register_device_kind(kind), 0});
  for (Device device : devices) {
    INFO(device.str());
    const DeviceScope scope(device);
    const Tensor one = Tensor::scalar(1.0f, device);
    // 2^62 elements of 4 bytes are 2^64, which once wrapped around to none.
    for (const Shape& shape : {Shape{kHuge}, Shape{1 << 24, 1 << 24}, Shape{int64_t{1} << 62},
                               Shape{kMost, kMost}, Shape{int64_t{1} << 31, int64_t{1} << 31}}) {
      INFO(shape.str());
      CHECK(outcome([&] { broadcast_to(one, shape).wait(); }) == 203);
      CHECK(outcome([&] { add(broadcast_to(one, shape), one).wait(); }) == 203);
      CHECK(outcome([&] {
              const Tensor sum = reduce_sum(neg(broadcast_to(one, shape)), {0});
              add(sum, one).wait();
            }) > 0);
      const Function function = trace_function(
          "huge", {{DType::kF32, Shape{}}},
          [&](const Tensors& in) { return Tensors{neg(broadcast_to(in[0], shape))}; });
      CHECK(outcome([&] { function({one})[0].wait(); }) == 203);
    }
    CHECK(outcome([&] { broadcast_to(one, Shape{-1}).wait(); }) > 0);
    // The device is as it was.
    CHECK(outcome([&] { add(one, one).wait(); }) == 0);
  }
  CHECK(outcome([] { nn::zeros()(Shape{kHuge}, DType::kF32).wait(); }) == 203);
  CHECK(outcome([] { nn::uniform(0, 1, 1)(Shape{kHuge}, DType::kF32).wait(); }) == 203);
  CHECK(outcome([] { nn::Dense{kMost}(floats({2, 2})).wait(); }) > 0);  // no kernel, on a GPU
  const Tensor text = Tensor::from_strings({"a"}, {});
  CHECK(outcome([&] { broadcast_to(text, Shape{kHuge}).wait(); }) > 0);
}

TEST_CASE("public edge: control flow without functions, functions with other results") {
  const Tensor yes = Tensor::scalar(true);
  const auto two = [] { return Tensors{floats({2})}; };
  CHECK(outcome([&] { cond(Tensor(), two, two); }) == 103);
  CHECK(outcome([&] { cond(yes, nullptr, two); }) == 103);
  CHECK(outcome([&] { cond(yes, two, {}); }) == 103);
  CHECK(outcome([&] { cond(yes, two, [] { return Tensors{Tensor()}; }); }) == 103);
  CHECK(outcome([&] { cond(yes, two, [] { return Tensors{}; }); }) == 101);
  CHECK(outcome([&] { while_loop(nullptr, nullptr, {}); }) == 103);
  const auto same = [](const Tensors& in) { return in; };
  const auto no = [](const Tensors&) { return Tensor::scalar(false); };
  CHECK(outcome([&] { while_loop(no, nullptr, {yes}); }) == 103);
  CHECK(outcome([&] { while_loop(no, same, {Tensor()}); }) == 103);
  CHECK(outcome([&] { while_loop([](const Tensors&) { return Tensor(); }, same, {yes}); }) == 103);
  CHECK(outcome([&] { while_loop(no, same, {yes}, kLeast)[0].wait(); }) == 0);
  CHECK(outcome([&] { host_call(nullptr, {}, {}); }) == 103);
  const auto gives = [](HostArray array) {
    return [array](const std::vector<HostArray>&) { return std::vector<HostArray>{array}; };
  };
  const std::vector<TensorSpec> wanted{{DType::kF32, Shape{2}}};
  for (const HostArray& bad :
       {HostArray(), HostArray{DType::kF32, {2}, {}, {}}, HostArray{DType::kF32, {-2}, {}, {}},
        HostArray{DType::kString, {2}, {}, {"a"}},
        HostArray{kNoDType, {2}, std::vector<char>(8), {}}}) {
    CHECK(outcome([&] { host_call(gives(bad), {}, wanted)[0].wait(); }) == 304);
  }
  // Sizes below 0 are refused where they are named, not by whatever fires next.
  CHECK(outcome([&] { host_call(gives({}), {}, {{DType::kF32, Shape{-1}}}); }) == 103);
  const Tensor place = Tensor::of<int32_t>({0}, {1});
  CHECK(outcome([&] {
          apply_op("scatter_add", Tensors{floats({1}), place},
                   {{"shape", Shape{-1}}, {"axis", int64_t{0}}});
        }) == 103);
  CHECK(outcome([&] { host_call(gives({}), {}, {{kNoDType, Shape{-1}}})[0].wait(); }) > 0);
  CHECK(HostArray{DType::kF32, {1}, std::vector<char>(7), {}}.values<float>().size() == 1);
  CHECK(HostArray::of<bool>({true, false}, {2}).values<bool>() == std::vector<bool>{true, false});
  CHECK(outcome([] { HostArray().values<float>(); }) == 102);
  CHECK(outcome([] { print("{} {}", {Tensor()}); }) == 103);
}

TEST_CASE("public edge: tracing out of order") {
  CHECK(outcome([] { trace_function("f", {}, nullptr); }) == 103);
  CHECK(outcome([] { trace_function("f", {{DType::kInvalid, {}}}, nullptr); }) == 103);
  {
    FunctionTrace trace("f");
    CHECK(outcome([&] { trace.parameter(DType::kInvalid, Shape{}); }) == 102);
    CHECK(outcome([&] { trace.parameter(DType::kToken, Shape{}); }) == 102);
    CHECK(outcome([&] { trace.parameter(DType::kF32, Shape{-2}); }) == 101);
    CHECK(outcome([&] { trace.finish({Tensor()}); }) == 103);
    const Function function = trace.finish({trace.parameter(DType::kF32, Shape{})});
    CHECK(outcome([&] { trace.finish({}); }) == 502);
    CHECK(outcome([&] { trace.parameter(DType::kF32, Shape{}); }) == 502);
    CHECK_FALSE(is_tracing());
    CHECK(outcome([&] { function({}); }) == 106);
    CHECK(outcome([&] { function({Tensor()}); }) == 103);
    CHECK(outcome([&] { function({floats({3})}); }) == 101);
    CHECK(outcome([&] { function.run_epoch({Tensor()}, Tensor(), 1, 0, 1); }) == 103);
    CHECK(outcome([&] { function.run_epoch({floats({3})}, Tensor(), kMost, 0, kMost); }) > 0);
    CHECK(outcome([&] { function.collect_epoch({floats({3})}, Tensor(), 1, 0, 1, {-1}); }) > 0);
  }
  {  // The outer one ends first.
    auto outer = std::make_unique<FunctionTrace>("outer");
    const Tensor in = outer->parameter(DType::kF32, Shape{});
    auto inner = std::make_unique<FunctionTrace>("inner");
    outer.reset();
    CHECK(outcome([&] { add(in, in); }) == 114);
    CHECK(outcome([&] { inner->finish({in}); }) == 114);
    inner.reset();
    CHECK_FALSE(is_tracing());
    CHECK(outcome([&] { add(in, in); }) == 114);
    CHECK(outcome([&] { in.wait(); }) == 114);
    CHECK(add(floats({1}), floats({1})).item<float>() == 1.0f);
  }
  {  // It ends on another thread.
    auto trace = std::make_unique<FunctionTrace>("elsewhere");
    std::thread([&] { trace.reset(); }).join();
    CHECK_FALSE(is_tracing());
    auto name = std::make_unique<NameScope>("name");
    std::thread([&] { name.reset(); }).join();
  }
  {
    auto first = std::make_unique<InitScope>();
    auto second = std::make_unique<AbstractScope>();
    CHECK(outcome([&] { second->parameter(kNoDType, Shape{}); }) == 102);
    first.reset();
    CHECK(is_tracing());
    second.reset();
    CHECK_FALSE(is_tracing());
  }
}

TEST_CASE("public edge: gradients of what is not there") {
  Tape tape;
  const Tensor x = floats({2});
  tape.watch(x);
  const Tensor y = reduce_sum(square(x), {0});
  CHECK(outcome([&] { tape.watch(Tensor()); }) == 103);
  CHECK(outcome([&] { tape.gradients({Tensor()}, {x}); }) == 103);
  CHECK(outcome([&] { tape.gradients({y}, {Tensor()}); }) == 103);
  CHECK(outcome([&] { tape.gradients({y}, {x}, {Tensor()}); }) == 103);
  CHECK(outcome([&] { tape.gradients({y}, {x}, {x}); }) == 101);
  CHECK(outcome([&] { tape.gradients({y}, {x}, {y, y}); }) == 106);
  CHECK(outcome([&] { gradients({y}, {x}); }) == 114);
  CHECK(tape.gradients({}, {}).empty());
  tape.stop();
  tape.stop();
  CHECK(tape.gradients({y}, {x})[0].values<float>() == std::vector<float>{1, 1});
}

TEST_CASE("public edge: tables that do not hold what they say") {
  data::Table table{"t", {"a"}, 5, 3, {1, 2, 3}};
  CHECK(outcome([&] { table.floats(); }) == 101);
  CHECK(outcome([&] { table.labels(0); }) == 101);
  table.rows = kMost;
  CHECK(outcome([&] { table.floats(); }) == 101);
  table.rows = -1;
  table.columns = -3;
  CHECK(outcome([&] { table.floats(); }) == 101);
  table = {"t", {}, 1, 3, {1, 2, NAN}};
  CHECK(outcome([&] { table.floats(kLeast, kMost); }) == 301);
  CHECK(outcome([&] { table.floats(0, kMost); }) == 301);
  CHECK(outcome([&] { table.labels(-1); }) == 402);
  CHECK(outcome([&] { table.column(""); }) == 301);
  CHECK(table.floats(0, 0).sizes() == std::vector<int64_t>{1, 0});
  CHECK(outcome([] { data::Dataset().rows(); }) == 115);
  CHECK(outcome([] { data::take_rows({}, {0}); }) == 115);
  CHECK(outcome([] { data::take_rows({floats({2}), floats({})}, {0}); }) == 101);
  CHECK(outcome([] { data::take_rows({floats({2}), {}}, {-1}); }) == 301);
  CHECK(outcome([] { data::split_every({floats({4}), {}}, kMost); }) == 0);
  CHECK(outcome([] { data::parse_csv(std::string_view()); }) == 115);
  CHECK(outcome([] { data::parse_csv("1,2", {.separator = '\0'}); }) == 503);
}

TEST_CASE("public edge: layers, optimizers and models that were moved from") {
  nn::Dense layer = hollow(nn::Dense(2));
  CHECK(outcome([&] { layer(floats({2, 2})); }) == 502);
  CHECK(outcome([&] { layer.output_shape(Shape{2, 2}); }) == 502);
  CHECK(outcome([&] { layer.built(); }) == 502);
  CHECK(outcome([&] { layer.variables(); }) == 502);
  CHECK(outcome([&] { layer.trainable_variables(); }) == 502);
  CHECK(outcome([&] { layer.set_trainable(true); }) == 502);
  CHECK(outcome([&] { layer.trainable(); }) == 502);
  CHECK(outcome([&] { layer.name(); }) == 502);
  CHECK(outcome([&] { layer.set_name("n"); }) == 502);
  CHECK(outcome([&] { layer.layers(); }) == 502);
  layer = nn::Dense(3);
  CHECK(outcome([&] { layer.kernel().read(); }) == 502);  // not built yet
  CHECK(outcome([&] { layer.bias().read(); }) == 502);
  CHECK(layer(floats({2, 2})).sizes() == std::vector<int64_t>{2, 3});

  optim::Adam optimizer = hollow(optim::Adam());
  const Variable w(floats({2}));
  CHECK(outcome([&] { optimizer.build({w}); }) == 502);
  CHECK(outcome([&] { optimizer.apply({floats({2})}, {w}); }) == 502);
  CHECK(outcome([&] { optimizer.learning_rate(); }) == 502);
  CHECK(outcome([&] { optimizer.set_learning_rate(1); }) == 502);
  CHECK(outcome([&] { optimizer.learning_rate_variable(); }) == 502);
  CHECK(outcome([&] { optimizer.iterations(); }) == 502);
  CHECK(outcome([&] { optimizer.variables(); }) == 502);
  CHECK(outcome([&] { optimizer.name(); }) == 502);
  for (double bad : {-1.0, std::nan(""), HUGE_VAL}) {
    CHECK(outcome([&] { optim::Sgd sgd(bad); }) == 103);
    CHECK(outcome([&] { optim::Sgd(0.1).set_learning_rate(bad); }) == 103);
    CHECK(outcome([&] { nn::Dropout dropout(bad); }) == 103);
  }

  nn::Sequential model = hollow(nn::Sequential({nn::Dense(1)}));
  const Tensor x = floats({4, 2}), y = floats({4, 1});
  CHECK(outcome([&] { model.compile(regression()); }) == 502);
  CHECK(outcome([&] { model.fit(x, y); }) == 502);
  CHECK(outcome([&] { model.evaluate(x, y); }) == 502);
  CHECK(outcome([&] { model.predict(x); }) == 502);
  CHECK(outcome([&] { model.history(); }) == 502);
  CHECK(outcome([&] { model.optimizer(); }) == 502);
  CHECK(outcome([&] { model.summary(Shape{2, 2}); }) == 502);
  CHECK(outcome([&] { model.add(nn::Dense(1)); }) == 502);
  CHECK(outcome([&] { model.train_step({x, y}); }) == 502);

  nn::Mean mean = hollow(nn::Mean("mean"));
  CHECK(outcome([&] { mean.result(); }) == 502);
  CHECK(outcome([&] { mean.add(Tensor(), -1); }) > 0);
  CHECK(outcome([&] { mean.update(x, y); }) == 502);
}

TEST_CASE("public edge: models without what they need") {
  const Tensor x = floats({4, 2}), y = floats({4, 1});
  CHECK(outcome([&] {
          nn::Sequential m({nn::Dense(1)});
          m.fit(x, y);
        }) == 502);
  CHECK(outcome([&] { nn::Sequential m({Ref<nn::Layer>()}); }) == 103);
  CHECK(outcome([&] { nn::Sequential().predict(x).wait(); }) == 0);
  CHECK(outcome([&] {
          nn::Dense dense(2, {.kernel_initializer = {}, .bias_initializer = {}});
          dense(x);
        }) == 103);
  CHECK(outcome([&] {
          nn::Dense dense(2, {.activation = [](const Tensor&) { return Tensor(); }});
          dense.output_shape(Shape{2, 2});
        }) == 103);
  CHECK(outcome([&] { nn::Activation activation(nullptr); }) == 103);
  CHECK(outcome([&] { nn::Dense dense(kLeast); }) == 103);
  CHECK(outcome([&] { nn::Dense(1)(Tensor()); }) == 103);
  CHECK(outcome([&] { nn::Flatten()(Tensor::scalar(1.0f)); }) == 101);
  CHECK(outcome([&] { nn::SparseCategoricalCrossentropy()(Tensor(), Tensor()); }) == 103);
  CHECK(outcome([&] { nn::SparseCategoricalCrossentropy()(y, Tensor::scalar(1.0f)); }) > 0);
  CHECK(outcome([&] { nn::MeanSquaredError()(Tensor::scalar(1.0f), Tensor::scalar(1.0f)); }) > 0);
  CHECK(outcome([&] { nn::zeros()(Shape{-1}, DType::kF32).wait(); }) > 0);
  CHECK(outcome([&] { nn::zeros()(Shape{1}, kNoDType).wait(); }) > 0);
  CHECK(outcome([&] { nn::he_normal(1)(Shape{}, DType::kI32); }) == 102);
  nn::Sequential model({nn::Dense(1)});
  CHECK(outcome([&] { model.compile({.metrics = {Ref<nn::Metric>()}}); }) == 103);
  CHECK(outcome([&] { model.train_step({Tensor(), Tensor()}); }) > 0);
  CHECK(outcome([&] { model.train_step({Tensor::scalar(1.0f), y}); }) > 0);
  CHECK(outcome([&] { model.predict(x, kLeast); }) == 502);
  CHECK(outcome([&] { model.predict(x, kMost).wait(); }) == 0);
  CHECK(outcome([&] { model.predict(Tensor::from_strings({"a"}, {1})); }) > 0);
  CHECK(outcome([&] { model.output_shape(Shape{}, DType::kF32); }) == 101);
  CHECK(outcome([&] { model.output_shape(Shape{-3, 2}, DType::kF32); }) == 101);
  CHECK(outcome([&] { nn::Report()["loss"]; }) == 301);
  CHECK(outcome([&] { nn::History()["loss"]; }) == 301);
  CHECK(!Proof().json().empty());
  CHECK(!Proof().str().empty());
}

TEST_CASE("public edge: a model is busy while it is trained") {
  const Tensor x = draw({8, 2}, -1, 1, 1), y = draw({8, 1}, -1, 1, 2);
  nn::Sequential model({nn::Dense(1)}), other({nn::Dense(1)});
  model.compile(regression());
  other.compile(regression());
  std::vector<int> codes;
  size_t predicted = 0;
  nn::FitOptions options{.batch_size = 4, .epochs = 3, .verbose = false};
  options.on_epoch = [&](int64_t, const nn::Report& report) {
    const double loss = report["loss"];
    codes.push_back(outcome([&] { model.fit(x, y, {.verbose = false}); }));
    codes.push_back(outcome([&] { model.compile(regression()); }));
    std::thread([&] { codes.push_back(outcome([&] { model.evaluate(x, y); })); }).join();
    std::thread([&] { codes.push_back(outcome([&] { model.predict(x); })); }).join();
    // Reading the model is what on_epoch is for.
    CHECK(std::isfinite(model.evaluate(x, y)["loss"]));
    predicted += model.predict(x, 3).values<float>().size();
    other.fit(x, y, {.verbose = false});
    CHECK(report["loss"] == loss);
    return true;
  };
  const nn::History history = model.fit(x, y, options);
  CHECK(history.epochs.size() == 3);
  CHECK(predicted == 24);
  CHECK(codes == std::vector<int>(12, 502));
  CHECK(model.optimizer().iterations().read().item<int64_t>() == 6);
  // Neither a failure nor an exception of the user's leaves the model busy.
  options.on_epoch = [](int64_t, const nn::Report&) -> bool { throw std::runtime_error("mine"); };
  CHECK_THROWS_WITH_AS(model.fit(x, y, options), "mine", std::runtime_error);
  CHECK(outcome([&] { model.fit(x, Tensor()); }) == 502);
  CHECK(outcome([&] { model.compile(regression()); }) == 0);
  // Moved away meanwhile: an error, and the model lives where it went.
  nn::Sequential home;
  options.on_epoch = [&](int64_t, const nn::Report&) {
    home = std::move(model);
    return true;
  };
  CHECK(outcome([&] { model.fit(x, y, options); }) == 502);
  CHECK(home.history().epochs.size() == 1);
  CHECK(home.predict(x).sizes() == std::vector<int64_t>{8, 1});
}

TEST_CASE("public edge: several threads predict with one model [threads]") {
  const Tensor x = draw({8, 2}, -1, 1, 1);
  nn::Sequential model({nn::Dense(1)});
  const std::vector<float> expected = model.predict(x).values<float>();
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        wrong[t] +=
            model.predict(x, static_cast<int64_t>(t) + 2).values<float>() == expected ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("public edge: event files and profiles") {
  const std::string folder = test::binary_dir() + "/tests/public_edge_events";
  summary::FileWriter writer(folder);
  const summary::FileWriter taken = std::move(writer);
  CHECK(outcome([&] { writer.scalar("a", 1, 0); }) == 502);
  CHECK(outcome([&] { writer.path(); }) == 502);
  CHECK(outcome([&] { writer.flush(); }) == 502);
  CHECK(outcome([&] { writer.close(); }) == 502);
  writer = summary::FileWriter(folder);
  CHECK(outcome([&] { writer.scalar("", NAN, kLeast); }) == 0);
  CHECK(outcome([&] { writer.histogram("h", {-1.7e308, 0, 1.7e308}, 0); }) == 0);
  CHECK(outcome([&] { writer.histogram("h", {5e-324, 0}, 0, 7); }) == 0);
  CHECK(outcome([&] { writer.histogram("h", {}, 0, kMost); }) == 502);
  CHECK(outcome([&] { writer.histogram("h", {NAN}, 0); }) == 502);
  CHECK(outcome([&] { writer.image("i", {kMost, kMost, kMost, 4, {}}, 0); }) == 101);
  CHECK(outcome([&] { writer.image("i", {1, 1, 1, 1, {7}}, 0, kLeast); }) == 0);
  CHECK(outcome([&] { writer.text("t", {"a"}, {-1, -1}, 0); }) == 101);
  CHECK(outcome([&] { writer.text("t", {"a"}, {kMost, kMost}, 0); }) == 101);
  CHECK(outcome([&] { writer.graph({GraphNode()}); }) == 0);
  writer.close();
  CHECK(outcome([&] { writer.scalar("a", 1, 0); }) == 502);
  CHECK(outcome([&] { writer.close(); }) == 0);
  CHECK(outcome([] { summary::FileWriter none("/proc/nosuch/folder"); }) == 404);

  CHECK(outcome([] { profiler::stop(); }) == 502);
  CHECK(outcome([] { profiler::Profile::from_json("{}"); }) > 0);
  CHECK(outcome([] { profiler::Profile::from_json("[1, {\"a\": NaN"); }) > 0);
  const profiler::Profile empty;
  for (const std::string& text : {empty.str(), empty.json(true), empty.trace(), empty.html()}) {
    CHECK(!text.empty());
  }
  CHECK(outcome([&] { empty.write("/proc/nosuch"); }) == 404);
}

namespace {

/// Arguments that operations do not expect, the same in every run.
class Arguments {
 public:
  Arguments()
      : tensors_{Tensor::scalar(1.5f),
                 floats({3}),
                 floats({2, 3}),
                 floats({0}),
                 floats({2, 0, 3}),
                 floats({2, 2}, NAN),
                 floats({1, 2, 2, 1}),
                 Tensor::of<double>({1, -1}, {2}),
                 Tensor::of<int32_t>({-5, 0, 99}, {3}),
                 Tensor::of<int64_t>({kLeast, kMost}, {2}),
                 Tensor::scalar(int64_t{2}),
                 Tensor::of<uint32_t>({1, 2}, {2}),
                 Tensor::of<bool>({true, false, true}, {3}),
                 Tensor::of<std::complex<float>>({{1, 2}}, {1}),
                 Tensor::from_strings({"a", "b"}, {2})} {}

  size_t below(size_t count) { return random_() % count; }
  Tensor tensor() { return tensors_[below(tensors_.size())]; }
  int64_t integer() {
    const int64_t values[] = {kLeast, -kHuge, -2, -1, 0, 1, 2, 3, kHuge, kMost};
    return values[below(std::size(values))];
  }
  AttrValue value(const std::string& type) {
    static const char* const types[] = {"flag",  "integer", "real", "text",
                                        "dtype", "ints",    "shape"};
    const std::string as =
        below(16) == 0 ? types[below(std::size(types))] : type;  // seldom another
    const double reals[] = {NAN, HUGE_VAL, -1, 0, 0.5, 1e300};
    if (as == "flag") return below(2) == 0;
    if (as == "integer") return integer();
    if (as == "real") return reals[below(std::size(reals))];
    if (as == "dtype") return static_cast<DType>(below(24));
    std::vector<int64_t> numbers(below(4));
    for (int64_t& number : numbers) number = integer();
    if (as == "ints") return numbers;
    if (as == "shape") return Shape::of(numbers);
    return std::string(below(9), 'x');
  }

 private:
  std::mt19937 random_{20240601};
  std::vector<Tensor> tensors_;
};

}  // namespace

TEST_CASE("public edge: every operation with arguments it does not expect") {
  Arguments arguments;
  int calls = 0, refused = 0;
  for (const OpSpec& spec : op_specs()) {
    if (spec.has_regions || spec.ordered) continue;
    INFO(spec.name);
    for (int round = 0; round < 24; ++round) {
      const auto least = static_cast<size_t>(spec.min_inputs);
      const size_t most = spec.max_inputs < 0 ? least + 2 : static_cast<size_t>(spec.max_inputs);
      Tensors inputs(least + arguments.below(most - least + 1));
      if (arguments.below(16) == 0) inputs.emplace_back();
      const Tensor first = arguments.tensor();
      for (Tensor& input : inputs) input = arguments.below(3) == 0 ? arguments.tensor() : first;
      AttrList attrs;
      for (const auto& attr : spec.attrs) {
        if (arguments.below(2) == 0) attrs.emplace_back(attr.name, arguments.value(attr.type));
      }
      if (arguments.below(16) == 0) attrs.emplace_back("nosuch", int64_t{1});
      const bool with_gradient = arguments.below(4) == 0;
      const int code = outcome([&] {
        Tape tape;
        for (const Tensor& input : inputs) tape.watch(input);
        const Tensors outputs = apply_op(spec.name, inputs, attrs);
        for (const Tensor& output : outputs) output.wait();
        if (!with_gradient || inputs.empty()) return;
        for (const Tensor& grad : tape.gradients({outputs[0]}, inputs)) {
          if (grad.defined()) grad.wait();
        }
      });
      CHECK(code != 901);  // a mistake of the caller's, not of the library's
      refused += code != 0 ? 1 : 0;
      ++calls;
    }
  }
  CHECK(refused > calls / 3);
  CHECK(refused < calls);
  for (int number : {-1, 1 << 20}) {
    CHECK(outcome([&] { apply_op(number, std::vector<Tensor>{}); }) == 105);
  }
  CHECK(outcome([] { apply_op("", std::vector<Tensor>{}); }) == 105);
}

}  // namespace tracefire::testing
