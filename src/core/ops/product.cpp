// SPDX-License-Identifier: Apache-2.0
// The product family: matrix products.

#include "core/ops/math.h"
#include "core/ops/rows.h"

namespace tracefire {
namespace {

/// The leading sizes, without the matrix's own two.
Shape batch_shape(const Shape& shape) {
  return Shape(std::vector<Dim>(shape.dims().begin(), shape.dims().end() - 2));
}

/// Shape of the product of inputs 0 and 1; the element type is the caller's.
Status infer_product(const Types& inputs, DType dtype, Node* node) {
  for (size_t i = 0; i < 2; ++i) {
    if (inputs[i].shape.rank() >= 2) continue;
    return error(ErrorCode::kShapeMismatch, "input ", i, " is ", inputs[i].str(),
                 "; a matrix product needs at least two axes. Reshape a vector to (1, n) or "
                 "(n, 1).");
  }
  const Shape &a = inputs[0].shape, &b = inputs[1].shape;
  const bool ta = node->attrs.flag("transpose_a"), tb = node->attrs.flag("transpose_b");
  const Dim inner_a = a[a.rank() - (ta ? 2 : 1)], inner_b = b[b.rank() - (tb ? 1 : 2)];
  if (inner_a != inner_b) {
    return error(ErrorCode::kShapeMismatch, "a is ", inputs[0].str(), ta ? " transposed" : "",
                 " and b is ", inputs[1].str(), tb ? " transposed" : "", "; a's row length ",
                 inner_a.str(), " and b's column length ", inner_b.str(), " must be equal.");
  }
  TF_ASSIGN(Shape shape, broadcast_shapes(batch_shape(a), batch_shape(b)));
  shape.push_back(a[a.rank() - (ta ? 1 : 2)]);
  shape.push_back(b[b.rank() - (tb ? 2 : 1)]);
  set_output(node, dtype, shape);
  return {};
}

Status infer_matmul(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kReal));
  TF_RETURN_IF_ERROR(need_same_type(inputs, 0, 1));
  const std::string& precision = node->attrs.text("precision");
  if (precision != "default" && precision != "highest") {
    return error(ErrorCode::kBadAttribute, "attribute 'precision' is '", precision,
                 "'; it must be 'default' or 'highest'.");
  }
  return infer_product(inputs, inputs[0].dtype, node);
}

bool is_byte(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }
constexpr TypeRule kByte{is_byte, "int8 or uint8"};

Status infer_int_matmul(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kByte));
  TF_RETURN_IF_ERROR(need_type(inputs, 1, kByte));
  return infer_product(inputs, DType::kI32, node);
}

std::vector<Value> decompose_int_matmul(Builder& b, const Node& node,
                                        const std::vector<Value>& inputs) {
  Math m(b);
  return {m.op("matmul", {m.cast(inputs[0], DType::kI32), m.cast(inputs[1], DType::kI32)},
               {{"transpose_a", node.attrs.flag("transpose_a")},
                {"transpose_b", node.attrs.flag("transpose_b")}})};
}

/// With A = op(a), B = op(b), C = A B: dA = G B', dB = A' G; the transposes of the operands are
/// folded into those of the products.
std::vector<Value> grad_matmul(GradContext& c) {
  Math m(c.b);
  const Value g = c.out_grads[0], a = c.inputs[0], b = c.inputs[1];
  const bool ta = c.node.attrs.flag("transpose_a"), tb = c.node.attrs.flag("transpose_b");
  const Attr precision = c.node.attrs.text("precision");
  const auto product = [&](Value x, Value y, bool tx, bool ty) {
    return m.op("matmul", {x, y},
                {{"transpose_a", tx}, {"transpose_b", ty}, {"precision", precision}});
  };
  const Value da = ta ? product(b, g, tb, true) : product(g, b, false, !tb);
  const Value db = tb ? product(g, a, true, ta) : product(a, g, !ta, false);
  return {m.unbroadcast(da, m.shape(a)), m.unbroadcast(db, m.shape(b))};
}

Cost matmul_cost(const Node& node, const Types& inputs) {
  const Shape& a = inputs[0].shape;
  const Dim inner = a[a.rank() - (node.attrs.flag("transpose_a") ? 2 : 1)];
  const double length = inner.is_constant() ? static_cast<double>(inner.value()) : 0;
  return {2 * type_elements(node.outputs[0]) * length, traffic(node, inputs)};
}

}  // namespace

std::vector<OpRow> product_rows() {
  std::vector<OpRow> rows;
  const AttrSpec transpose_a = {"transpose_a", AttrType::kFlag, false,
                                "use the last two axes of a swapped"};
  const AttrSpec transpose_b = {"transpose_b", AttrType::kFlag, false,
                                "use the last two axes of b swapped"};
  const auto product = [](const char* name, const char* tf_name, std::vector<AttrSpec> attrs,
                          InferFn infer, Gradient gradient, const char* doc) {
    OpRow row = make_row(OpClass::kProduct, name, tf_name, {"a", "b"}, std::move(attrs), infer,
                         gradient, matmul_cost, doc);
    row.output_names = {"c"};
    return row;
  };
  rows.push_back(
      product("matmul", "MatMul",
              {transpose_a,
               transpose_b,
               {"precision", AttrType::kText, std::string("default"),
                "'default': the program's setting (TF32 allowed on GPUs unless it is turned off); "
                "'highest': IEEE float32"}},
              infer_matmul, {grad_matmul, 3, 0},
              "Matrix product a [..., M, K], b [..., K, N] -> c [..., M, N]; leading axes "
              "broadcast. Half types accumulate in float32, integers wrap around."));
  rows.back().tolerance = {.f64 = 1e-12, .f32 = 2e-5, .f16 = 4e-3, .bf16 = 3e-2};
  rows.push_back(
      product("int_matmul", "BatchMatMulV3", {transpose_a, transpose_b}, infer_int_matmul,
              no_gradient("integers have none"),
              "Matrix product of 8-bit integers (int8 or uint8, each operand its own) as int32: "
              "a [..., M, K], b [..., K, N] -> c [..., M, N]; leading axes broadcast. Exact as "
              "long as sums "
              "fit into int32, beyond that they wrap around."));
  rows.back().decompose = decompose_int_matmul;
  return rows;
}

}  // namespace tracefire
