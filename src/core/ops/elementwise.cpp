// SPDX-License-Identifier: Apache-2.0
// The element-wise family: unary and binary operations, selection and changes of type.

#include <iterator>

#include "core/ops/math.h"
#include "core/ops/rows.h"

namespace tracefire {
namespace {

Status infer_select(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kBoolean));
  TF_RETURN_IF_ERROR(need_type(inputs, 1, kPlain));
  TF_RETURN_IF_ERROR(need_same_type(inputs, 1, 2));
  TF_ASSIGN(Shape shape, broadcast_shapes({inputs[0].shape, inputs[1].shape, inputs[2].shape}));
  set_output(node, inputs[1].dtype, std::move(shape));
  return {};
}

std::vector<Value> grad_select(GradContext& c) {
  Math m(c.b);
  const Value g = c.out_grads[0], zero = m.scalar(0, g);
  const Value dx = m.unbroadcast(m.select(c.inputs[0], g, zero), m.shape(c.inputs[1]));
  const Value dy = m.unbroadcast(m.select(c.inputs[0], zero, g), m.shape(c.inputs[2]));
  return {Value{}, dx, dy};
}

Status infer_fma(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kFloating));
  TF_RETURN_IF_ERROR(need_same_type(inputs, 0, 2));
  TF_ASSIGN(Shape shape, broadcast_shapes({inputs[0].shape, inputs[1].shape, inputs[2].shape}));
  set_output(node, inputs[0].dtype, std::move(shape));
  return {};
}

std::vector<Value> grad_fma(GradContext& c) {
  Math m(c.b);
  const Value g = c.out_grads[0], x = c.inputs[0], y = c.inputs[1];
  const Value dx = m.unbroadcast(m.mul(g, y), m.shape(x));
  const Value dy = m.unbroadcast(m.mul(g, x), m.shape(y));
  return {dx, dy, m.unbroadcast(g, m.shape(c.inputs[2]))};
}

Status infer_cast(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kOrdered));
  TF_RETURN_IF_ERROR(need_type_attr(*node, "dtype", kOrdered));
  set_output(node, node->attrs.dtype("dtype"), inputs[0].shape);
  return {};
}

/// Only between floating types; elsewhere cast is a staircase.
std::vector<Value> grad_cast(GradContext& c) {
  const DType from = c.b.dtype(c.inputs[0]);
  if (!is_floating(from)) return {Value{}};
  return {Math(c.b).cast(c.out_grads[0], from)};
}

Status infer_bitcast(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kReal));
  TF_RETURN_IF_ERROR(need_type_attr(*node, "dtype", kReal));
  const DType to = node->attrs.dtype("dtype");
  if (dtype_size(to) != dtype_size(inputs[0].dtype)) {
    return error(ErrorCode::kDTypeMismatch, "input 0 is ", inputs[0].str(), " with ",
                 dtype_size(inputs[0].dtype), " bytes an element; ", dtype_name(to), " has ",
                 dtype_size(to), ". Both must be equally wide.");
  }
  set_output(node, to, inputs[0].shape);
  return {};
}

}  // namespace

void append_rows(std::vector<OpRow>* rows, std::vector<OpRow> more) {
  std::move(more.begin(), more.end(), std::back_inserter(*rows));
}

OpRow make_row(OpClass op_class, const char* name, const char* tf_name,
               std::vector<const char*> input_names, std::vector<AttrSpec> attrs, InferFn infer,
               Gradient gradient, CostFn cost, const char* doc) {
  const int count = static_cast<int>(input_names.size());
  return OpRow{.name = name,
               .tf_name = tf_name,
               .op_class = op_class,
               .arity = {count, count},
               .input_names = std::move(input_names),
               .output_names = {"y"},
               .attrs = std::move(attrs),
               .infer = infer,
               .gradient = gradient,
               .cost = cost,
               .doc = doc};
}

OpRow elementwise_row(const Elementwise& row, std::vector<const char*> input_names,
                      const char* output_name) {
  OpRow made = make_row(OpClass::kElementwise, row.name, row.tf_name, std::move(input_names), {},
                        row.infer, row.gradient, row.cost, row.doc);
  made.output_names = {output_name};
  return made;
}

std::vector<OpRow> elementwise_rows() {
  std::vector<OpRow> rows = unary_rows();
  append_rows(&rows, binary_rows());
  rows.push_back(elementwise_row(
      {"select",
       "SelectV2",
       infer_select,
       {grad_select, 1, 0},
       elementwise_cost<1>,
       "x where cond (bool) is true, y elsewhere; all three broadcast together. NaN in what is not "
       "taken does not spread."},
      {"cond", "x", "y"}, "z"));
  rows.push_back(elementwise_row(
      {"fma",
       "Fma",
       infer_fma,
       {grad_fma, 3, 0},
       elementwise_cost<2>,
       "x * y + z, rounded once as IEEE 754's fusedMultiplyAdd; all three broadcast together. "
       "Narrow floating types are computed in float32."},
      {"x", "y", "z"}, "w"));
  rows.push_back(make_row(
      OpClass::kElementwise, "cast", "Cast", {"x"},
      {{"dtype", AttrType::kDType, std::nullopt, "element type of the result"}}, infer_cast,
      {grad_cast, 0, 0}, elementwise_cost<1>,
      "x converted. Floating to integer cuts the fraction off, stops at the ends of the integer's "
      "range and turns NaN into 0; integer to integer keeps the low bits; to bool tells whether x "
      "is not 0; to a narrower floating type rounds to nearest even."));
  rows.push_back(
      make_row(OpClass::kElementwise, "bitcast", "Bitcast", {"x"},
               {{"dtype", AttrType::kDType, std::nullopt, "element type of the result, as wide"}},
               infer_bitcast, no_gradient("the bits of a number are not a smooth function of it"),
               traffic_cost, "The same bits read as another element type of the same width."));
  return rows;
}

}  // namespace tracefire
