// SPDX-License-Identifier: Apache-2.0
// The movement family: what makes, reorders or repeats elements without computing.

#include <algorithm>
#include <numeric>

#include "core/ops/math.h"
#include "core/ops/rows.h"

namespace tracefire {
namespace {

constexpr size_t kMaxConstantBytes = 64;

Status check_sizes(const Shape& shape, const char* attr) {
  for (Dim dim : shape) {
    if (dim.is_constant() && dim.value() < 0) {
      return error(ErrorCode::kBadAttribute, "attribute '", attr, "' is ", shape.str(),
                   "; its sizes must be 0 or more.");
    }
  }
  return {};
}

Status infer_constant(const Types&, Node* node) {
  const DType dtype = node->attrs.dtype("dtype");
  const Shape& shape = node->attrs.shape("shape");
  const size_t bytes = node->attrs.text("bytes").size();
  TF_RETURN_IF_ERROR(need_type_attr(*node, "dtype", kAnything));
  TF_RETURN_IF_ERROR(check_sizes(shape, "shape"));
  const size_t one = dtype_size(dtype);
  if (dtype != DType::kString && bytes != one) {
    const Dim elements = shape.elements();
    const bool fits = elements.is_constant() && bytes <= kMaxConstantBytes &&
                      bytes == static_cast<size_t>(elements.value()) * one;
    if (!fits) {
      return error(ErrorCode::kBadAttribute, "attribute 'bytes' holds ", bytes, " bytes for ",
                   ValueType{dtype, shape}.str(), "; it must hold ", one,
                   " (one element for all) or every element with at most ", kMaxConstantBytes,
                   " bytes. Pass larger arrays as inputs.");
    }
  }
  set_output(node, dtype, shape);
  return {};
}

Status infer_iota(const Types&, Node* node) {
  const Shape shape = node->attrs.shape("shape");
  TF_RETURN_IF_ERROR(need_type_attr(*node, "dtype", kReal));
  TF_RETURN_IF_ERROR(check_sizes(shape, "shape"));
  int axis;
  TF_RETURN_IF_ERROR(normalize_axis_attr(node, "axis", shape.rank(), &axis));
  set_output(node, node->attrs.dtype("dtype"), shape);
  return {};
}

Status infer_extent(const Types&, Node* node) {
  TF_RETURN_IF_ERROR(need_type_attr(*node, "dtype", kReal));
  TF_RETURN_IF_ERROR(check_sizes(node->attrs.shape("shape"), "shape"));
  set_output(node, node->attrs.dtype("dtype"), Shape());
  return {};
}

Status infer_reshape(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kAnything));
  TF_ASSIGN(const Shape shape, resolve_reshape(inputs[0].shape, node->attrs.shape("shape")));
  node->attrs.set("shape", shape);
  set_output(node, inputs[0].dtype, shape);
  return {};
}

std::vector<Value> grad_reshape(GradContext& c) {
  Math m(c.b);
  return {m.reshape(c.out_grads[0], m.shape(c.inputs[0]))};
}

Status infer_transpose(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kAnything));
  const Shape& shape = inputs[0].shape;
  const std::vector<int64_t> given = node->attrs.ints("perm");
  std::vector<int64_t> perm;
  for (int64_t axis : given) {
    TF_ASSIGN(const int normal, normal_axis(axis, shape.rank(), "perm"));
    perm.push_back(normal);
  }
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> all(static_cast<size_t>(shape.rank()));
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) {
    return error(ErrorCode::kBadAxis, "attribute 'perm' is ", Shape::of(given).str(),
                 " for a tensor with ", shape.rank(), " axes; it must name each axis once.");
  }
  Shape result;
  for (int64_t axis : perm) result.push_back(shape[static_cast<int>(axis)]);
  node->attrs.set("perm", perm);
  set_output(node, inputs[0].dtype, result);
  return {};
}

std::vector<Value> grad_transpose(GradContext& c) {
  const std::vector<int64_t>& perm = c.node.attrs.ints("perm");
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  return {Math(c.b).op("transpose", {c.out_grads[0]}, {{"perm", inverse}})};
}

Status infer_broadcast_to(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kAnything));
  const Shape shape = node->attrs.shape("shape");
  TF_RETURN_IF_ERROR(check_sizes(shape, "shape"));
  if (!broadcasts_to(inputs[0].shape, shape)) {
    return error(ErrorCode::kShapeMismatch, "shape ", inputs[0].shape.str(),
                 " does not broadcast to ", shape.str(),
                 "; counted from the last axis, each of its sizes must be 1 or the wanted one.");
  }
  set_output(node, inputs[0].dtype, shape);
  return {};
}

std::vector<Value> grad_broadcast_to(GradContext& c) {
  Math m(c.b);
  return {m.unbroadcast(c.out_grads[0], m.shape(c.inputs[0]))};
}

Status need_length(size_t length, int rank, const char* attr) {
  if (static_cast<int>(length) == rank) return {};
  return error(ErrorCode::kBadAttribute, "attribute '", attr, "' has ", length,
               " numbers for a tensor with ", rank, " axes; it must have one for each.");
}

/// An ints attribute with one number an axis; empty stands for `fill` everywhere.
Status axis_numbers(Node* node, const char* attr, int rank, int64_t fill, int64_t least,
                    std::vector<int64_t>* numbers) {
  *numbers = node->attrs.ints(attr);
  if (numbers->empty()) numbers->assign(static_cast<size_t>(rank), fill);
  TF_RETURN_IF_ERROR(need_length(numbers->size(), rank, attr));
  for (int64_t number : *numbers) {
    if (number < least) {
      return error(ErrorCode::kBadAttribute, "attribute '", attr, "' has the number ", number,
                   "; its numbers must be ", least, " or more.");
    }
  }
  node->attrs.set(attr, *numbers);
  return {};
}

Status infer_slice(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kAnything));
  const Shape &shape = inputs[0].shape, starts = node->attrs.shape("starts"),
              limits = node->attrs.shape("limits");
  TF_RETURN_IF_ERROR(need_length(starts.dims().size(), shape.rank(), "starts"));
  TF_RETURN_IF_ERROR(need_length(limits.dims().size(), shape.rank(), "limits"));
  TF_RETURN_IF_ERROR(check_sizes(starts, "starts"));
  TF_RETURN_IF_ERROR(check_sizes(limits, "limits"));
  std::vector<int64_t> strides;
  TF_RETURN_IF_ERROR(axis_numbers(node, "strides", shape.rank(), 1, 1, &strides));
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    const Dim end = min_dim(limits[i], shape[i]);
    const Dim span = starts[i] == Dim(0) ? end : max(end - starts[i], 0);
    const Dim stride = strides[static_cast<size_t>(i)];
    result.push_back(stride == Dim(1) ? span : floor_div(span + stride - 1, stride));
  }
  set_output(node, inputs[0].dtype, result);
  return {};
}

/// Elements of `size` with `interior` gaps between neighbours.
Dim spread(Dim size, int64_t interior) {
  return interior == 0 ? size : size + max(size - 1, 0) * interior;
}

std::vector<Value> grad_slice(GradContext& c) {
  Math m(c.b);
  const Value g = c.out_grads[0];
  const Shape from = m.shape(c.inputs[0]), to = m.shape(g);
  if (to.elements() == Dim(0)) return {m.zeros_like(c.inputs[0])};
  const Shape& starts = c.node.attrs.shape("starts");
  std::vector<int64_t> interior = c.node.attrs.ints("strides");
  Shape high;
  for (int i = 0; i < from.rank(); ++i) {
    int64_t& gap = --interior[static_cast<size_t>(i)];
    high.push_back(from[i] - starts[i] - spread(to[i], gap));
  }
  return {
      m.op("pad", {g, m.scalar(0, g)}, {{"low", starts}, {"high", high}, {"interior", interior}})};
}

Status infer_pad(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kPlain));
  TF_RETURN_IF_ERROR(need_same_type(inputs, 0, 1));
  TF_RETURN_IF_ERROR(need_rank(inputs, 1, 0, "value"));
  const Shape &shape = inputs[0].shape, low = node->attrs.shape("low"),
              high = node->attrs.shape("high");
  TF_RETURN_IF_ERROR(need_length(low.dims().size(), shape.rank(), "low"));
  TF_RETURN_IF_ERROR(need_length(high.dims().size(), shape.rank(), "high"));
  std::vector<int64_t> interior;
  TF_RETURN_IF_ERROR(axis_numbers(node, "interior", shape.rank(), 0, 0, &interior));
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    const Dim size = low[i] + spread(shape[i], interior[static_cast<size_t>(i)]) + high[i];
    if (size.is_constant() && size.value() < 0) {
      return error(ErrorCode::kBadAttribute, "low ", low[i].str(), " and high ", high[i].str(),
                   " cut more than axis ", i, " of ", shape.str(), " has; at most all may go.");
    }
    result.push_back(size);
  }
  set_output(node, inputs[0].dtype, result);
  return {};
}

std::vector<Value> grad_pad(GradContext& c) {
  Math m(c.b);
  const Value g = c.out_grads[0];
  const Shape from = m.shape(c.inputs[0]);
  const Shape &low = c.node.attrs.shape("low"), high = c.node.attrs.shape("high");
  std::vector<int64_t> strides = c.node.attrs.ints("interior");
  Shape back_low, back_high, ends;
  for (int i = 0; i < from.rank(); ++i) {
    back_low.push_back(Dim(0) - low[i]);
    back_high.push_back(Dim(0) - high[i]);
    ends.push_back(spread(from[i], strides[static_cast<size_t>(i)]++));
  }
  Value dx = m.op("pad", {g, m.scalar(0, g)}, {{"low", back_low}, {"high", back_high}});
  if (ends != from) {
    const Shape starts = Shape::of(std::vector<int64_t>(strides.size(), 0));
    dx = m.op("slice", {dx}, {{"starts", starts}, {"limits", ends}, {"strides", strides}});
  }
  std::vector<int64_t> all(strides.size());
  std::iota(all.begin(), all.end(), 0);
  const Value total = m.sum(g, all);
  return {dx, m.sub(total, m.sum(dx, all))};
}

Status infer_concat(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kAnything));
  TF_RETURN_IF_ERROR(need_same_type(inputs, 0, inputs.size() - 1));
  Shape result = inputs[0].shape;
  int axis;
  TF_RETURN_IF_ERROR(normalize_axis_attr(node, "axis", result.rank(), &axis));
  for (size_t i = 1; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i].shape;
    bool fits = shape.rank() == result.rank();
    for (int k = 0; fits && k < result.rank(); ++k) fits = k == axis || shape[k] == result[k];
    if (!fits) {
      return error(ErrorCode::kShapeMismatch, "input 0 is ", inputs[0].str(), " and input ", i,
                   " is ", inputs[i].str(), "; all sizes but those of axis ", axis,
                   " must be equal.");
    }
    result[axis] = result[axis] + shape[axis];
  }
  set_output(node, inputs[0].dtype, result);
  return {};
}

std::vector<Value> grad_concat(GradContext& c) {
  Math m(c.b);
  const int axis = static_cast<int>(c.node.attrs.integer("axis"));
  std::vector<Value> grads;
  Dim offset = 0;
  for (Value input : c.inputs) {
    Shape limits = m.shape(input);
    Shape starts = Shape::of(std::vector<int64_t>(limits.dims().size(), 0));
    starts[axis] = offset;
    offset = offset + limits[axis];
    limits[axis] = offset;
    grads.push_back(m.op("slice", {c.out_grads[0]}, {{"starts", starts}, {"limits", limits}}));
  }
  return grads;
}

Status infer_reverse(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kAnything));
  std::vector<int> axes;
  TF_RETURN_IF_ERROR(normalize_axes_attr(node, "axes", inputs[0].shape.rank(), &axes));
  set_output(node, inputs[0].dtype, inputs[0].shape);
  return {};
}

std::vector<Value> grad_reverse(GradContext& c) {
  return {Math(c.b).op("reverse", {c.out_grads[0]}, {{"axes", c.node.attrs.ints("axes")}})};
}

Status infer_copy(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kAnything));
  set_output(node, inputs[0].dtype, inputs[0].shape);
  return {};
}

/// The copy back is put in where the gradient's consumer is placed.
std::vector<Value> grad_copy(GradContext& c) { return {c.out_grads[0]}; }

const AttrSpec kShapeAttr = {"shape", AttrType::kShape, std::nullopt, "sizes of the result"};
const AttrSpec kDTypeAttr = {"dtype", AttrType::kDType, std::nullopt, "element type of the result"};

OpRow movement(const char* name, const char* tf_name, Arity arity,
               std::vector<const char*> input_names, std::vector<AttrSpec> attrs, InferFn infer,
               Gradient gradient, const char* doc) {
  OpRow row = make_row(OpClass::kMovement, name, tf_name, std::move(input_names), std::move(attrs),
                       infer, gradient, traffic_cost, doc);
  row.arity = arity;
  return row;
}

}  // namespace

std::vector<OpRow> movement_rows() {
  const Attr no_ints = std::vector<int64_t>();
  std::vector<OpRow> rows;
  rows.push_back(movement(
      "constant", "Const", {0, 0}, {},
      {kDTypeAttr,
       kShapeAttr,
       {"bytes", AttrType::kText, std::nullopt,
        "one element for all, or every element in row-major order, at most 64 bytes; for strings "
        "the text of every element"}},
      infer_constant, no_gradient("it has no operand"), "A value known when the graph is made."));
  rows.push_back(
      movement("iota", "Range", {0, 0}, {},
               {kDTypeAttr,
                kShapeAttr,
                {"axis", AttrType::kInteger, int64_t{0}, "the axis along which the numbers rise"}},
               infer_iota, no_gradient("it has no operand"),
               "0, 1, 2, … along one axis, repeated along "
               "the others."));
  rows.push_back(movement(
      "extent", "Size", {0, 0}, {},
      {{"shape", AttrType::kShape, std::nullopt, "sizes to multiply, symbols among them"},
       {"dtype", AttrType::kDType, DType::kI64, "element type of the result"}},
      infer_extent, no_gradient("it has no operand"),
      "The number of elements of `shape` as a scalar: how a symbolic size becomes a value."));
  rows.push_back(movement("reshape", "Reshape", {1, 1}, {"x"},
                          {{"shape", AttrType::kShape, std::nullopt,
                            "sizes of the result; one may be -1 and follows from the others"}},
                          infer_reshape, {grad_reshape, 0, 0},
                          "The same elements in row-major order under another shape."));
  rows.push_back(movement(
      "transpose", "Transpose", {1, 1}, {"x"},
      {{"perm", AttrType::kInts, std::nullopt, "perm[i] is the axis of x that becomes axis i"}},
      infer_transpose, {grad_transpose, 0, 0}, "Axes in another order."));
  rows.push_back(movement("broadcast_to", "BroadcastTo", {1, 1}, {"x"}, {kShapeAttr},
                          infer_broadcast_to, {grad_broadcast_to, 0, 0},
                          "x repeated to `shape` by NumPy's broadcasting."));
  rows.push_back(movement(
      "slice", "StridedSlice", {1, 1}, {"x"},
      {{"starts", AttrType::kShape, std::nullopt, "first index of each axis, 0 or more"},
       {"limits", AttrType::kShape, std::nullopt,
        "index after the last of each axis; what lies beyond the size is cut"},
       {"strides", AttrType::kInts, no_ints, "step of each axis, 1 or more; empty: all 1"}},
      infer_slice, {grad_slice, 0, 0},
      "x[starts:limits:strides]. Starts and limits may be symbolic."));
  rows.back().cost = picked_cost;
  rows.push_back(
      movement("pad", "PadV2", {2, 2}, {"x", "value"},
               {{"low", AttrType::kShape, std::nullopt,
                 "elements put before each axis; negative numbers cut elements off"},
                {"high", AttrType::kShape, std::nullopt, "elements put after each axis, likewise"},
                {"interior", AttrType::kInts, no_ints,
                 "elements put between neighbours of each axis; empty: none"}},
               infer_pad, {grad_pad, 0, 0}, "x with the scalar `value` around its elements."));
  rows.push_back(movement(
      "concat", "ConcatV2", {1, -1}, {"x"},
      {{"axis", AttrType::kInteger, std::nullopt, "the axis along which the inputs follow"}},
      infer_concat, {grad_concat, 0, 0},
      "Inputs one after the other along an axis; the other sizes are equal."));
  rows.push_back(movement(
      "reverse", "ReverseV2", {1, 1}, {"x"},
      {{"axes", AttrType::kInts, std::nullopt, "axes whose order is turned around"}}, infer_reverse,
      {grad_reverse, 0, 0}, "x with the order of some axes turned around."));
  rows.push_back(movement("copy", "Copy", {1, 1}, {"x"},
                          {{"device", AttrType::kText, std::string(),
                            "where to, for people; the node's device counts"}},
                          infer_copy, {grad_copy, 0, 0},
                          "x on the node's device, whatever device it was on."));
  append_rows(&rows, indexing_rows());
  return rows;
}

}  // namespace tracefire
