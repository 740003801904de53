// SPDX-License-Identifier: Apache-2.0
// Loop programs: their text, and what binding sizes makes of their axes.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/compile/compile.h"
#include "core/graph/builder.h"

namespace tracefire {
namespace {

using Sizes = std::vector<int64_t>;
using Access = BoundLoop::Access;

LoopProgram loop_with(size_t inputs) {
  LoopProgram loop;
  for (size_t i = 0; i < inputs; ++i) loop.inputs.push_back({DType::kF32, Shape(), false});
  return loop;
}

BoundLoop bound_with(const Sizes& sizes, const std::vector<Sizes>& inputs) {
  return bind_loop(loop_with(inputs.size()), sizes, inputs);
}

TEST_CASE("bind_loop merges axes that all operands walk alike") {
  const BoundLoop flat = bound_with({4, 3, 2}, {{4, 3, 2}, {4, 3, 2}});
  CHECK(flat.elements == 24);
  CHECK(flat.sizes == Sizes{24});
  CHECK(flat.strides == std::vector<Sizes>{{1}, {1}});
  CHECK(flat.flat);

  const BoundLoop bias = bound_with({8, 4, 3}, {{8, 4, 3}, {4, 3}, {}});
  CHECK(bias.sizes == Sizes{8, 12});
  CHECK(bias.strides == std::vector<Sizes>{{12, 1}, {0, 1}, {0, 0}});
  CHECK(bias.access == std::vector<Access>{Access::kFlat, Access::kStrided, Access::kScalar});
  CHECK_FALSE(bias.flat);

  const BoundLoop column = bound_with({8, 3}, {{8, 1}, {3}});
  CHECK(column.sizes == Sizes{8, 3});
  CHECK(column.strides == std::vector<Sizes>{{1, 0}, {0, 1}});
}

TEST_CASE("bind_loop: sizes of 1, no elements, one element, reshaped operands") {
  const BoundLoop ones = bound_with({1, 5, 1}, {{1, 5, 1}, {1, 1}});
  CHECK(ones.sizes == Sizes{5});
  CHECK(ones.access == std::vector<Access>{Access::kFlat, Access::kScalar});
  CHECK(ones.axis_sizes == Sizes{1, 5, 1});
  CHECK(ones.axis_strides == Sizes{5, 1, 1});

  const BoundLoop empty = bound_with({0, 5}, {{0, 5}, {5}});
  CHECK(empty.elements == 0);

  const BoundLoop single = bound_with({}, {{}, {1, 1}});
  CHECK(single.elements == 1);
  CHECK(single.sizes.empty());
  CHECK(single.access == std::vector<Access>{Access::kFlat, Access::kFlat});

  // As many elements under another shape: the order is the loop's.
  const BoundLoop reshaped = bound_with({4, 6}, {{2, 12}, {24}});
  CHECK(reshaped.flat);
  CHECK(reshaped.sizes == Sizes{24});
}

TEST_CASE("bind_loop: a key is read whole and hinders nothing") {
  LoopProgram loop = loop_with(2);
  loop.inputs[1].is_key = true;
  const BoundLoop bound = bind_loop(loop, {4, 2}, {{4, 2}, {2}});
  CHECK(bound.sizes == Sizes{8});
  CHECK(bound.access == std::vector<Access>{Access::kFlat, Access::kScalar});
  CHECK(bound.flat);
}

/// Offset of the operand's element that element `linear` of the iteration space reads, by NumPy's
/// rules.
int64_t expected_offset(const Sizes& sizes, const Sizes& input, int64_t linear) {
  int64_t offset = 0, stride = 1;
  for (size_t i = 0; i < input.size(); ++i) {
    const size_t axis = sizes.size() - 1 - i, own = input.size() - 1 - i;
    const int64_t coordinate = linear % sizes[axis];
    linear /= sizes[axis];
    offset += input[own] == 1 ? 0 : coordinate * stride;
    stride *= input[own];
  }
  return offset;
}

TEST_CASE("bind_loop walks random broadcasts as NumPy does") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Sizes sizes;
    for (unsigned i = random() % 6; i-- > 0;) sizes.push_back(1 + random() % 4);
    std::vector<Sizes> inputs(1 + random() % 3);
    for (Sizes& input : inputs) {
      const size_t rank = random() % (sizes.size() + 1);
      input.assign(sizes.end() - static_cast<std::ptrdiff_t>(rank), sizes.end());
      for (int64_t& size : input) {
        if (random() % 3 == 0) size = 1;
      }
    }
    const BoundLoop bound = bound_with(sizes, inputs);
    REQUIRE(bound.sizes.size() <= sizes.size());
    for (int64_t element = 0; element < bound.elements; ++element) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        int64_t rest = element, strided = 0;
        for (size_t axis = bound.sizes.size(); axis-- > 0;) {
          strided += rest % bound.sizes[axis] * bound.strides[i][axis];
          rest /= bound.sizes[axis];
        }
        const int64_t expected = expected_offset(sizes, inputs[i], element);
        REQUIRE(strided == expected);
        if (bound.access[i] == Access::kFlat) REQUIRE(element == expected);
        if (bound.access[i] == Access::kScalar) REQUIRE(expected == 0);
      }
    }
  }
}

TEST_CASE("a loop's key tells constants apart bit by bit, and says nothing of sizes") {
  LoopProgram loop = loop_with(1);
  loop.shape = Shape{4};
  loop.body.push_back({.op = LoopOp::kConst, .imm = 0.0});
  loop.body.push_back({.op = LoopOp::kAdd, .a = 0, .b = 1});
  loop.outputs.push_back({2, DType::kF32});
  CHECK(loop.key() == "in float32; const float32 0x0p+0; add float32 r0 r1; out r2 float32");
  LoopProgram other = loop;
  other.shape = Shape{5, 6};
  CHECK(other.key() == loop.key());
  other.body[0].imm = -0.0;
  CHECK(other.key() != loop.key());
  other.body[0].imm = std::numeric_limits<double>::quiet_NaN();
  CHECK(other.key() == "in float32; const float32 nan; add float32 r0 r1; out r2 float32");
  other.body[0].imm = 0.1;
  LoopProgram close = other;
  close.body[0].imm = std::nextafter(0.1, 1.0);
  CHECK(close.key() != other.key());
}

/// A node of `row` on shape (4, 3) with the first element types that the row takes.
Result<GraphPtr> one_node(const OpRow& row) {
  const DType types[] = {DType::kF32, DType::kI32, DType::kBool};
  Status last;
  for (DType type : types) {
    Builder b(OpTable::instance(), row.name);
    std::vector<Value> inputs;
    for (int i = 0; i < row.arity.min; ++i) {
      const bool condition = std::string_view(row.name) == "select" && i == 0;
      inputs.push_back(b.param({condition ? DType::kBool : type, Shape{4, 3}}));
    }
    Attrs attrs;
    for (const AttrSpec& spec : row.attrs) {
      if (!spec.fallback && spec.type == AttrType::kDType) attrs.set(spec.name, type);
    }
    const auto value = b.add(OpTable::instance().id(row.name), inputs, attrs);
    last = value.status();
    if (!value.ok()) continue;
    b.result(*value);
    return b.finish();
  }
  return last;
}

TEST_CASE("every element-wise row has a loop") {
  int rows = 0;
  for (const OpRow& row : OpTable::instance().rows()) {
    if (row.op_class != OpClass::kElementwise) continue;
    CAPTURE(row.name);
    const auto graph = one_node(row);
    REQUIRE_MESSAGE(graph.ok(), graph.status().str());
    const auto loop = emit_loop(**graph, (*graph)->nodes[0]);
    REQUIRE(loop != nullptr);
    CHECK(loop->inputs.size() == static_cast<size_t>(row.arity.min));
    CHECK(loop->outputs.size() == 1);
    ++rows;
  }
  CHECK(rows > 40);
}

TEST_CASE("no loop for what is no plain number, or has too many axes to walk") {
  Builder b(OpTable::instance(), "g");
  const Value c = b.param({DType::kC64, Shape{4}}), i4 = b.param({DType::kI4, Shape{4}});
  Shape deep;
  for (int i = 0; i < 9; ++i) deep.push_back(2);
  const Value x = b.param({DType::kF32, deep}), y = b.param({DType::kF32, Shape{2}});
  b.result(b.op("stop_gradient", {c}));
  b.result(b.op("neg", {i4}));
  b.result(b.op("add", {x, y}));
  b.result(b.op("add", {x, x}));
  const GraphPtr graph = b.finish().value();
  CHECK(emit_loop(*graph, graph->nodes[0]) == nullptr);
  CHECK(emit_loop(*graph, graph->nodes[1]) == nullptr);
  CHECK(emit_loop(*graph, graph->nodes[2]) == nullptr);
  CHECK(emit_loop(*graph, graph->nodes[3]) != nullptr);  // walked flat
}

}  // namespace
}  // namespace tracefire
