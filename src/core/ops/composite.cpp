// SPDX-License-Identifier: Apache-2.0
// The composite family: operations that stay one node, with a gradient of their own, until no
// kernel of a device accepts them; then they are decomposed.

#include <numeric>

#include "core/ops/math.h"
#include "core/ops/rows.h"

namespace tracefire {
namespace {

using Values = std::vector<Value>;

Status infer_softmax(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kFloating));
  int axis;
  TF_RETURN_IF_ERROR(normalize_axis_attr(node, "axis", inputs[0].shape.rank(), &axis));
  set_output(node, inputs[0].dtype, inputs[0].shape);
  return {};
}

/// x - max(x) along the axis, so that no exponential overflows.
Value shifted(Math& m, Value x, int64_t axis) { return m.sub(x, m.max(x, {axis}, true)); }

Values decompose_softmax(Builder& b, const Node& node, const Values& inputs) {
  Math m(b);
  const DType dtype = m.dtype(inputs[0]);
  const int64_t axis = node.attrs.integer("axis");
  const Value e = m.op("exp", {shifted(m, m.cast(inputs[0], wide_type(dtype)), axis)});
  return {m.cast(m.div(e, m.sum(e, {axis}, true)), dtype)};
}

Values decompose_log_softmax(Builder& b, const Node& node, const Values& inputs) {
  Math m(b);
  const DType dtype = m.dtype(inputs[0]);
  const int64_t axis = node.attrs.integer("axis");
  const Value low = shifted(m, m.cast(inputs[0], wide_type(dtype)), axis);
  const Value log_sum = m.op("log", {m.sum(m.op("exp", {low}), {axis}, true)});
  return {m.cast(m.sub(low, log_sum), dtype)};
}

Values grad_softmax(GradContext& c) {  // y (g - sum(g y))
  Math m(c.b);
  const Value y = c.outputs[0];
  const Value scaled = m.mul(c.out_grads[0], y);
  const Value total = m.sum(scaled, {c.node.attrs.integer("axis")}, true);
  return {m.sub(scaled, m.mul(y, total))};
}

Values grad_log_softmax(GradContext& c) {  // g - softmax(x) sum(g)
  Math m(c.b);
  const Value g = c.out_grads[0];
  const Value total = m.sum(g, {c.node.attrs.integer("axis")}, true);
  return {m.sub(g, m.mul(m.op("exp", {c.outputs[0]}), total))};
}

/// Types of logits [..., C] and labels [...].
Status check_cross_entropy(const Types& inputs) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kFloating));
  TF_RETURN_IF_ERROR(need_type(inputs, 1, kInteger));
  const std::vector<Dim>& logits = inputs[0].shape.dims();
  const bool fits = !logits.empty() &&
                    Shape(std::vector<Dim>(logits.begin(), logits.end() - 1)) == inputs[1].shape;
  if (fits) return {};
  return error(ErrorCode::kShapeMismatch, "logits are ", inputs[0].str(), " and labels are ",
               inputs[1].str(), "; labels must have the shape of logits without the last axis.");
}

Status infer_cross_entropy(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(check_cross_entropy(inputs));
  set_output(node, inputs[0].dtype, inputs[1].shape);
  return {};
}

Status infer_cross_entropy_grad(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(check_cross_entropy(inputs));
  if (inputs[2].dtype != inputs[0].dtype || inputs[2].shape != inputs[1].shape) {
    return error(ErrorCode::kShapeMismatch, "the gradient of the loss is ", inputs[2].str(),
                 "; it must be ", ValueType{inputs[0].dtype, inputs[1].shape}.str(), ".");
  }
  set_output(node, inputs[0].dtype, inputs[0].shape);
  return {};
}

/// Shape with a last axis of size 1 more.
Shape with_one(Shape shape) {
  shape.push_back(1);
  return shape;
}

/// true at each label's place along the last axis of `like`.
Value label_mask(Math& m, Value labels, Value like) {
  const Shape full = m.shape(like);
  const int last = full.rank() - 1;
  const Value checked = m.op("check_range", {m.widen(labels)},
                             {{"limit", Shape{full[last]}}, {"message", std::string("label")}});
  const Value column = m.reshape(checked, with_one(m.shape(labels)));
  return m.equal(column, m.iota(m.dtype(checked), Shape{full[last]}, 0));
}

Values decompose_cross_entropy(Builder& b, const Node&, const Values& inputs) {
  Math m(b);
  const DType dtype = m.dtype(inputs[0]);
  const int64_t last = m.shape(inputs[0]).rank() - 1;
  const Value x = m.cast(inputs[0], wide_type(dtype));
  const Value log_p = m.op("log_softmax", {x}, {{"axis", last}});
  // One statement a node: the order of a call's arguments is the compiler's choice.
  const Value zero = m.scalar(0, x);
  const Value mask = label_mask(m, inputs[1], x);
  const Value taken = m.select(mask, log_p, zero);
  return {m.cast(m.neg(m.sum(taken, {last})), dtype)};
}

Values decompose_cross_entropy_grad(Builder& b, const Node&, const Values& inputs) {
  Math m(b);
  const DType dtype = m.dtype(inputs[0]);
  const int64_t last = m.shape(inputs[0]).rank() - 1;
  const Value x = m.cast(inputs[0], wide_type(dtype));
  const Value p = m.op("softmax", {x}, {{"axis", last}});
  const Value less = m.select(label_mask(m, inputs[1], x), m.shift(p, -1), p);
  const Value g = m.reshape(m.cast(inputs[2], wide_type(dtype)), with_one(m.shape(inputs[2])));
  return {m.cast(m.mul(less, g), dtype)};
}

Values grad_cross_entropy(GradContext& c) {
  const Value dx =
      Math(c.b).op("softmax_cross_entropy_grad", {c.inputs[0], c.inputs[1], c.out_grads[0]});
  return {dx, Value{}};
}

/// With d = (p - hot) g and u = dL/dd: dL/dlogits = g p (u - sum(u p)), dL/dg = sum(u (p - hot)).
Values grad_cross_entropy_grad(GradContext& c) {
  Math m(c.b);
  const Value u = c.out_grads[0];
  const int64_t last = m.shape(u).rank() - 1;
  const Value p = m.op("softmax", {c.inputs[0]}, {{"axis", last}});
  const Value g = m.reshape(c.inputs[2], with_one(m.shape(c.inputs[2])));
  const Value up = m.mul(u, p);
  const Value dlogits = m.mul(g, m.sub(up, m.mul(p, m.sum(up, {last}, true))));
  const Value less = m.select(label_mask(m, c.inputs[1], p), m.shift(p, -1), p);
  return {dlogits, Value{}, m.sum(m.mul(u, less), {last})};
}

Status infer_adam(const Types& inputs, Node* node) {
  static constexpr const char* kNames[] = {"param", "grad", "m", "v", "step", "learning_rate"};
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kFloating));
  for (size_t i = 1; i < 4; ++i) {
    if (inputs[i].dtype == inputs[0].dtype && inputs[i].shape == inputs[0].shape) continue;
    return error(ErrorCode::kShapeMismatch, kNames[i], " is ", inputs[i].str(),
                 "; it must have the type of param, ", inputs[0].str(), ".");
  }
  TF_RETURN_IF_ERROR(need_type(inputs, 4, kReal));
  TF_RETURN_IF_ERROR(need_rank(inputs, 4, 0, kNames[4]));
  TF_RETURN_IF_ERROR(need_type(inputs, 5, kFloating));
  TF_RETURN_IF_ERROR(need_rank(inputs, 5, 0, kNames[5]));
  node->outputs.assign(3, ValueType{inputs[0].dtype, inputs[0].shape});
  return {};
}

Values decompose_adam(Builder& b, const Node& node, const Values& inputs) {
  Math m(b);
  const DType dtype = m.dtype(inputs[0]);
  const Value param = inputs[0], grad = inputs[1], one = b.scalar(1, dtype);
  const double beta1 = node.attrs.real("beta1"), beta2 = node.attrs.real("beta2");
  const Value t = m.cast(inputs[4], dtype);
  const auto left = [&](double beta) {  // 1 - beta^t
    return m.sub(one, m.op("pow", {b.scalar(beta, dtype), t}));
  };
  const Value root = m.op("sqrt", {left(beta2)});
  const Value correction = left(beta1);
  const Value rate = m.mul(m.cast(inputs[5], dtype), root);
  const Value alpha = m.div(rate, correction);
  const auto moved = [&](Value old, Value target, double beta) {
    return m.add(old, m.scale(m.sub(target, old), 1 - beta));
  };
  const Value mean = moved(inputs[2], grad, beta1);
  const Value square = moved(inputs[3], m.square(grad), beta2);
  const Value bottom = m.shift(m.op("sqrt", {square}), node.attrs.real("epsilon"));
  return {m.sub(param, m.div(m.mul(mean, alpha), bottom)), mean, square};
}

Cost softmax_cost(const Node& node, const Types& inputs) {
  return {12 * type_elements(inputs[0]), traffic(node, inputs)};
}

OpRow composite(const char* name, const char* tf_name, std::vector<const char*> input_names,
                std::vector<AttrSpec> attrs, InferFn infer, Gradient gradient, CostFn cost,
                DecomposeFn decompose, const char* doc) {
  OpRow row = make_row(OpClass::kComposite, name, tf_name, std::move(input_names), std::move(attrs),
                       infer, gradient, cost, doc);
  row.decompose = decompose;
  return row;
}

void add_softmax_rows(std::vector<OpRow>* rows) {
  const AttrSpec axis = {"axis", AttrType::kInteger, int64_t{-1}, "the axis that sums to 1"};
  rows->push_back(composite("softmax", "Softmax", {"x"}, {axis}, infer_softmax,
                            {grad_softmax, 0, 1}, softmax_cost, decompose_softmax,
                            "e^x / sum(e^x) along an axis, computed from x - max(x)."));
  rows->push_back(composite("log_softmax", "LogSoftmax", {"x"}, {axis}, infer_softmax,
                            {grad_log_softmax, 0, 1}, softmax_cost, decompose_log_softmax,
                            "x - log(sum(e^x)) along an axis, computed from x - max(x)."));
  OpRow loss = composite(
      "softmax_cross_entropy", "SparseSoftmaxCrossEntropyWithLogits", {"logits", "labels"}, {},
      infer_cross_entropy, {grad_cross_entropy, 3, 0}, softmax_cost, decompose_cross_entropy,
      "logits [..., C], whole-number labels [...] -> loss [...], in nats: "
      "log(sum(e^logits)) - logits[label]. Labels outside 0 … C - 1 fail the run with error "
      "IndexOutOfRange.");
  loss.output_names = {"loss"};
  loss.checks_data = true;
  rows->push_back(std::move(loss));
  OpRow grad = composite(
      "softmax_cross_entropy_grad", "SparseSoftmaxCrossEntropyWithLogitsGrad",
      {"logits", "labels", "dloss"}, {}, infer_cross_entropy_grad, {grad_cross_entropy_grad, 7, 0},
      softmax_cost, decompose_cross_entropy_grad,
      "Gradient of softmax_cross_entropy: (softmax(logits) - one_hot(labels)) * dloss[..., None]. "
      "Labels outside 0 … C - 1 fail the run with error IndexOutOfRange.");
  grad.output_names = {"dlogits"};
  grad.checks_data = true;
  rows->push_back(std::move(grad));
}

OpRow adam_row() {
  OpRow row = composite(
      "adam_update", "ResourceApplyAdam", {"param", "grad", "m", "v", "step", "learning_rate"},
      {{"beta1", AttrType::kReal, 0.9, "decay of the mean of gradients"},
       {"beta2", AttrType::kReal, 0.999, "decay of the mean of their squares"},
       {"epsilon", AttrType::kReal, 1e-7, "added to the root, against division by 0"}},
      infer_adam, no_gradient("an optimizer's update is not differentiated"), elementwise_cost<14>,
      decompose_adam,
      "One step of Adam (Kingma, Ba 2015, the order of section 2 as Keras computes it). step is "
      "the number of this update, from 1. m += (grad - m)(1 - beta1); v += (grad^2 - v)(1 - "
      "beta2); param -= learning_rate sqrt(1 - beta2^step) / (1 - beta1^step) m / (sqrt(v) + "
      "epsilon). step and learning_rate are scalars; the results are the new param, m and v.");
  row.output_names = {"param", "m", "v"};
  row.tolerance = {.f64 = 1e-12, .f32 = 2e-5, .f16 = 8e-3, .bf16 = 6e-2};
  return row;
}

Status infer_unique(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kOrdered));
  TF_RETURN_IF_ERROR(need_rank(inputs, 0, 1, "x"));
  TF_RETURN_IF_ERROR(need_type_attr(*node, "dtype", kInteger));
  const int64_t size = node->attrs.integer("size");
  if (size < -1) {
    return error(ErrorCode::kBadAttribute, "attribute 'size' is ", size,
                 "; it must be -1 (as many as there are) or a fixed number of results.");
  }
  const Dim count = size < 0 ? Dim::fresh("unique", inputs[0].shape[0].bound()) : Dim(size);
  const DType index = node->attrs.dtype("dtype");
  node->outputs = {{inputs[0].dtype, Shape{count}},
                   {index, inputs[0].shape},
                   {index, Shape()}};
  return {};
}

OpRow unique_row() {
  return OpRow{
      .name = "unique",
      .tf_name = "UniqueV2",
      .op_class = OpClass::kReduction,
      .arity = {1, 1},
      .input_names = {"x"},
      .output_names = {"values", "inverse", "count"},
      .attrs = {{"size", AttrType::kInteger, int64_t{-1},
                 "number of results; -1: as many as there are, known when the graph runs"},
                {"dtype", AttrType::kDType, DType::kI64, "element type of inverse and count"}},
      .infer = infer_unique,
      .gradient = no_gradient("which elements are equal is not a smooth function of them"),
      .cost = input_cost<16>,
      .doc =
          "The different elements of x [n], ascending, NaN last and once; inverse [n] with "
          "values[inverse[i]] = x[i]; and how many there are. With `size`, values beyond it are "
          "left out (their inverse is then not below size) and missing ones are filled with the "
          "first.",
      .size_output = 2};
}

}  // namespace

std::vector<OpRow> composite_rows() {
  std::vector<OpRow> rows;
  add_softmax_rows(&rows);
  rows.push_back(adam_row());
  rows.push_back(unique_row());
  return rows;
}

}  // namespace tracefire
