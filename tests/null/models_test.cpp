// SPDX-License-Identifier: Apache-2.0
// Models with regions, embeddings and data checks on the null device, whole and with operations
// that it refuses.
#include <doctest/doctest.h>

#include "core/base/event.h"
#include "core/base/log.h"
#include "core/grad/grad.h"
#include "null/null_model.h"

namespace tracefire {
namespace {

constexpr DType kF32 = DType::kF32;

Attrs axes(std::vector<int64_t> list) { return {{"axes", std::move(list)}}; }

GraphPtr region(
    const char* name, const std::vector<ValueType>& types,
    const std::function<std::vector<Value>(Builder&, const std::vector<Value>&)>& make) {
  Builder b(OpTable::instance(), name);
  std::vector<Value> params;
  for (const ValueType& type : types) params.push_back(b.param(type));
  for (Value value : make(b, params)) b.result(value);
  return b.finish().value();
}

/// A recurrent cell turned until a counter is used up, then one of two heads.
GraphPtr recurrent_model(Dim batch) {
  const ValueType counter{DType::kI32, Shape()}, state{kF32, Shape{batch, 32}};
  const ValueType weights{kF32, Shape{32, 32}};
  const GraphPtr more =
      region("more", {counter, state, weights}, [](Builder& b, const std::vector<Value>& p) {
        return std::vector<Value>{b.op("greater", {p[0], b.scalar(0, DType::kI32)})};
      });
  const GraphPtr turn =
      region("turn", {counter, state, weights}, [](Builder& b, const std::vector<Value>& p) {
        const Value next = b.op("tanh", {b.op("matmul", {p[1], p[2]})});
        return std::vector<Value>{b.op("sub", {p[0], b.scalar(1, DType::kI32)}), next, p[2]};
      });
  const auto head = [&](const char* name, const char* activation) {
    return region(name, {state, weights}, [=](Builder& b, const std::vector<Value>& p) {
      return std::vector<Value>{b.op(activation, {b.op("matmul", {p[0], p[1]})})};
    });
  };
  Builder b(OpTable::instance(), "recurrent");
  const Value turns = b.param(counter, "turns"), x = b.param(state, "x");
  const Value cell = slot(&b, kF32, Shape{32, 32}, "cell");
  const Value out = slot(&b, kF32, Shape{32, 32}, "out");
  const Value loop =
      b.op("while", {turns, x, cell}, {{"max_iterations", int64_t{100}}}, {more, turn});
  const Value last{loop.node, 1};
  const Value large =
      b.op("greater", {b.op("reduce_max", {last}, axes({0, 1})), b.scalar(0.5, kF32)});
  b.result(b.op("if", {large, last, out}, {}, {head("clip", "sigmoid"), head("keep", "relu")}));
  return b.finish().value();
}

/// Words to vectors, their mean to classes: a train step of plain gradient descent.
struct TextStep {
  Dim batch = Dim::fresh("batch", 1024);
  GraphPtr graph;

  TextStep() {
    Builder b(OpTable::instance(), "text_step");
    const Value words = b.param({DType::kI32, Shape{batch, 20}}, "words");
    const Value labels = b.param({DType::kI32, Shape{batch}}, "labels");
    const Value table = slot(&b, kF32, Shape{5000, 64}, "table");
    const Value dense = slot(&b, kF32, Shape{64, 4}, "dense");
    const Value vectors = b.op("gather", {table, words});
    const Value mean = b.op("reduce_mean", {vectors}, axes({1}));
    b.set_context(make_location("train.py", 7), "dense");
    const Value logits = b.op("matmul", {mean, dense});
    b.set_context({}, "");
    const Value loss =
        b.op("reduce_mean", {b.op("softmax_cross_entropy", {logits, labels})}, axes({0}));
    const std::vector<Value> grads = gradients(&b, {loss}, {Value{}}, {table, dense}).value();
    b.result(loss);
    for (size_t i = 0; i < 2; ++i) {
      const Value w = i == 0 ? table : dense;
      b.result(b.op("sub", {w, b.op("mul", {grads[i], b.scalar(0.1, kF32)})}), w.index);
    }
    b.result(b.op("softmax", {logits}));
    graph = b.finish().value();
  }

  DimEnv env() const {
    DimEnv env;
    env.set(batch.symbol(), 32);
    return env;
  }
};

TEST_CASE("a model with a loop and a choice: regions are programs of the same device") {
  const Dim batch = Dim::fresh("batch", 256);
  const GraphPtr graph = recurrent_model(batch);
  const ProgramPtr program = compile(graph, on_null()).value();
  INFO(program->str());
  CHECK(count(*program, StepKind::kWhile) == 1);
  CHECK(count(*program, StepKind::kIf) == 1);
  CHECK(count(*program, "matmul") == 3);  // the cell's and one of each head
  CHECK(count(*program, Placement::kFellBack) == 0);
  for (const Step& step : program->steps) {
    if (step.kind != StepKind::kWhile && step.kind != StepKind::kIf) continue;
    REQUIRE(step.regions.size() == 2);
    for (const ProgramPtr& part : step.regions) CHECK(part->capturable);
  }
  // The host decides, so the whole is no captured graph; it says so.
  CHECK_FALSE(program->capturable);
  CHECK_FALSE(program->why_not_capturable.empty());

  DimEnv env;
  env.set(batch.symbol(), 8);
  const RunRequest request = request_of(program, *graph, env);
  const NullCounts before = null_backend().counts();
  REQUIRE(Executor::instance().run(request).ok());
  const NullCounts after = null_backend().counts();
  // Two answers come back, the loop's and the choice's: zeros, which stop the one and keep.
  CHECK(after.copies_out - before.copies_out == 2);
}

TEST_CASE("an embedding with softmax: its gradient is scattered, and a wrong word is noticed") {
  const TextStep text;
  const ProgramPtr program = compile(text.graph, on_null()).value();
  INFO(program->str());
  CHECK(program->capturable);
  CHECK(count(*program, "gather") == 1);
  CHECK(count(*program, "scatter_add") == 1);
  CHECK(count(*program, "softmax") == 1);
  CHECK(count(*program, "matmul") == 3);
  // The table is written in place, and whatever depends on words depends on their check.
  for (size_t r = 1; r < 3; ++r) {
    CHECK(program->values[static_cast<size_t>(program->results[r])].in_slot ==
          program->result_slots[r]);
    CHECK(program->result_checks[r].size() >= 2);
  }
  const NullCounts before = null_backend().counts();
  REQUIRE(
      Executor::instance().run_repeated(request_of(program, *text.graph, text.env()), 100).ok());
  const NullCounts after = null_backend().counts();
  CHECK(after.replays - before.replays <= 3);
  CHECK(after.launches == before.launches);
}

TEST_CASE("operations that the device refuses: counted one by one, or an error") {
  const TextStep text;
  const Masked masked({"matmul", "scatter_add"});
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, const std::string& line) { lines.push_back(line); });
  const auto soft = compile(text.graph, on_null());
  CompileOptions options = on_null();
  options.policy = Policy::kStrict;
  const auto strict = compile(text.graph, options);
  set_log_sink({});

  REQUIRE(soft.ok());
  const Program& program = **soft;
  INFO(program.str());
  CHECK(count(program, Placement::kFellBack) == 4);  // three products and the scatter
  CHECK(lines.size() == 2);                          // each operation says so once
  CHECK_FALSE(program.capturable);
  for (const Step& step : program.steps) {
    if (step.placement == Placement::kFellBack) {
      CHECK(step.device == Device{Device::kCpu, 0});
      CHECK(step.reason.find("masked") != std::string::npos);
    } else if (step.kind == StepKind::kKernel) {
      CHECK(step.device == null_device());
    }
  }

  // Each run is reported with what ran there, and why; words of zeros are good ones.
  int products = 0, scatters = 0;
  Events::Subscriber subscriber;
  subscriber.run = [&](const RunEvent& event) {
    for (const StepRecord& step : event.program->steps) {
      if (step.placement != Placement::kFellBack) continue;
      CHECK(step.reason.find("masked") != std::string::npos);
      products += step.op == "matmul";
      scatters += step.op == "scatter_add";
    }
  };
  const int listening = Events::instance().subscribe(subscriber);
  const bool ran = Executor::instance().run(request_of(*soft, *text.graph, text.env())).ok();
  Events::instance().unsubscribe(listening);
  REQUIRE(ran);
  CHECK(products == 3);
  CHECK(scatters == 1);

  REQUIRE_FALSE(strict.ok());
  CHECK(strict.status().code() == ErrorCode::kPlacementRefused);
  CHECK(strict.status().message().find("matmul (dense) at train.py:7") != std::string::npos);
}

}  // namespace
}  // namespace tracefire
