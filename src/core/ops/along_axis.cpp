// SPDX-License-Identifier: Apache-2.0
// What walks along one axis and keeps its size: running sums and products, sorting.

#include "core/ops/math.h"
#include "core/ops/rows.h"

namespace tracefire {
namespace {

template <const TypeRule& rule>
Status infer_along(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, rule));
  int axis;
  TF_RETURN_IF_ERROR(normalize_axis_attr(node, "axis", inputs[0].shape.rank(), &axis));
  set_output(node, inputs[0].dtype, inputs[0].shape);
  return {};
}

Status infer_argsort(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(infer_along<kOrdered>(inputs, node));
  TF_RETURN_IF_ERROR(need_type_attr(*node, "dtype", kInteger));
  node->outputs[0].dtype = node->attrs.dtype("dtype");
  return {};
}

/// A running sum along the node's axis, its way or the other way round.
Value running_sum(GradContext& c, Value x, bool backwards) {
  const Attrs& attrs = c.node.attrs;
  return Math(c.b).op("cumsum", {x},
                      {{"axis", attrs.integer("axis")},
                       {"exclusive", attrs.flag("exclusive")},
                       {"reverse", attrs.flag("reverse") != backwards}});
}

std::vector<Value> grad_cumsum(GradContext& c) { return {running_sum(c, c.out_grads[0], true)}; }

/// dx[i] = sum over k from i on of g[k] y[k] / x[i]. Where the way from the start meets a zero, the
/// first one's quotient is the product without it, and all behind it have no influence.
std::vector<Value> grad_cumprod(GradContext& c) {
  Math m(c.b);
  const Value x = c.inputs[0], g = c.out_grads[0];
  const Attrs& attrs = c.node.attrs;
  const Attrs running = {{"axis", attrs.integer("axis")}, {"reverse", attrs.flag("reverse")}};
  const Value zero = m.scalar(0, x), one = m.scalar(1, x);
  const Value is_zero = m.equal(x, zero);
  const Value met = m.op("cumsum", {m.cast(is_zero, DType::kI32)}, running);
  const Value first = m.op("logical_and", {is_zero, m.equal(met, m.scalar(1, met))});
  const Value patched = m.select(first, one, x);
  Attrs same = running;
  same.set("exclusive", attrs.flag("exclusive"));
  const Value without = m.op("cumprod", {patched}, same);
  const Value at_first = running_sum(c, m.mul(g, without), true);
  const Value before = m.div(running_sum(c, m.mul(g, c.outputs[0]), true), x);
  const Value behind = m.op("greater", {met, m.scalar(0, met)});
  return {m.select(first, at_first, m.select(behind, zero, before))};
}

/// Products of growing stretches: each round doubles their length.
std::vector<Value> decompose_cumprod(Builder& b, const Node& node,
                                     const std::vector<Value>& inputs) {
  Math m(b);
  const DType dtype = m.dtype(inputs[0]);
  const int axis = static_cast<int>(node.attrs.integer("axis"));
  const Attrs along = {{"axes", std::vector<int64_t>{axis}}};
  Value x = m.cast(inputs[0], wide_type(dtype));
  const Value one = m.scalar(1, x);
  if (node.attrs.flag("reverse")) x = m.op("reverse", {x}, along);
  if (node.attrs.flag("exclusive")) x = m.shift_along(x, axis, 1, one);
  const int rounds = doublings(m.shape(x)[axis]);
  for (int i = 0; i < rounds; ++i) x = m.mul(x, m.shift_along(x, axis, int64_t{1} << i, one));
  if (node.attrs.flag("reverse")) x = m.op("reverse", {x}, along);
  return {m.cast(x, dtype)};
}

/// The order of top_k of all elements: the largest first, NaN before them, equal ones in their
/// order. From the other end it is the ascending order.
std::vector<Value> decompose_argsort(Builder& b, const Node& node,
                                     const std::vector<Value>& inputs) {
  Math m(b);
  const DType dtype = node.attrs.dtype("dtype");
  Value x = m.dtype(inputs[0]) == DType::kBool ? m.cast(inputs[0], DType::kI32) : inputs[0];
  const int last = m.shape(x).rank() - 1, axis = static_cast<int>(node.attrs.integer("axis"));
  std::vector<int64_t> swapped;
  for (int i = 0; i <= last; ++i) swapped.push_back(i == axis ? last : i == last ? axis : i);
  const Attrs swap = {{"perm", swapped}}, along = {{"axes", std::vector<int64_t>{last}}};
  if (axis != last) x = m.op("transpose", {x}, swap);
  const Dim size = m.shape(x)[last];
  const bool descending = node.attrs.flag("descending");
  if (!descending) x = m.op("reverse", {x}, along);
  Value order = m.op("top_k", {x}, {{"k", size.bound()}, {"dtype", dtype}});
  order.index = 1;
  if (!descending) {
    const Value end = m.shift(m.extent({size}, dtype), -1);
    order = m.sub(end, m.op("reverse", {order}, along));
  }
  return {axis == last ? order : m.op("transpose", {order}, swap)};
}

Value order_of(Math& m, Value x, const Attrs& attrs) {
  return m.op("argsort", {x},
              {{"axis", attrs.integer("axis")}, {"descending", attrs.flag("descending")}});
}

std::vector<Value> decompose_sort(Builder& b, const Node& node, const std::vector<Value>& inputs) {
  Math m(b);
  return {m.op("gather_along", {inputs[0], order_of(m, inputs[0], node.attrs)},
               {{"axis", node.attrs.integer("axis")}})};
}

/// The place of each element among the sorted ones is the order of their order.
std::vector<Value> grad_sort(GradContext& c) {
  Math m(c.b);
  const Attrs axis = {{"axis", c.node.attrs.integer("axis")}};
  const Value place = m.op("argsort", {order_of(m, c.inputs[0], c.node.attrs)}, axis);
  return {m.op("gather_along", {c.out_grads[0], place}, axis)};
}

OpRow along_axis(const char* name, const char* tf_name, std::vector<AttrSpec> attrs, InferFn infer,
                 Gradient gradient, CostFn cost, const char* doc) {
  return make_row(OpClass::kReduction, name, tf_name, {"x"}, std::move(attrs), infer, gradient,
                  cost, doc);
}

}  // namespace

std::vector<OpRow> along_axis_rows() {
  std::vector<OpRow> rows;
  const AttrSpec exclusive = {"exclusive", AttrType::kFlag, false, "y[i] leaves x[i] itself out"};
  rows.push_back(
      along_axis("cumsum", "Cumsum",
                 {{"axis", AttrType::kInteger, int64_t{0}, "the axis along which sums run"},
                  exclusive,
                  {"reverse", AttrType::kFlag, false, "sums run from the end"}},
                 infer_along<kReal>, {grad_cumsum, 0, 0}, input_cost<1>,
                 "Running sum along an axis; y has the shape of x."));
  rows.push_back(along_axis(
      "cumprod", "Cumprod",
      {{"axis", AttrType::kInteger, int64_t{0}, "the axis along which products run"},
       exclusive,
       {"reverse", AttrType::kFlag, false, "products run from the end"}},
      infer_along<kReal>, {grad_cumprod, 1, 1}, input_cost<1>,
      "Running product along an axis; y has the shape of x. Integers wrap around. The gradient is "
      "exact also where elements are 0."));
  rows.back().decompose = decompose_cumprod;
  const std::vector<AttrSpec> sorting = {
      {"axis", AttrType::kInteger, int64_t{-1}, "the axis along which elements are sorted"},
      {"descending", AttrType::kFlag, false, "largest first"}};
  std::vector<AttrSpec> arg_sorting = sorting;
  arg_sorting.push_back({"dtype", AttrType::kDType, DType::kI32, "element type of the indices"});
  rows.push_back(along_axis(
      "argsort", "ArgSort", arg_sorting, infer_argsort,
      no_gradient("an order is not a smooth function"), input_cost<16>,
      "Indices that sort x along an axis. Equal elements stay in their order, -0 equals 0, and NaN "
      "counts as the largest: last, or first where the order is descending."));
  rows.back().decompose = decompose_argsort;
  rows.push_back(along_axis("sort", "Sort", sorting, infer_along<kOrdered>, {grad_sort, 1, 0},
                            input_cost<16>,
                            "x sorted along an axis, in the order of argsort. Each element gets "
                            "the gradient of the place "
                            "it goes to."));
  rows.back().op_class = OpClass::kComposite;
  rows.back().decompose = decompose_sort;
  return rows;
}

}  // namespace tracefire
