// SPDX-License-Identifier: Apache-2.0
// Order, arena and the pass manager.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "backends/api/arena.h"
#include "core/compile/compile.h"
#include "core/compile/plan/plan.h"
#include "core/graph/builder.h"
#include "core/graph/text.h"

namespace tracefire {
namespace {

Device null_device() { return {register_device_kind("NULL"), 0}; }

CompileOptions on_null() {
  CompileOptions options;
  options.device = null_device();
  return options;
}

/// A program whose values are written and read as random steps say; only what plan_arena reads.
Program random_program(std::mt19937* random) {
  Program program;
  const int32_t steps = 2 + static_cast<int32_t>((*random)() % 30);
  for (int32_t s = 0; s < steps; ++s) {
    Step step;
    step.device = null_device();
    if ((*random)() % 10 == 0) step.kind = StepKind::kIf;
    program.steps.push_back(step);
    for (unsigned k = (*random)() % 3; k-- > 0;) {
      ProgramValue value;
      value.type = {DType::kF32, Shape{static_cast<int64_t>((*random)() % 5000)}};
      value.device = (*random)() % 8 == 0 ? Device{Device::kCpu, 0} : null_device();
      value.first_step = s;
      value.last_step = s + static_cast<int32_t>((*random)() % static_cast<unsigned>(steps - s));
      if ((*random)() % 12 == 0) value.in_slot = 0;
      if ((*random)() % 12 == 0) value.type.dtype = DType::kString;
      program.values.push_back(value);
    }
  }
  return program;
}

TEST_CASE("plan_arena: what lives at once does not overlap, and the rest shares") {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const Program program = random_program(&random);
    const ArenaPlan plan = plan_arena(program, null_device(), DimEnv());
    REQUIRE(plan.offsets.size() == program.values.size());
    size_t end = 0, peak = 0, sum = 0;
    std::vector<size_t> live(program.steps.size(), 0);
    for (size_t a = 0; a < program.values.size(); ++a) {
      const ProgramValue& x = program.values[a];
      const bool regions = program.steps[static_cast<size_t>(x.first_step)].kind == StepKind::kIf;
      const bool elsewhere =
          x.device != null_device() || x.in_slot >= 0 || regions || x.type.dtype == DType::kString;
      REQUIRE((plan.offsets[a] < 0) == elsewhere);
      if (elsewhere) continue;
      const int64_t bytes = std::max<int64_t>(x.type.shape[0].value() * 4, 1);
      REQUIRE(plan.offsets[a] % 256 == 0);
      end = std::max(end, static_cast<size_t>(plan.offsets[a] + bytes));
      const size_t rounded = static_cast<size_t>((bytes + 255) / 256 * 256);
      sum += rounded;
      for (int32_t s = x.first_step; s <= x.last_step; ++s) live[static_cast<size_t>(s)] += rounded;
      for (size_t b = 0; b < a; ++b) {
        const ProgramValue& y = program.values[b];
        if (plan.offsets[b] < 0 || x.first_step > y.last_step || y.first_step > x.last_step) {
          continue;
        }
        const int64_t other = std::max<int64_t>(y.type.shape[0].value() * 4, 1);
        const bool apart = plan.offsets[a] + bytes <= plan.offsets[b] ||
                           plan.offsets[b] + other <= plan.offsets[a];
        REQUIRE(apart);
      }
    }
    for (size_t bytes : live) peak = std::max(peak, bytes);
    REQUIRE(end <= plan.bytes);
    // Never worse than one place each; near the least that any plan could take.
    REQUIRE(plan.bytes <= sum);
    REQUIRE(plan.bytes <= peak * 3 / 2 + 256);
  }
}

TEST_CASE("plan_arena: a large gradient takes no more than what lives at once") {
  // Values of the way forward live until the way back reads them.
  constexpr int32_t kDepth = 20000;
  Program program;
  program.steps.resize(2 * kDepth);
  for (Step& step : program.steps) step.device = null_device();
  size_t least = 0;
  for (int32_t s = 0; s < kDepth; ++s) {
    ProgramValue value;
    value.type = {DType::kF32, Shape{int64_t{64} * (1 + s % 7)}};
    value.device = null_device();
    value.first_step = s;
    value.last_step = 2 * kDepth - 1 - s;
    program.values.push_back(value);
    least += 256 * static_cast<size_t>(1 + s % 7);
  }
  for (int32_t s = kDepth; s + 1 < 2 * kDepth; ++s) {  // and gradients for one step each
    ProgramValue value = program.values[static_cast<size_t>(2 * kDepth - 1 - s)];
    value.first_step = s;
    value.last_step = s + 1;
    program.values.push_back(value);
  }
  const ArenaPlan plan = plan_arena(program, null_device(), DimEnv());
  CHECK(plan.bytes <= least + 2 * 7 * 256);
  std::map<int64_t, size_t> live;  // by offset
  std::vector<std::vector<size_t>> begins(program.steps.size()), ends(program.steps.size() + 1);
  for (size_t v = 0; v < program.values.size(); ++v) {
    begins[static_cast<size_t>(program.values[v].first_step)].push_back(v);
    ends[static_cast<size_t>(program.values[v].last_step) + 1].push_back(v);
  }
  for (size_t s = 0; s < begins.size(); ++s) {
    for (size_t v : ends[s]) live.erase(plan.offsets[v]);
    for (size_t v : begins[s]) {
      const auto end_of = [&](size_t value) {
        return plan.offsets[value] + 4 * program.values[value].type.shape[0].value();
      };
      const auto next = live.lower_bound(plan.offsets[v]);
      REQUIRE((next == live.end() || next->first >= end_of(v)));
      REQUIRE((next == live.begin() || end_of(std::prev(next)->second) <= plan.offsets[v]));
      live[plan.offsets[v]] = v;
    }
  }
}

TEST_CASE("plan_arena leaves results, aliases and unread sizes to the executor") {
  Builder b(OpTable::instance(), "g");
  const Dim n = Dim::fresh("N");
  const Value x = b.param({DType::kI32, Shape{n}});
  const Value u = b.op("unique", {x});
  const Value doubled = b.op("add", {u, u});
  const Value total = b.op("reduce_sum", {doubled}, {{"axes", std::vector<int64_t>{0}}});
  const Value product = b.op("reduce_prod", {x}, {{"axes", std::vector<int64_t>{0}}});
  b.result(b.op("mul", {total, product}));
  const ProgramPtr program = compile(b.finish().value(), on_null()).value();
  DimEnv env;
  env.set(n.symbol(), 1000);
  const ArenaPlan plan = plan_arena(*program, null_device(), env);
  int placed = 0;
  for (size_t v = 0; v < program->values.size(); ++v) {
    const ProgramValue& value = program->values[v];
    const bool known = env.eval(value.type.shape.elements()) >= 0;
    const bool result =
        std::count(program->results.begin(), program->results.end(), static_cast<int32_t>(v)) > 0;
    CAPTURE(v);
    CHECK((plan.offsets[v] >= 0) == (known && !result && value.param < 0));
    placed += plan.offsets[v] >= 0;
  }
  CHECK(placed == 4);  // inverse, count, sum and product
  CHECK(program->size_reads.size() == 1);
}

/// A random graph of sums over earlier values, with slots.
GraphPtr random_graph(std::mt19937* random) {
  Builder b(OpTable::instance(), "random");
  const ValueType type{DType::kF32, Shape{8}};
  std::vector<Value> values;
  for (int i = 0; i < 4; ++i) values.push_back(b.param(type, "", ParamKind::kSlot));
  for (int i = 0; i < 40; ++i) {
    const Value x = values[(*random)() % values.size()], y = values[(*random)() % values.size()];
    values.push_back((*random)() % 3 == 0 ? b.op("cumsum", {x}) : b.op("add", {x, y}));
  }
  for (int slot = 0; slot < 4; ++slot) {
    b.result(values[4 + (*random)() % 40], slot);
  }
  b.result(values.back());
  return b.finish().value();
}

TEST_CASE("schedule: every node once, after what it reads") {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    const GraphPtr graph = random_graph(&random);
    const std::vector<int32_t> order = schedule(*graph);
    REQUIRE(order.size() == graph->nodes.size());
    std::vector<bool> done(graph->nodes.size(), false);
    for (int32_t index : order) {
      REQUIRE_FALSE(done[static_cast<size_t>(index)]);
      for (Value value : graph->nodes[static_cast<size_t>(index)].inputs) {
        if (!value.is_param()) REQUIRE(done[static_cast<size_t>(value.node)]);
      }
      done[static_cast<size_t>(index)] = true;
    }
  }
}

TEST_CASE("slots are overwritten only after their last reader") {
  std::mt19937 random(12);
  int in_place = 0;
  for (int round = 0; round < 100; ++round) {
    const ProgramPtr program = compile(random_graph(&random), on_null()).value();
    for (size_t v = 0; v < program->values.size(); ++v) {
      const int32_t slot = program->values[v].in_slot;
      if (slot < 0) continue;
      ++in_place;
      const int32_t old = program->params[static_cast<size_t>(slot)];
      const size_t at = static_cast<size_t>(program->values[v].first_step);
      for (size_t s = at; s < program->steps.size(); ++s) {
        const Step& step = program->steps[s];
        const bool reads = std::count(step.inputs.begin(), step.inputs.end(), old) > 0;
        if (s > at) REQUIRE_FALSE(reads);
        if (s == at && reads) REQUIRE(step.kernel->in_place());
      }
      REQUIRE(std::count(program->results.begin(), program->results.end(), old) == 0);
    }
  }
  CHECK(in_place > 50);
}

GraphPtr small_graph() {
  Builder b(OpTable::instance(), "small");
  const Value x = b.param({DType::kF32, Shape{4}});
  b.result(b.op("exp", {b.op("neg", {b.op("stop_gradient", {x})})}));
  return b.finish().value();
}

TEST_CASE("passes run in order, can be left out, and are watched") {
  CompileOptions options = on_null();
  std::vector<std::string> seen, changed;
  options.observer = [&](const char* pass, const Graph&, bool did) {
    seen.push_back(pass);
    if (did) changed.push_back(pass);
  };
  CHECK(compile(small_graph(), options).ok());
  CHECK(seen == std::vector<std::string>{"raise_softmax", "inline_calls", "place", "decompose",
                                         "simplify", "fuse"});
  CHECK(changed == std::vector<std::string>{"place", "simplify", "fuse"});

  seen.clear();
  options.disabled_passes = {"fuse", "raise_softmax"};
  const ProgramPtr program = compile(small_graph(), options).value();
  CHECK(seen == std::vector<std::string>{"inline_calls", "place", "decompose", "simplify"});
  CHECK(program->steps.size() == 2);

  seen.clear();
  options.disabled_passes = {};
  options.optimize = false;
  CHECK(compile(small_graph(), options).ok());
  CHECK(seen == std::vector<std::string>{"inline_calls", "place", "decompose"});
}

TEST_CASE("a pass that lies or breaks the graph is stopped") {
  const Pass liar = {"liar", [](const GraphPtr& graph, const CompileOptions&, bool*) {
                       auto other = std::make_shared<Graph>(*graph);
                       other->name = "other";
                       return Result<GraphPtr>(GraphPtr(other));
                     }};
  const auto lied = run_passes({liar}, small_graph(), on_null());
  REQUIRE_FALSE(lied.ok());
  CHECK(lied.status().code() == ErrorCode::kInternal);

  const Pass breaker = {"breaker", [](const GraphPtr& graph, const CompileOptions&, bool* changed) {
                          auto other = std::make_shared<Graph>(*graph);
                          other->nodes[1].outputs[0].shape = Shape{5};
                          *changed = true;
                          return Result<GraphPtr>(GraphPtr(other));
                        }};
  const auto broken = run_passes({breaker}, small_graph(), on_null());
  REQUIRE_FALSE(broken.ok());
  CHECK(broken.status().code() == ErrorCode::kBadGraph);
  CHECK(broken.status().message().rfind("after pass breaker: ", 0) == 0);
}

TEST_CASE("an unknown device is an error") {
  CompileOptions options;
  options.device = Device{Device::kGpu, 200};
  const auto program = compile(small_graph(), options);
  REQUIRE_FALSE(program.ok());
  CHECK(program.status().code() == ErrorCode::kUnknownDevice);
}

}  // namespace
}  // namespace tracefire
