// SPDX-License-Identifier: Apache-2.0
// A whole train step compiled, planned and replayed on the null device: no hardware, no numbers.
#include <doctest/doctest.h>

#include "backends/api/arena.h"
#include "core/base/settings.h"
#include "core/grad/grad.h"
#include "null/null_model.h"

namespace tracefire {
namespace {

/// 784-128-10 with relu, dropout, cross-entropy and Adam; the batch is a symbol.
struct TrainStep {
  Dim batch = Dim::fresh("batch", 4096);
  GraphPtr graph;

  TrainStep() {
    Builder b(OpTable::instance(), "train_step");
    const Value images = b.param({DType::kF32, Shape{batch, 784}}, "images");
    const Value labels = b.param({DType::kI32, Shape{batch}}, "labels");
    const Value key = slot(&b, DType::kU32, Shape{2}, "seed");
    const Value step = slot(&b, DType::kI32, Shape(), "step");
    const Value rate = b.param({DType::kF32, Shape()}, "learning_rate");
    const Value w1 = slot(&b, DType::kF32, Shape{784, 128}, "w1");
    const Value b1 = slot(&b, DType::kF32, Shape{128}, "b1");
    const Value w2 = slot(&b, DType::kF32, Shape{128, 10}, "w2");
    const Value b2 = slot(&b, DType::kF32, Shape{10}, "b2");
    const std::vector<Value> weights = {w1, b1, w2, b2};
    std::vector<std::pair<Value, Value>> moments;
    for (Value w : weights) {
      const Shape shape = b.shape(w);
      const Value mean = slot(&b, DType::kF32, shape, "mean");
      moments.push_back({mean, slot(&b, DType::kF32, shape, "square")});
    }

    const Value hidden = b.op("relu", {b.op("add", {b.op("matmul", {images, w1}), b1})});
    const Value drawn = b.op("random_uniform", {key}, {{"shape", b.shape(hidden)}});
    const Value kept = b.op("less", {drawn, b.scalar(0.8, DType::kF32)});
    const Value dropped = b.op("select", {kept, b.op("div", {hidden, b.scalar(0.8, DType::kF32)}),
                                          b.scalar(0, DType::kF32)});
    const Value logits = b.op("add", {b.op("matmul", {dropped, w2}), b2});
    const Value losses = b.op("softmax_cross_entropy", {logits, labels});
    const Value loss = b.op("reduce_mean", {losses}, {{"axes", std::vector<int64_t>{0}}});
    const std::vector<Value> grads = gradients(&b, {loss}, {Value{}}, weights).value();
    b.set_context({}, "");

    const Value next = b.op("add", {step, b.scalar(1, DType::kI32)});
    b.result(loss);
    b.result(next, step.index);
    b.result(b.op("add", {key, b.scalar(1, DType::kU32)}), key.index);
    for (size_t i = 0; i < weights.size(); ++i) {
      const auto [mean, square] = moments[i];
      const Value now = b.op("adam_update", {weights[i], grads[i], mean, square, next, rate});
      b.result(now, weights[i].index);
      b.result({now.node, 1}, mean.index);
      b.result({now.node, 2}, square.index);
    }
    graph = b.finish().value();
  }
};

TEST_CASE("the train step is few kernels, writes every variable in place and can be captured") {
  const TrainStep train;
  const ProgramPtr program = compile(train.graph, on_null()).value();
  INFO(program->str());
  CHECK(program->capturable);
  CHECK(count(*program, "matmul") == 5);  // no gradient for the images
  CHECK(count(*program, "adam_update") == 4);
  CHECK(count(*program, "softmax_cross_entropy") == 1);
  CHECK(kernels(*program) <= 21);
  for (size_t r = 0; r < program->results.size(); ++r) {
    const int32_t slot = program->result_slots[r];
    if (slot < 0) continue;
    CHECK(program->values[static_cast<size_t>(program->results[r])].in_slot == slot);
  }
  // The loss, and with it every variable, depends on the check of the labels.
  REQUIRE(program->result_checks[0].size() == 1);
  const Step& check = program->steps[static_cast<size_t>(program->result_checks[0][0])];
  CHECK(program->graph->nodes[static_cast<size_t>(check.node)].op ==
        OpTable::instance().id("softmax_cross_entropy"));

  CompileOptions plain = on_null();
  plain.disabled_passes = {"simplify", "fuse"};
  const ProgramPtr unfused = compile(train.graph, plain).value();
  CHECK(kernels(*unfused) >= 2 * kernels(*program));
}

TEST_CASE("without composite kernels the pieces are fused, and nothing leaves the device") {
  const TrainStep train;
  const Masked masked({"adam_update", "softmax_cross_entropy", "softmax_cross_entropy_grad",
                       "softmax", "log_softmax", "random_uniform"});
  const ProgramPtr program = compile(train.graph, on_null()).value();
  INFO(program->str());
  CHECK(count(*program, "copy") == 0);
  CHECK(program->capturable);
  CHECK(kernels(*program) <= 32);
  for (size_t r = 0; r < program->results.size(); ++r) {
    const int32_t slot = program->result_slots[r];
    if (slot < 0) continue;
    CHECK(program->values[static_cast<size_t>(program->results[r])].in_slot == slot);
  }
}

TEST_CASE("an epoch is a handful of replays over one arena") {
  const TrainStep train;
  DimEnv env;
  env.set(train.batch.symbol(), 128);
  const RunRequest request = request_of(compile(train.graph, on_null()).value(), *train.graph, env);
  const NullCounts before = null_backend().counts();
  REQUIRE(Executor::instance().run_repeated(request, 468).ok());
  const NullCounts after = null_backend().counts();
  CHECK(after.replays - before.replays <= 12);
  CHECK(after.launches == before.launches);
  CHECK(after.captured_kernels - before.captured_kernels > 0);

  // Values that do not live at once share bytes.
  const ArenaPlan plan = plan_arena(*request.program, null_device(), request.env);
  size_t sum = 0;
  for (size_t v = 0; v < plan.offsets.size(); ++v) {
    if (plan.offsets[v] < 0) continue;
    const ValueType& type = request.program->values[v].type;
    sum += static_cast<size_t>(request.env.eval(type.shape.elements())) * dtype_size(type.dtype);
  }
  CHECK(plan.bytes < sum);
}

TEST_CASE("instance_cache_size: the sets of sizes that were used last stay bound") {
  const TrainStep train;
  const ProgramPtr program = compile(train.graph, on_null()).value();
  const ProgramPtr other = compile(train.graph, on_null()).value();
  Executor& executor = Executor::instance();
  const auto bound = [&](const ProgramPtr& which, int64_t batch) {
    DimEnv env;
    env.set(train.batch.symbol(), batch);
    return std::weak_ptr<BoundProgram>(executor.bind(which, env).value());
  };
  REQUIRE(set_setting("instance_cache_size", "2").ok());
  const auto foreign = bound(other, 1), first = bound(program, 1), second = bound(program, 2);
  CHECK(bound(program, 1).lock() == first.lock());
  const auto third = bound(program, 3);
  CHECK(second.expired());  // `first` was asked for after it
  CHECK_FALSE(first.expired());
  CHECK_FALSE(third.expired());
  CHECK_FALSE(foreign.expired());

  // Buffers go with them.
  for (int64_t batch : {10, 20, 30, 40}) {
    DimEnv env;
    env.set(train.batch.symbol(), batch);
    REQUIRE(executor.run(request_of(program, *train.graph, env)).ok());
    if (batch == 20) CHECK(first.expired());
  }
  const uint64_t held = null_backend().memory().in_use;
  for (int64_t batch : {39, 38}) bound(program, batch);
  CHECK(null_backend().memory().in_use < held);
  reset_settings();
}

}  // namespace
}  // namespace tracefire
