// SPDX-License-Identifier: Apache-2.0
// Types in, types out: what the rows infer and what they say about operands that do not fit.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/ops/op_table.h"

namespace tracefire {
namespace {

using Types = std::vector<ValueType>;

ValueType f32(std::initializer_list<Dim> dims) { return {DType::kF32, Shape(dims)}; }
ValueType i64(std::initializer_list<Dim> dims) { return {DType::kI64, Shape(dims)}; }
ValueType truth(std::initializer_list<Dim> dims) { return {DType::kBool, Shape(dims)}; }

Node make_node(const char* op, Attrs attrs) {
  Node node;
  node.op = OpTable::instance().id(op);
  node.attrs = std::move(attrs);
  return node;
}

/// "float32(3, 4), int64(3,)" or the whole error.
std::string infer(const char* op, const Types& inputs, Attrs attrs = {}) {
  Node node = make_node(op, std::move(attrs));
  const Status status = OpTable::instance().infer(inputs, &node);
  if (!status.ok()) return status.str();
  std::string text;
  for (const ValueType& type : node.outputs) text += (text.empty() ? "" : ", ") + type.str();
  return text;
}

Attrs shape_attr(std::initializer_list<Dim> dims) { return {{"shape", Shape(dims)}}; }

TEST_CASE("binary operations broadcast like NumPy, symbols included") {
  const Dim n = Dim::fresh("N");
  CHECK(infer("add", {f32({3, 1}), f32({4})}) == "float32(3, 4)");
  CHECK(infer("add", {f32({n, 10}), f32({10})}) == "float32(N, 10)");
  CHECK(infer("add", {f32({}), f32({n, 1, 2})}) == "float32(N, 1, 2)");
  CHECK(infer("less", {f32({n, 10}), f32({1, 10})}) == "bool(N, 10)");
  CHECK(infer("select", {truth({n, 1}), f32({}), f32({4})}) == "float32(N, 4)");
  CHECK(infer("add", {f32({0, 3}), f32({1, 3})}) == "float32(0, 3)");
}

TEST_CASE("binary operations say what does not fit") {
  const Dim n = Dim::fresh("N");
  CHECK(infer("add", {f32({3, 4}), f32({5})}) ==
        "[TF-E0101] add: shapes (3, 4) and (5,) do not broadcast: sizes 4 and 5 differ; sizes must "
        "be equal or 1, counted from the last axis. Reshape, transpose or broadcast_to one "
        "operand.");
  CHECK(infer("mul", {f32({n}), f32({7})}) ==
        "[TF-E0101] mul: shapes (N,) and (7,) do not broadcast: sizes N and 7 differ; a symbolic "
        "size is known to fit only itself and 1. Reshape, transpose or broadcast_to one operand.");
  CHECK(infer("add", {f32({2}), i64({2})}) ==
        "[TF-E0102] add: input 0 is float32(2,) and input 1 is int64(2,); both must have the same "
        "element type. Convert one of them with cast.");
  CHECK(infer("div", {i64({2}), i64({2})}) ==
        "[TF-E0102] div: input 0 is int64(2,); its element type must be a floating type (float64, "
        "float32, float16, …). Convert it with cast first.");
}

TEST_CASE("the table checks arity, attributes and names") {
  CHECK(infer("add", {f32({2})}) == "[TF-E0106] add: got 1 input; the operation takes 2 (x, y).");
  CHECK(infer("concat", {}, {{"axis", int64_t{0}}}) ==
        "[TF-E0106] concat: got 0 inputs; the operation takes 1 or more (x).");
  CHECK(infer("matmul", {f32({2, 3}), f32({3, 2})}, {{"transposed_a", true}}) ==
        "[TF-E0103] matmul: there is no attribute 'transposed_a'; the operation has transpose_a, "
        "transpose_b, precision. Did you mean 'transpose_a'?");
  CHECK(infer("transpose", {f32({2, 3})}) ==
        "[TF-E0103] transpose: attribute 'perm' (perm[i] is the axis of x that becomes axis i) is "
        "missing; it must be a list of integers.");
  CHECK(infer("softmax", {f32({2, 3})}, {{"axis", std::string("last")}}) ==
        "[TF-E0103] softmax: attribute 'axis' is a text; it must be an integer.");
  CHECK(unknown_op("matmull").str() ==
        "[TF-E0105] there is no operation 'matmull'; docs/ops.md lists all names. Did you mean "
        "'matmul'?");
  CHECK(unknown_op("qqqqqqqq").message() ==
        "there is no operation 'qqqqqqqq'; docs/ops.md lists all names.");
  CHECK_FALSE(OpTable::instance().find("").has_value());
}

TEST_CASE("errors name the scope and the user's line") {
  Node node = make_node("relu", {});
  node.name = "dense/relu";
  node.location = make_location("train.py", 12);
  const Status status = OpTable::instance().infer({truth({2})}, &node);
  CHECK(status.message().rfind("relu (dense/relu) at train.py:12: input 0 is bool(2,);", 0) == 0);
}

TEST_CASE("attributes are completed and normalised in the node") {
  Node node = make_node("argmax", {{"axis", int64_t{-2}}});
  REQUIRE(OpTable::instance().infer({f32({3, 4})}, &node).ok());
  CHECK(node.attrs.integer("axis") == 0);
  CHECK(node.attrs.dtype("dtype") == DType::kI64);
  CHECK_FALSE(node.attrs.flag("keepdims"));
  CHECK(node.outputs[0].str() == "int64(4,)");
  Node adam = make_node("adam_update", {{"epsilon", int64_t{1}}});
  REQUIRE(OpTable::instance()
              .infer({f32({3}), f32({3}), f32({3}), f32({3}), i64({}), f32({})}, &adam)
              .ok());
  CHECK(adam.attrs.real("epsilon") == 1.0);
}

TEST_CASE("reshape resolves one -1, also against symbols") {
  const Dim n = Dim::fresh("N"), m = Dim::fresh("M");
  CHECK(infer("reshape", {f32({n, 28, 28})}, shape_attr({-1, 784})) == "float32(N, 784)");
  CHECK(infer("reshape", {f32({n, 784})}, shape_attr({n, -1, 28})) == "float32(N, 28, 28)");
  CHECK(infer("reshape", {f32({n, m, 2})}, shape_attr({m, 2, -1})) == "float32(M, 2, N)");
  CHECK(infer("reshape", {f32({n * 4})}, shape_attr({-1, 2})) == "float32((N * 2), 2)");
  CHECK(infer("reshape", {f32({0, 3})}, shape_attr({3, 0})) == "float32(3, 0)");
  CHECK(infer("reshape", {f32({2, 3})}, shape_attr({-1, 4})).rfind("[TF-E0101] reshape:", 0) == 0);
  CHECK(infer("reshape", {f32({2, 3})}, shape_attr({-1, -1})).rfind("[TF-E0103]", 0) == 0);
  CHECK(infer("reshape", {f32({n, 3})}, shape_attr({m, 3})).rfind("[TF-E0101]", 0) == 0);
  CHECK(infer("reshape", {f32({0})}, shape_attr({-1, 0})).rfind("[TF-E0101]", 0) == 0);
}

TEST_CASE("slice cuts at the size and keeps symbols") {
  const Dim n = Dim::fresh("N", 100);
  const auto slice = [](ValueType x, Shape starts, Shape limits, std::vector<int64_t> strides) {
    return infer("slice", {x}, {{"starts", starts}, {"limits", limits}, {"strides", strides}});
  };
  CHECK(slice(f32({5, 4}), {1, 0}, {9, 4}, {2, 3}) == "float32(2, 2)");
  CHECK(slice(f32({5}), {7}, {9}, {}) == "float32(0,)");
  CHECK(slice(f32({n, 4}), {0, 1}, {n, 3}, {}) == "float32(N, 2)");
  CHECK(slice(f32({n}), {n - 1}, {n}, {}) == "float32(1,)");
  CHECK(slice(f32({n}), {0}, {500}, {}) == "float32(N,)");
  CHECK(slice(f32({5}), {0}, {5}, {0}).rfind("[TF-E0103] slice: attribute 'strides'", 0) == 0);
}

TEST_CASE("pad, concat and cumsum of symbolic sizes") {
  const Dim n = Dim::fresh("N");
  CHECK(infer("pad", {f32({n}), f32({})}, {{"low", Shape{1}}, {"high", Shape{2}}}) ==
        "float32((N + 3),)");
  CHECK(infer("pad", {f32({3}), f32({})},
              {{"low", Shape{1}}, {"high", Shape{-2}}, {"interior", std::vector<int64_t>{2}}}) ==
        "float32(6,)");
  CHECK(infer("concat", {f32({n, 2}), f32({1, 2})}, {{"axis", int64_t{0}}}) ==
        "float32((N + 1), 2)");
  CHECK(infer("concat", {f32({n, 2}), f32({1, 3})}, {{"axis", int64_t{0}}})
            .rfind("[TF-E0101] concat: input 0 is float32(N, 2) and input 1 is float32(1, 3)", 0) ==
        0);
}

TEST_CASE("matmul broadcasts leading axes and checks inner sizes") {
  const Dim n = Dim::fresh("N");
  CHECK(infer("matmul", {f32({n, 784}), f32({784, 10})}) == "float32(N, 10)");
  CHECK(infer("matmul", {f32({2, 1, 3, 4}), f32({5, 4, 6})}) == "float32(2, 5, 3, 6)");
  CHECK(infer("matmul", {f32({4, 3}), f32({6, 4})},
              {{"transpose_a", true}, {"transpose_b", true}}) == "float32(3, 6)");
  CHECK(infer("matmul", {f32({n, 784}), f32({512, 10})}) ==
        "[TF-E0101] matmul: a is float32(N, 784) and b is float32(512, 10); a's row length 784 and "
        "b's column length 512 must be equal.");
  CHECK(infer("matmul", {f32({4}), f32({4, 2})}).rfind("[TF-E0101] matmul: input 0 is", 0) == 0);
}

TEST_CASE("indexing rows") {
  const Dim n = Dim::fresh("N");
  CHECK(infer("gather", {f32({7, 3}), i64({n, 2})}) == "float32(N, 2, 3)");
  CHECK(infer("scatter_add", {f32({n, 3}), i64({n})}, shape_attr({7, 3})) == "float32(7, 3)");
  CHECK(infer("one_hot", {i64({n})}, {{"depth", int64_t{10}}, {"axis", int64_t{0}}}) ==
        "float32(10, N)");
  CHECK(infer("dynamic_slice", {f32({60000, 784}), i64({})}, {{"size", Shape{128}}}) ==
        "float32(128, 784)");
  CHECK(infer("dynamic_slice", {f32({60, 784}), i64({})}, {{"size", Shape{128}}})
            .rfind("[TF-E0103] dynamic_slice: attribute 'size' is (128,)", 0) == 0);
  CHECK(infer("softmax_cross_entropy", {f32({n, 10}), i64({n})}) == "float32(N,)");
  CHECK(infer("softmax_cross_entropy", {f32({n, 10}), i64({10})}) ==
        "[TF-E0101] softmax_cross_entropy: logits are float32(N, 10) and labels are int64(10,); "
        "labels must have the shape of logits without the last axis.");
}

TEST_CASE("top_k takes at most what a symbolic axis has") {
  const Dim n = Dim::fresh("N", 100);
  CHECK(infer("top_k", {f32({2, 9})}, {{"k", int64_t{3}}}) == "float32(2, 3), int32(2, 3)");
  CHECK(infer("top_k", {f32({n})}, {{"k", int64_t{200}}}) == "float32(N,), int32(N,)");
  CHECK(infer("top_k", {f32({2, 9})}, {{"k", int64_t{10}}}) ==
        "[TF-E0103] top_k: attribute 'k' is 10 for a last axis of size 9; it must be from 0 to "
        "that size.");
}

TEST_CASE("unique makes a new bounded symbol, or a fixed size") {
  Node node = make_node("unique", {});
  REQUIRE(OpTable::instance().infer({i64({50})}, &node).ok());
  REQUIRE(node.outputs.size() == 3);
  CHECK(node.outputs[0].shape[0].is_symbol());
  CHECK(node.outputs[0].shape[0].bound() == 50);
  CHECK(node.outputs[1].str() == "int64(50,)");
  CHECK(node.outputs[2].str() == "int64()");
  CHECK(infer("unique", {i64({50})}, {{"size", int64_t{4}}}) == "int64(4,), int64(50,), int64()");
}

TEST_CASE("axes are checked against the rank") {
  CHECK(infer("softmax", {f32({2, 3})}, {{"axis", int64_t{2}}}) ==
        "[TF-E0104] softmax: attribute 'axis' names axis 2 of a tensor with 2 axes; it must be "
        "from -2 to 1.");
  CHECK(infer("cumsum", {f32({})}) ==
        "[TF-E0104] cumsum: attribute 'axis' names axis 0 of a tensor with 0 axes; a scalar has "
        "none.");
  CHECK(infer("reduce_sum", {f32({2, 3})}, {{"axes", std::vector<int64_t>{1, -1}}}) ==
        "[TF-E0104] reduce_sum: attribute 'axes' names axis 1 twice; each axis may be named once.");
  CHECK(infer("transpose", {f32({2, 3})}, {{"perm", std::vector<int64_t>{0, 0}}}) ==
        "[TF-E0104] transpose: attribute 'perm' is (0, 0) for a tensor with 2 axes; it must name "
        "each axis once.");
}

TEST_CASE("every row is complete") {
  std::vector<std::string_view> names;
  for (const OpRow& row : OpTable::instance().rows()) {
    CAPTURE(row.name);
    CHECK(bool(row.infer));
    CHECK(bool(row.cost));
    CHECK(std::string_view(row.doc).size() > 3);
    CHECK(std::string_view(row.tf_name).size() > 1);
    CHECK(bool(row.gradient.fn) != bool(row.gradient.why_not));
    CHECK((row.op_class == OpClass::kControl || !row.output_names.empty() || row.effect[0] != 0));
    CHECK(row.size_output < static_cast<int>(row.output_names.size()));
    for (const AttrSpec& attr : row.attrs) CHECK(std::string_view(attr.doc).size() > 3);
    names.push_back(row.name);
  }
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

/// A value for an attribute that must be given.
Attr some_value(AttrType type) {
  switch (type) {
    case AttrType::kFlag:
      return true;
    case AttrType::kInteger:
      return int64_t{0};
    case AttrType::kReal:
      return 1.0;
    case AttrType::kText:
      return std::string();
    case AttrType::kDType:
      return DType::kF32;
    case AttrType::kInts:
      return std::vector<int64_t>{0};
    case AttrType::kShape:
      return Shape{2};
  }
  return false;
}

TEST_CASE("every row takes operands of any element types, or says with a code why not") {
  const DType all[] = {DType::kBool, DType::kI4,  DType::kI32,    DType::kI64,
                       DType::kU8,   DType::kU64, DType::kF8E4M3, DType::kF16,
                       DType::kF32,  DType::kF64, DType::kC64,    DType::kString};
  const auto refused_well = [](const Status& status) {
    const ErrorCode code = status.code();
    return code == ErrorCode::kDTypeMismatch || code == ErrorCode::kShapeMismatch ||
           code == ErrorCode::kBadAttribute || code == ErrorCode::kBadAxis ||
           code == ErrorCode::kBadArity;
  };
  for (const OpRow& row : OpTable::instance().rows()) {
    if (row.op_class == OpClass::kControl || row.effect[0] != 0) continue;
    Attrs attrs;
    for (const AttrSpec& attr : row.attrs) {
      if (!attr.fallback) attrs.set(attr.name, some_value(attr.type));
    }
    const auto check = [&](const Types& inputs, bool differ) {
      Node node = make_node(row.name, attrs);
      const Status status = OpTable::instance().infer(inputs, &node);
      std::string given = row.name;
      for (const ValueType& type : inputs) given += " " + type.str();
      CHECK_MESSAGE((status.ok() || refused_well(status)), given << ": " << status.str());
      // Nothing element by element converts by itself.
      const bool mixes = row.op_class == OpClass::kElementwise && inputs.size() == 2 && differ;
      if (mixes) CHECK_MESSAGE(!status.ok(), given);
      if (mixes && !status.ok()) CHECK_MESSAGE(status.code() == ErrorCode::kDTypeMismatch, given);
    };
    const int most = row.arity.max < 0 ? row.arity.min + 1 : std::min(row.arity.max, 4);
    for (int count = row.arity.min; count <= most; ++count) {
      for (const DType dtype : all) {
        const Types same(static_cast<size_t>(count), ValueType{dtype, Shape{2}});
        check(same, false);
        for (size_t odd = 0; odd < same.size(); ++odd) {
          for (const DType other : all) {
            if (other == dtype) continue;
            Types inputs = same;
            inputs[odd].dtype = other;
            check(inputs, true);
          }
        }
      }
    }
  }
}

TEST_CASE("costs count operations and bytes of bound sizes") {
  const OpTable& ops = OpTable::instance();
  const Dim n = Dim::fresh("N");
  Builder b(ops);
  const Value x = b.param(f32({n, 784})), w = b.param(f32({784, 10}));
  const Value y = b.op("matmul", {x, w});
  b.result(b.op("relu", {y}));
  const GraphPtr graph = b.finish().value();
  DimEnv env;
  env.set(n.symbol(), 128);
  const Cost product = node_cost(*graph, graph->nodes[0], env);
  CHECK(product.flops == 2.0 * 128 * 784 * 10);
  CHECK(product.bytes == 4.0 * (128 * 784 + 784 * 10 + 128 * 10));
  CHECK(node_cost(*graph, graph->nodes[1], env).flops == 1280);
}

}  // namespace
}  // namespace tracefire
