// SPDX-License-Identifier: Apache-2.0
// Placement: what is said when an operation falls back, and what errors tell.
#include <doctest/doctest.h>

#include "core/base/log.h"
#include "core/compile/compile.h"
#include "core/graph/builder.h"

namespace tracefire {
namespace {

Device null_device() { return {register_device_kind("NULL"), 0}; }

/// Masks operations of the null device, and collects what is logged.
class Scene {
 public:
  explicit Scene(std::vector<std::string> masked) {
    Backends::instance().mask(null_device().kind, std::move(masked));
    set_log_sink([this](LogLevel, const std::string& line) { lines.push_back(line); });
  }
  ~Scene() {
    Backends::instance().mask(null_device().kind, {});
    set_log_sink({});
  }
  std::vector<std::string> lines;
};

GraphPtr graph_with(const char* op, int line) {
  Builder b(OpTable::instance(), "g");
  const Value x = b.param({DType::kF32, Shape{4}});
  b.set_context(make_location("train.py", line), "block/layer");
  b.result(b.op(op, {b.op("neg", {x})}));
  return b.finish().value();
}

CompileOptions on_null() {
  CompileOptions options;
  options.device = null_device();
  return options;
}

const Step& step_of(const Program& program, const char* op) {
  for (const Step& step : program.steps) {
    if (program.graph->nodes[static_cast<size_t>(step.node)].op == OpTable::instance().id(op)) {
      return step;
    }
  }
  FAIL("no step of ", op);
  return program.steps[0];
}

TEST_CASE("an operation that falls back says so once, with reason and the user's line") {
  Scene scene({"sin"});
  const ProgramPtr program = compile(graph_with("sin", 12), on_null()).value();
  CHECK(compile(graph_with("sin", 30), on_null()).ok());
  REQUIRE(scene.lines.size() == 1);
  CHECK(scene.lines[0].find("sin (block/layer) at train.py:12") != std::string::npos);
  CHECK(scene.lines[0].find("/CPU:0 instead of /NULL:0") != std::string::npos);
  CHECK(scene.lines[0].find("masked") != std::string::npos);

  const Step& fallen = step_of(*program, "sin");
  CHECK(fallen.placement == Placement::kFellBack);
  CHECK(fallen.device == Device{Device::kCpu, 0});
  CHECK(fallen.reason.find("masked") != std::string::npos);
  const Step& other = step_of(*program, "neg");
  CHECK(other.placement == Placement::kOnDevice);
  CHECK_FALSE(program->capturable);
}

TEST_CASE("what falls back is not fused away, so that reports name it") {
  Scene scene({"sin", "cos"});
  Builder b(OpTable::instance(), "g");
  const Value x = b.param({DType::kF32, Shape{4}});
  b.result(b.op("cos", {b.op("sin", {x})}));
  const ProgramPtr program = compile(b.finish().value(), on_null()).value();
  CHECK(step_of(*program, "sin").placement == Placement::kFellBack);
  CHECK(step_of(*program, "cos").placement == Placement::kFellBack);
}

TEST_CASE("by hand on the CPU, by design on the host: neither is a fall-back") {
  Scene scene({});
  Builder b(OpTable::instance(), "g");
  const Value x = b.param({DType::kF32, Shape{4}}), text = b.param({DType::kString, Shape{4}});
  b.set_context({}, "", Device{Device::kCpu, 0}, true);
  b.result(b.op("exp", {x}));
  b.set_context({}, "", null_device(), true);
  b.result(b.op("string_length", {text}));
  const ProgramPtr program = compile(b.finish().value(), on_null()).value();
  CHECK(step_of(*program, "exp").placement == Placement::kByUser);
  CHECK(step_of(*program, "string_length").placement == Placement::kHostByDesign);
  CHECK(step_of(*program, "string_length").device == Device{Device::kCpu, 0});
  CHECK(scene.lines.empty());

  // Where everything runs on the CPU, nothing is special about it.
  CompileOptions options;
  options.device = Device{Device::kCpu, 0};
  const ProgramPtr cpu = compile(graph_with("exp", 1), options).value();
  for (const Step& step : cpu->steps) CHECK(step.placement == Placement::kOnDevice);
}

TEST_CASE("the strict policy refuses with the refusals and the user's line") {
  Scene scene({"tanh"});
  CompileOptions options = on_null();
  options.policy = Policy::kStrict;
  const auto program = compile(graph_with("tanh", 77), options);
  REQUIRE_FALSE(program.ok());
  CHECK(program.status().code() == ErrorCode::kPlacementRefused);
  CHECK(program.status().message().find("tanh (block/layer) at train.py:77") != std::string::npos);
  CHECK(program.status().message().find("masked") != std::string::npos);
  CHECK(scene.lines.empty());
}

TEST_CASE("better candidates' refusals are kept in the step") {
  // On the CPU, a product of integers is refused by what serves floats first.
  Builder b(OpTable::instance(), "g");
  const Value x = b.param({DType::kI32, Shape{4, 4}});
  b.result(b.op("matmul", {x, x}));
  CompileOptions options;
  options.device = Device{Device::kCpu, 0};
  const ProgramPtr program = compile(b.finish().value(), options).value();
  const Step& step = step_of(*program, "matmul");
  DeviceBackend* cpu = Backends::instance().find(options.device).value();
  const KernelList& list = cpu->kernels(OpTable::instance().id("matmul"));
  const size_t chosen =
      static_cast<size_t>(std::find(list.begin(), list.end(), step.kernel) - list.begin());
  REQUIRE(chosen < list.size());
  REQUIRE(step.refusals.size() == chosen);
  for (size_t i = 0; i < chosen; ++i) {
    CHECK(step.refusals[i].rfind(std::string(list[i]->name()) + ": ", 0) == 0);
  }
}

}  // namespace
}  // namespace tracefire
