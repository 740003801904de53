// SPDX-License-Identifier: Apache-2.0
// The reduction family: one result from many elements along axes.

#include <algorithm>

#include "core/ops/math.h"
#include "core/ops/rows.h"

namespace tracefire {
namespace {

/// Shape without `axes`, or with 1 in their place.
Shape reduced_shape(const Shape& shape, const std::vector<int>& axes, bool keepdims) {
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool gone = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!gone) {
      result.push_back(shape[i]);
    } else if (keepdims) {
      result.push_back(1);
    }
  }
  return result;
}

template <const TypeRule& rule>
Status infer_reduce(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, rule));
  const Shape& shape = inputs[0].shape;
  std::vector<int> axes;
  TF_RETURN_IF_ERROR(normalize_axes_attr(node, "axes", shape.rank(), &axes));
  set_output(node, inputs[0].dtype, reduced_shape(shape, axes, node->attrs.flag("keepdims")));
  return {};
}

using Grads = std::vector<Value>;

/// A value in the result's shape repeated over x's shape.
Value spread(GradContext& c, Value reduced) {
  Math m(c.b);
  const Shape full = m.shape(c.inputs[0]);
  return m.broadcast_to(m.restore_axes(reduced, full, c.node.attrs.ints("axes")), full);
}

Grads grad_sum(GradContext& c) { return {spread(c, c.out_grads[0])}; }

Shape reduced_part(GradContext& c) {
  Shape part;
  const Shape& full = c.b.shape(c.inputs[0]);
  for (int64_t axis : c.node.attrs.ints("axes")) part.push_back(full[static_cast<int>(axis)]);
  return part;
}

Grads grad_mean(GradContext& c) {
  Math m(c.b);
  const Value g = c.out_grads[0];
  const Value count = m.extent(reduced_part(c), m.dtype(g));
  return {spread(c, m.div(g, count))};
}

/// All elements equal to the extreme share the gradient.
Grads grad_extreme(GradContext& c) {
  Math m(c.b);
  const Value x = c.inputs[0], g = c.out_grads[0];
  const Shape full = m.shape(x);
  const std::vector<int64_t> axes = c.node.attrs.ints("axes");
  const Value taken = m.equal(x, m.restore_axes(c.outputs[0], full, axes));
  const Value ties = m.sum(m.cast(taken, m.dtype(g)), axes, true);
  const Value share = m.div(m.restore_axes(g, full, axes), ties);
  return {m.select(taken, share, m.scalar(0, g))};
}

/// g * (product of the other elements), exact where one element is 0.
Grads grad_prod(GradContext& c) {
  Math m(c.b);
  const Value x = c.inputs[0], g = c.out_grads[0];
  const Shape full = m.shape(x);
  const std::vector<int64_t> axes = c.node.attrs.ints("axes");
  const Value zero = m.scalar(0, x), one = m.scalar(1, x);
  const Value is_zero = m.equal(x, zero);
  const Value zeros = m.sum(m.cast(is_zero, m.dtype(x)), axes, true);
  const Value nonzero_x = m.select(is_zero, one, x);
  const Value rest = m.op("reduce_prod", {nonzero_x}, {{"axes", axes}, {"keepdims", true}});
  const Value only_zero = m.op("logical_and", {is_zero, m.equal(zeros, one)});
  const Value others =
      m.select(m.equal(zeros, zero), m.div(rest, nonzero_x), m.select(only_zero, rest, zero));
  return {m.mul(m.restore_axes(g, full, axes), others)};
}

Status infer_arg(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kOrdered));
  TF_RETURN_IF_ERROR(need_type_attr(*node, "dtype", kInteger));
  int axis;
  TF_RETURN_IF_ERROR(normalize_axis_attr(node, "axis", inputs[0].shape.rank(), &axis));
  if (inputs[0].shape[axis] == Dim(0)) {
    return error(ErrorCode::kShapeMismatch, "input 0 is ", inputs[0].str(), " and axis ", axis,
                 " is empty; there is no largest or smallest of nothing.");
  }
  set_output(node, node->attrs.dtype("dtype"),
             reduced_shape(inputs[0].shape, {axis}, node->attrs.flag("keepdims")));
  return {};
}

Status check_k(const Node& node, Dim classes) {
  const int64_t k = node.attrs.integer("k");
  const bool too_many = classes.is_constant() && k > classes.value();
  if (k >= 0 && !too_many) return {};
  return error(ErrorCode::kBadAttribute, "attribute 'k' is ", k, " for a last axis of size ",
               classes.str(), "; it must be from 0 to that size.");
}

Status need_last_axis(const Types& inputs) {
  if (inputs[0].shape.rank() > 0) return {};
  return error(ErrorCode::kShapeMismatch, "input 0 is ", inputs[0].str(),
               ", a scalar; it must have at least one axis.");
}

Status infer_top_k(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kReal));
  TF_RETURN_IF_ERROR(need_type_attr(*node, "dtype", kInteger));
  TF_RETURN_IF_ERROR(need_last_axis(inputs));
  Shape shape = inputs[0].shape;
  const int last = shape.rank() - 1;
  TF_RETURN_IF_ERROR(check_k(*node, shape[last]));
  shape[last] = min_dim(node->attrs.integer("k"), shape[last]);
  node->outputs = {{inputs[0].dtype, shape},
                   {node->attrs.dtype("dtype"), shape}};
  return {};
}

/// Each value's gradient goes to the place it came from: rows are laid end to end, so that one
/// index names row and column.
Grads grad_top_k(GradContext& c) {
  Math m(c.b);
  if (!c.out_grads[0].valid()) return {Value{}};
  const Shape full = m.shape(c.inputs[0]), picked = m.shape(c.outputs[1]);
  const int last = full.rank() - 1;
  const Dim rows = split_at(full, last).outer;
  const Shape table = {rows, picked[last]};
  const Value row = m.iota(DType::kI64, table, 0);
  const Value start = m.mul(row, m.extent({full[last]}, DType::kI64));
  const Value column = m.cast(m.reshape(c.outputs[1], table), DType::kI64);
  const Value flat = m.op("scatter_add", {m.reshape(c.out_grads[0], table), m.add(start, column)},
                          {{"shape", Shape{rows * full[last]}}, {"axis", int64_t{0}}});
  return {m.reshape(flat, full)};
}

Status infer_in_top_k(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kFloating));
  TF_RETURN_IF_ERROR(need_type(inputs, 1, kInteger));
  TF_RETURN_IF_ERROR(need_rank(inputs, 0, 2, "predictions"));
  TF_RETURN_IF_ERROR(need_rank(inputs, 1, 1, "targets"));
  if (inputs[0].shape[0] != inputs[1].shape[0]) {
    return error(ErrorCode::kShapeMismatch, "predictions are ", inputs[0].str(),
                 " and targets are ", inputs[1].str(), "; both must have equally many rows.");
  }
  if (node->attrs.integer("k") < 0) TF_RETURN_IF_ERROR(check_k(*node, inputs[0].shape[1]));
  set_output(node, DType::kBool, inputs[1].shape);
  return {};
}

std::vector<AttrSpec> reduce_attrs() {
  return {{"axes", AttrType::kInts, std::nullopt, "axes to reduce; empty: none, y is x"},
          {"keepdims", AttrType::kFlag, false, "keep reduced axes with size 1"}};
}

OpRow reduction(const char* name, const char* tf_name, std::vector<AttrSpec> attrs, InferFn infer,
                Gradient gradient, const char* doc) {
  return make_row(OpClass::kReduction, name, tf_name, {"x"}, std::move(attrs), infer, gradient,
                  input_cost<1>, doc);
}

void add_arg_rows(std::vector<OpRow>* rows) {
  const std::vector<AttrSpec> attrs = {
      {"axis", AttrType::kInteger, int64_t{-1}, "the axis searched"},
      {"dtype", AttrType::kDType, DType::kI64, "element type of the index"},
      {"keepdims", AttrType::kFlag, false, "keep the axis with size 1"}};
  const Gradient none = no_gradient("the place of an extreme is not a smooth function");
  rows->push_back(reduction("argmax", "ArgMax", attrs, infer_arg, none,
                            "Index of the largest element along an axis, the first of equal ones. "
                            "NaN counts as the largest."));
  rows->push_back(reduction("argmin", "ArgMin", attrs, infer_arg, none,
                            "Index of the smallest element along an axis, the first of equal ones. "
                            "NaN counts as the smallest."));
}

void add_top_k_rows(std::vector<OpRow>* rows) {
  OpRow top_k = reduction(
      "top_k", "TopKV2",
      {{"k", AttrType::kInteger, std::nullopt, "how many to take"},
       {"dtype", AttrType::kDType, DType::kI32, "element type of the indices"}},
      infer_top_k, {grad_top_k, 0, 2},
      "The k largest elements along the last axis, largest first, and their indices; of equal ones "
      "the lower index first. NaN counts as the largest. A symbolic axis that turns out shorter "
      "gives all it has.");
  top_k.output_names = {"values", "indices"};
  top_k.cost = input_cost<4>;
  rows->push_back(std::move(top_k));
  OpRow in_top_k = reduction(
      "in_top_k", "InTopKV2", {{"k", AttrType::kInteger, std::nullopt, "how many places count"}},
      infer_in_top_k, no_gradient("truth values have none"),
      "predictions [rows, classes], targets [rows] -> bool [rows]: fewer than k classes of the row "
      "have a larger prediction than the target's. false where the target is no class, its "
      "prediction is not finite, or a prediction of the row is NaN.");
  in_top_k.arity = {2, 2};
  in_top_k.input_names = {"predictions", "targets"};
  rows->push_back(std::move(in_top_k));
}

}  // namespace

std::vector<OpRow> reduction_rows() {
  std::vector<OpRow> rows;
  const Gradient truth = no_gradient("truth values have none");
  rows.push_back(reduction("reduce_sum", "Sum", reduce_attrs(), infer_reduce<kReal>,
                           {grad_sum, 0, 0},
                           "Sum over axes; 0 where they are empty. Half types are summed in "
                           "float32, integers wrap around."));
  rows.push_back(reduction("reduce_mean", "Mean", reduce_attrs(), infer_reduce<kFloating>,
                           {grad_mean, 0, 0},
                           "Arithmetic mean over axes; NaN where they are empty. Half types are "
                           "summed in float32."));
  rows.push_back(reduction("reduce_max", "Max", reduce_attrs(), infer_reduce<kReal>,
                           {grad_extreme, 1, 1},
                           "Largest element over axes, NaN where one is NaN; -inf, or the smallest "
                           "integer, where they are empty. Equal ones share the gradient."));
  rows.push_back(reduction("reduce_min", "Min", reduce_attrs(), infer_reduce<kReal>,
                           {grad_extreme, 1, 1},
                           "Smallest element over axes, NaN where one is NaN; inf, or the largest "
                           "integer, where they are empty. Equal ones share the gradient."));
  rows.push_back(reduction("reduce_prod", "Prod", reduce_attrs(), infer_reduce<kReal>,
                           {grad_prod, 1, 0},
                           "Product over axes; 1 where they are empty. Half types are multiplied "
                           "in float32, integers wrap around."));
  rows.push_back(reduction("reduce_any", "Any", reduce_attrs(), infer_reduce<kBoolean>, truth,
                           "true where any element over axes is; false where they are empty."));
  rows.push_back(reduction("reduce_all", "All", reduce_attrs(), infer_reduce<kBoolean>, truth,
                           "true where all elements over axes are; true where they are empty."));
  append_rows(&rows, along_axis_rows());
  add_arg_rows(&rows);
  add_top_k_rows(&rows);
  return rows;
}

}  // namespace tracefire
