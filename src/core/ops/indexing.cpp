// SPDX-License-Identifier: Apache-2.0
// Movement by numbers that are data: gather, scatter_add, one_hot and slices at a computed place.

#include "core/ops/math.h"
#include "core/ops/rows.h"

namespace tracefire {
namespace {

/// `outer` with its axis `axis` replaced by all axes of `indices`.
Shape indexed_shape(const Shape& outer, int axis, const Shape& indices) {
  Shape result;
  for (int i = 0; i < axis; ++i) result.push_back(outer[i]);
  for (Dim dim : indices) result.push_back(dim);
  for (int i = axis + 1; i < outer.rank(); ++i) result.push_back(outer[i]);
  return result;
}

Status infer_gather(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kAnything));
  TF_RETURN_IF_ERROR(need_type(inputs, 1, kInteger));
  int axis;
  TF_RETURN_IF_ERROR(normalize_axis_attr(node, "axis", inputs[0].shape.rank(), &axis));
  set_output(node, inputs[0].dtype, indexed_shape(inputs[0].shape, axis, inputs[1].shape));
  return {};
}

std::vector<Value> grad_gather(GradContext& c) {
  Math m(c.b);
  const Value dx = m.op("scatter_add", {c.out_grads[0], c.inputs[1]},
                        {{"shape", m.shape(c.inputs[0])}, {"axis", c.node.attrs.integer("axis")}});
  return {dx, Value{}};
}

Status infer_scatter_add(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kReal));
  TF_RETURN_IF_ERROR(need_type(inputs, 1, kInteger));
  const Shape shape = node->attrs.shape("shape");
  int axis;
  TF_RETURN_IF_ERROR(normalize_axis_attr(node, "axis", shape.rank(), &axis));
  const Shape wanted = indexed_shape(shape, axis, inputs[1].shape);
  if (inputs[0].shape != wanted) {
    return error(ErrorCode::kShapeMismatch, "updates are ", inputs[0].str(), " with indices ",
                 inputs[1].str(), " for axis ", axis, " of ", shape.str(),
                 "; updates must have the shape ", wanted.str(), ".");
  }
  set_output(node, inputs[0].dtype, shape);
  return {};
}

std::vector<Value> grad_scatter_add(GradContext& c) {
  const Value dx = Math(c.b).op("gather", {c.out_grads[0], c.inputs[1]},
                                {{"axis", c.node.attrs.integer("axis")}});
  return {dx, Value{}};
}

Status infer_one_hot(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kInteger));
  TF_RETURN_IF_ERROR(need_type_attr(*node, "dtype", kOrdered));
  const int64_t depth = node->attrs.integer("depth");
  if (depth < 0) {
    return error(ErrorCode::kBadAttribute, "attribute 'depth' is ", depth,
                 "; it must be 0 or more.");
  }
  int axis;
  TF_RETURN_IF_ERROR(normalize_axis_attr(node, "axis", inputs[0].shape.rank() + 1, &axis));
  std::vector<Dim> dims = inputs[0].shape.dims();
  dims.insert(dims.begin() + axis, Dim(depth));
  set_output(node, node->attrs.dtype("dtype"), Shape(std::move(dims)));
  return {};
}

std::vector<Value> decompose_one_hot(Builder& b, const Node& node,
                                     const std::vector<Value>& inputs) {
  Math m(b);
  const Shape full = node.outputs[0].shape;
  const int axis = static_cast<int>(node.attrs.integer("axis"));
  Shape column = full, classes = Shape::of(std::vector<int64_t>(full.dims().size(), 1));
  column[axis] = 1;
  classes[axis] = full[axis];
  const Value wide = m.widen(inputs[0]);
  const Value at = m.iota(m.dtype(wide), classes, axis);
  return {m.cast(m.equal(m.reshape(wide, column), at), node.attrs.dtype("dtype"))};
}

Status infer_gather_along(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kAnything));
  TF_RETURN_IF_ERROR(need_type(inputs, 1, kInteger));
  const Shape &shape = inputs[0].shape, indices = inputs[1].shape;
  int axis;
  TF_RETURN_IF_ERROR(normalize_axis_attr(node, "axis", shape.rank(), &axis));
  bool fits = indices.rank() == shape.rank();
  for (int i = 0; fits && i < shape.rank(); ++i) fits = i == axis || indices[i] == shape[i];
  if (!fits) {
    return error(ErrorCode::kShapeMismatch, "x is ", inputs[0].str(), " and indices are ",
                 inputs[1].str(), "; all sizes but those of axis ", axis, " must be equal.");
  }
  set_output(node, inputs[0].dtype, indices);
  return {};
}

/// Places along `axis` of a tensor of shape `full` as places in its row-major elements.
Value flat_places(Math& m, Value indices, const Shape& full, int axis) {
  const Shape shape = m.shape(indices);
  const Value checked = m.op("check_range", {indices}, {{"limit", Shape{full[axis]}}});
  Value place = m.cast(checked, DType::kI64);
  Dim stride = 1;
  Value total;
  for (int i = full.rank() - 1; i >= 0; --i) {
    const Value at = i == axis ? place : m.iota(DType::kI64, shape, i);
    const Value part = m.mul(at, m.extent({stride}, DType::kI64));
    total = total.valid() ? m.add(total, part) : part;
    stride = stride * full[i];
  }
  return total;
}

std::vector<Value> decompose_gather_along(Builder& b, const Node& node,
                                          const std::vector<Value>& inputs) {
  Math m(b);
  const Shape full = m.shape(inputs[0]);
  const int axis = static_cast<int>(node.attrs.integer("axis"));
  const Value flat = m.reshape(inputs[0], Shape{full.elements()});
  const Value places = flat_places(m, inputs[1], full, axis);
  return {m.op("gather", {flat, places}, {{"axis", int64_t{0}}})};
}

std::vector<Value> grad_gather_along(GradContext& c) {
  Math m(c.b);
  const Shape full = m.shape(c.inputs[0]);
  const Dim updates = m.shape(c.out_grads[0]).elements();
  const int axis = static_cast<int>(c.node.attrs.integer("axis"));
  const Value places = m.reshape(flat_places(m, c.inputs[1], full, axis), Shape{updates});
  const Value flat = m.op("scatter_add", {m.reshape(c.out_grads[0], Shape{updates}), places},
                          {{"shape", Shape{full.elements()}}, {"axis", int64_t{0}}});
  return {m.reshape(flat, full), Value{}};
}

Status check_start(const Types& inputs, size_t index) {
  TF_RETURN_IF_ERROR(need_type(inputs, index, kInteger));
  return need_rank(inputs, index, 0, "start");
}

Status infer_dynamic_slice(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kAnything));
  TF_RETURN_IF_ERROR(check_start(inputs, 1));
  Shape shape = inputs[0].shape;
  const Shape& size = node->attrs.shape("size");
  int axis;
  TF_RETURN_IF_ERROR(normalize_axis_attr(node, "axis", shape.rank(), &axis));
  const bool bad = size.rank() != 1 || (size[0].is_constant() && size[0].value() < 0);
  if (bad ||
      (size.is_constant() && shape[axis].is_constant() && size[0].value() > shape[axis].value())) {
    return error(ErrorCode::kBadAttribute, "attribute 'size' is ", size.str(), " for axis ", axis,
                 " of ", shape.str(), "; it must be one number from 0 to that axis's size.");
  }
  shape[axis] = size[0];
  set_output(node, inputs[0].dtype, shape);
  return {};
}

std::vector<Value> grad_dynamic_slice(GradContext& c) {
  Math m(c.b);
  const Value dx =
      m.op("dynamic_update_slice", {m.zeros_like(c.inputs[0]), c.out_grads[0], c.inputs[1]},
           {{"axis", c.node.attrs.integer("axis")}});
  return {dx, Value{}};
}

Status infer_dynamic_update_slice(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kAnything));
  TF_RETURN_IF_ERROR(need_same_type(inputs, 0, 1));
  TF_RETURN_IF_ERROR(check_start(inputs, 2));
  const Shape &shape = inputs[0].shape, update = inputs[1].shape;
  int axis;
  TF_RETURN_IF_ERROR(normalize_axis_attr(node, "axis", shape.rank(), &axis));
  bool fits = update.rank() == shape.rank();
  for (int i = 0; fits && i < shape.rank(); ++i) fits = i == axis || update[i] == shape[i];
  if (fits && update[axis].is_constant() && shape[axis].is_constant()) {
    fits = update[axis].value() <= shape[axis].value();
  }
  if (!fits) {
    return error(ErrorCode::kShapeMismatch, "update ", inputs[1].str(), " does not fit into ",
                 inputs[0].str(), "; all sizes but that of axis ", axis,
                 " must be equal, and that one not larger.");
  }
  set_output(node, inputs[0].dtype, shape);
  return {};
}

std::vector<Value> grad_dynamic_update_slice(GradContext& c) {
  Math m(c.b);
  const int64_t axis = c.node.attrs.integer("axis");
  const Value g = c.out_grads[0], start = c.inputs[2];
  const Value dx =
      m.op("dynamic_update_slice", {g, m.zeros_like(c.inputs[1]), start}, {{"axis", axis}});
  const Shape size = {m.shape(c.inputs[1])[static_cast<int>(axis)]};
  const Value dupdate = m.op("dynamic_slice", {g, start}, {{"axis", axis}, {"size", size}});
  return {dx, dupdate, Value{}};
}

Status infer_check_range(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kInteger));
  const Shape& limit = node->attrs.shape("limit");
  if (limit.rank() != 1) {
    return error(ErrorCode::kBadAttribute, "attribute 'limit' is ", limit.str(),
                 "; it must be one number.");
  }
  set_output(node, inputs[0].dtype, inputs[0].shape);
  return {};
}

Cost scatter_cost(const Node& node, const Types& inputs) {
  return {type_elements(inputs[0]), traffic(node, inputs)};
}

Cost update_cost(const Node& node, const Types& inputs) {
  return {0, traffic(node, inputs) + type_bytes(inputs[1])};
}

const AttrSpec kAxisAttr = {"axis", AttrType::kInteger, int64_t{0}, "the axis that is indexed"};

OpRow indexing(const char* name, const char* tf_name, std::vector<const char*> input_names,
               std::vector<AttrSpec> attrs, InferFn infer, Gradient gradient, CostFn cost,
               const char* doc) {
  OpRow row = make_row(OpClass::kMovement, name, tf_name, std::move(input_names), std::move(attrs),
                       infer, gradient, cost, doc);
  row.checks_data = true;
  return row;
}

}  // namespace

std::vector<OpRow> indexing_rows() {
  std::vector<OpRow> rows;
  rows.push_back(indexing(
      "gather", "GatherV2", {"x", "indices"}, {kAxisAttr}, infer_gather, {grad_gather, 2, 0},
      picked_cost,
      "Entries of x along `axis` at whole-number `indices` of any shape: y has the shape of x with "
      "that axis replaced by the axes of indices. Indices run from 0 to size - 1; others fail the "
      "run with error IndexOutOfRange."));
  rows.push_back(indexing(
      "scatter_add", "UnsortedSegmentSum", {"updates", "indices"},
      {{"shape", AttrType::kShape, std::nullopt, "sizes of the result"}, kAxisAttr},
      infer_scatter_add, {grad_scatter_add, 2, 0}, scatter_cost,
      "Zeros of `shape` with updates added at `indices` along `axis`, in an order that only sizes "
      "and indices decide, so that the sum is the same every time. Updates have the shape that "
      "gather gives. Indices "
      "outside the axis fail the run with error IndexOutOfRange."));
  append_rows(&rows, scatter_rows());
  rows.push_back(indexing(
      "one_hot", "OneHot", {"indices"},
      {{"depth", AttrType::kInteger, std::nullopt, "number of classes"},
       {"axis", AttrType::kInteger, int64_t{-1}, "place of the new axis in the result"},
       {"dtype", AttrType::kDType, DType::kF32, "element type of the result"}},
      infer_one_hot, no_gradient("whole-number indices have none"), traffic_cost,
      "y is 1 where its index along the new axis is that in `indices`, and 0 elsewhere: zeros only "
      "where the index is outside 0 … depth - 1."));
  rows.back().checks_data = false;
  rows.back().op_class = OpClass::kComposite;
  rows.back().decompose = decompose_one_hot;
  rows.push_back(indexing(
      "gather_along", "TakeAlongAxis", {"x", "indices"}, {kAxisAttr}, infer_gather_along,
      {grad_gather_along, 2, 0}, picked_cost,
      "y[…, i, …] = x[…, indices[…, i, …], …] along `axis`: indices have the shape of y, which is "
      "that of x but along the axis. Indices run from 0 to size - 1; others fail the run with "
      "error IndexOutOfRange."));
  rows.back().op_class = OpClass::kComposite;
  rows.back().decompose = decompose_gather_along;
  rows.push_back(indexing(
      "dynamic_slice", "DynamicSlice", {"x", "start"},
      {kAxisAttr,
       {"size", AttrType::kShape, std::nullopt, "number of entries taken, as a shape of one size"}},
      infer_dynamic_slice, {grad_dynamic_slice, 2, 0}, picked_cost,
      "x[start : start + size] along one axis; start is a whole-number scalar. A slice that does "
      "not lie inside x fails the run with error IndexOutOfRange."));
  rows.push_back(indexing(
      "dynamic_update_slice", "DynamicUpdateSlice", {"x", "update", "start"}, {kAxisAttr},
      infer_dynamic_update_slice, {grad_dynamic_update_slice, 4, 0}, update_cost,
      "x with `update` in place of x[start : start + size of update] along one axis. A place that "
      "does not lie inside x fails the run with error IndexOutOfRange."));
  rows.push_back(indexing(
      "check_range", "CheckRange", {"x"},
      {{"limit", AttrType::kShape, std::nullopt,
        "number of allowed values, as a shape of one size"},
       {"message", AttrType::kText, std::string(), "what the error says about x"}},
      infer_check_range, no_gradient("whole numbers have none"), traffic_cost,
      "x; the run fails with error IndexOutOfRange where an element is not in 0 … limit - 1."));
  return rows;
}

}  // namespace tracefire
