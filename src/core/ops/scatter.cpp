// SPDX-License-Identifier: Apache-2.0
// scatter: updates brought to indexed places of a tensor.

#include <algorithm>
#include <limits>

#include "core/ops/math.h"
#include "core/ops/rows.h"

namespace tracefire {
namespace {

/// Axes of x that one index names, or -1 where it is not known.
int index_depth(const ValueType& indices) {
  if (indices.shape.rank() == 0) return -1;
  const Dim last = indices.shape[indices.shape.rank() - 1];
  return last.is_constant() ? static_cast<int>(std::min<int64_t>(last.value(), 1 << 20)) : -1;
}

Status infer_scatter(const Types& inputs, Node* node) {
  const std::string& reduction = node->attrs.text("reduction");
  const bool update = reduction == "update";
  if (!update && reduction != "add" && reduction != "mul" && reduction != "max" &&
      reduction != "min") {
    return error(ErrorCode::kBadAttribute, "attribute 'reduction' is '", reduction,
                 "'; it must be 'add', 'update', 'mul', 'max' or 'min'.");
  }
  TF_RETURN_IF_ERROR(need_type(inputs, 0, update ? kPlain : kReal));
  TF_RETURN_IF_ERROR(need_type(inputs, 1, kInteger));
  if (inputs[0].dtype != inputs[2].dtype) {
    return error(ErrorCode::kDTypeMismatch, "x is ", inputs[0].str(), " and updates are ",
                 inputs[2].str(), "; both must have the same element type. Convert one with cast.");
  }
  const Shape &shape = inputs[0].shape, &indices = inputs[1].shape;
  const int depth = index_depth(inputs[1]);
  if (depth < 0 || depth > shape.rank()) {
    return error(ErrorCode::kShapeMismatch, "indices are ", inputs[1].str(), " for x ",
                 inputs[0].str(), "; their last size, a number, says how many of the ",
                 shape.rank(), " axes of x they name.");
  }
  Shape wanted;
  for (int i = 0; i + 1 < indices.rank(); ++i) wanted.push_back(indices[i]);
  for (int i = depth; i < shape.rank(); ++i) wanted.push_back(shape[i]);
  if (inputs[2].shape != wanted) {
    return error(ErrorCode::kShapeMismatch, "updates are ", inputs[2].str(), " with indices ",
                 inputs[1].str(), " into x ", inputs[0].str(), "; they must have the shape ",
                 wanted.str(), ".");
  }
  set_output(node, inputs[0].dtype, shape);
  return {};
}

/// x as [places, tail…] and the updates' row numbers in it: what the gradient and the decomposition
/// are made of.
class Places {
 public:
  /// `checks` fails the run where an index lies outside of its axis.
  Places(Builder& b, Value x, Value indices, bool checks) : m_(b), indices_(indices) {
    const Shape full = m_.shape(x), given = m_.shape(indices);
    const int depth = index_depth({DType::kI64, given});
    Dim places = 1;
    for (int i = 0; i < depth; ++i) places = places * full[i];
    table_ = {places};
    for (int i = depth; i < full.rank(); ++i) table_.push_back(full[i]);
    for (int i = 0; i + 1 < given.rank(); ++i) count_.push_back(given[i]);
    rows_ = m_.zeros(DType::kI64, count_);
    for (int i = 0; i < depth; ++i) {
      Value part = component(i);
      if (checks) part = m_.op("check_range", {part}, {{"limit", Shape{full[i]}}});
      const Value size = m_.extent({full[i]}, DType::kI64);
      rows_ = m_.add(m_.mul(rows_, size), m_.cast(part, DType::kI64));
    }
  }
  const Shape& table() const { return table_; }
  Dim count() const { return count_.elements(); }
  /// Row numbers as [count].
  Value rows() { return m_.reshape(rows_, Shape{count()}); }
  /// A tensor of the updates' shape as [count, tail…].
  Value flat_updates(Value updates) {
    Shape flat = table_;
    flat[0] = count();
    return m_.reshape(updates, flat);
  }
  /// A value for each update, [count], beside the elements of [count, tail…].
  Value column(Value flat) {
    Shape shape = Shape::of(std::vector<int64_t>(static_cast<size_t>(table_.rank()), 1));
    shape[0] = m_.shape(flat)[0];
    return m_.reshape(flat, shape);
  }
  /// Elements of a tensor of x's shape that the updates fall on, in the shape of the updates.
  Value at(Value tensor) {
    return m_.op("gather", {m_.reshape(tensor, table_), rows_}, {{"axis", int64_t{0}}});
  }
  Value scatter(Value x, Value updates, const char* reduction) {
    return m_.op("scatter", {x, indices_, updates}, {{"reduction", std::string(reduction)}});
  }
  /// For each update, whether it is the last one of its place; beside the updates.
  Value is_last() {
    const Value number = m_.iota(DType::kI64, Shape{count()}, 0);
    const Value start = m_.zeros(DType::kI64, Shape{table_[0]});
    const Value owner = m_.op("scatter", {start, m_.reshape(rows_, Shape{count(), 1}), number},
                              {{"reduction", std::string("update")}});
    const Value mine = m_.op("gather", {owner, rows()}, {{"axis", int64_t{0}}});
    Shape shape = count_;
    for (int i = 1; i < table_.rank(); ++i) shape.push_back(1);
    return m_.reshape(m_.equal(mine, number), shape);
  }

 private:
  /// Component `i` of all indices.
  Value component(int i) {
    const Shape shape = m_.shape(indices_);
    const int last = shape.rank() - 1;
    Shape starts, limits = shape;
    for (int axis = 0; axis < last; ++axis) starts.push_back(0);
    starts.push_back(i);
    limits[last] = i + 1;
    const Value part = m_.op("slice", {indices_}, {{"starts", starts}, {"limits", limits}});
    return m_.reshape(part, count_);
  }

  Math m_;
  Value indices_, rows_;
  Shape table_, count_;
};

/// Updates are sorted by their places. Then each is combined with its neighbour of the same place
/// 1, 2, 4, … before, until the last one of each place holds all of them; it says so there.
Value combine_sorted(Math& m, Places& places, Value x, Value updates, const char* combine) {
  const Attrs rows = {{"axis", int64_t{0}}};
  const bool many = places.count().bound() > std::numeric_limits<int32_t>::max();
  const Value order = m.op("argsort", {places.rows()},
                           {{"axis", int64_t{0}}, {"dtype", many ? DType::kI64 : DType::kI32}});
  const Value place = m.op("gather", {places.rows(), order}, rows);
  Value v = m.op("gather", {places.flat_updates(updates), order}, rows);
  const Value none = m.builder().scalar(-1, DType::kI64);
  for (int i = 0; combine != nullptr && i < doublings(places.count()); ++i) {
    const int64_t step = int64_t{1} << i;
    const Value same = m.equal(place, m.shift_along(place, 0, step, none));
    const Value before = m.shift_along(v, 0, step, m.scalar(0, v));
    v = m.select(places.column(same), m.op(combine, {v, before}), v);
  }
  const Value is_last = m.op("not_equal", {place, m.shift_along(place, 0, -1, none)});
  const Value number = m.shift(m.iota(DType::kI64, Shape{places.count()}, 0), 1);
  const Value marks = m.select(is_last, number, m.scalar(0, number));
  const Value owner = m.op("scatter_add", {marks, place}, {{"shape", Shape{places.table()[0]}}});
  const Value hit = places.column(m.op("greater", {owner, m.scalar(0, owner)}));
  const Value from = m.op("maximum", {m.shift(owner, -1), m.scalar(0, owner)});
  const Value taken = m.op("gather", {v, from}, rows);
  return m.select(hit, combine == nullptr ? taken : m.op(combine, {x, taken}), x);
}

std::vector<Value> decompose_scatter(Builder& b, const Node& node,
                                     const std::vector<Value>& inputs) {
  Math m(b);
  Places places(b, inputs[0], inputs[1], true);
  const std::string& reduction = node.attrs.text("reduction");
  const DType dtype = m.dtype(inputs[0]);
  const Shape full = m.shape(inputs[0]);
  const bool update = reduction == "update";
  if (places.count() == Dim(0)) return {m.reshape(inputs[0], full)};
  const DType wide = update ? dtype : wide_type(dtype);
  const Value x = m.cast(m.reshape(inputs[0], places.table()), wide);
  const Value updates = m.cast(inputs[2], wide);
  Value y;
  if (reduction == "add") {
    const Value sums = m.op("scatter_add", {places.flat_updates(updates), places.rows()},
                            {{"shape", places.table()}});
    y = m.add(x, sums);
  } else {
    const char* combine = update               ? nullptr
                          : reduction == "mul" ? "mul"
                          : reduction == "max" ? "maximum"
                                               : "minimum";
    y = combine_sorted(m, places, x, updates, combine);
  }
  return {m.reshape(m.cast(y, dtype), full)};
}

/// g times the product of all factors of a place but `own`, exact where factors are 0: `zeros` of
/// them are, `rest` is the product of the others.
Value product_rule(Math& m, Value g, Value own, Value zeros, Value rest) {
  const Value zero = m.scalar(0, g), none = m.scalar(0, zeros), one = m.scalar(1, zeros);
  const Value is_zero = m.equal(own, zero);
  const Value only = m.op("logical_and", {is_zero, m.equal(zeros, one)});
  const Value divided = m.div(rest, m.select(is_zero, m.scalar(1, g), own));
  const Value others = m.select(m.equal(zeros, none), divided, m.select(only, rest, zero));
  return m.mul(g, others);
}

std::vector<Value> grad_scatter(GradContext& c) {
  Math m(c.b);
  Places places(c.b, c.inputs[0], c.inputs[1], false);
  const std::string reduction = c.node.attrs.text("reduction");
  const Value g = c.out_grads[0], x = c.inputs[0], updates = c.inputs[2];
  if (reduction == "add") return {g, Value{}, places.at(g)};
  const Value zero = m.scalar(0, g), one = m.scalar(1, g);
  if (reduction == "update") {
    const Value dx = places.scatter(g, m.zeros_like(updates), "update");
    return {dx, Value{}, m.select(places.is_last(), places.at(g), zero)};
  }
  if (reduction == "mul") {
    const Value x_zero = m.equal(x, zero), update_zero = m.equal(updates, zero);
    const Value zeros =
        places.scatter(m.cast(x_zero, DType::kI32), m.cast(update_zero, DType::kI32), "add");
    const Value rest =
        places.scatter(m.select(x_zero, one, x), m.select(update_zero, one, updates), "mul");
    const Value dx = product_rule(m, g, x, zeros, rest);
    return {dx, Value{}, product_rule(m, places.at(g), updates, places.at(zeros), places.at(rest))};
  }
  // max, min: all that equal the extreme share the gradient.
  const Value y = c.outputs[0];
  const Value x_taken = m.cast(m.equal(x, y), m.dtype(g));
  const Value update_taken = m.cast(m.equal(updates, places.at(y)), m.dtype(g));
  const Value share = m.div(g, places.scatter(x_taken, update_taken, "add"));
  const Value dx = m.mul(x_taken, share);
  return {dx, Value{}, m.mul(update_taken, places.at(share))};
}

Cost scatter_cost(const Node& node, const Types& inputs) {
  return {type_elements(inputs[2]), traffic(node, inputs) + type_bytes(inputs[2])};
}

}  // namespace

std::vector<OpRow> scatter_rows() {
  return {OpRow{
      .name = "scatter",
      .tf_name = "TensorScatterUpdate",
      .op_class = OpClass::kMovement,
      .arity = {3, 3},
      .input_names = {"x", "indices", "updates"},
      .output_names = {"y"},
      .attrs = {{"reduction", AttrType::kText, std::string("update"),
                 "'update': the last update of a place stands there; 'add', 'mul', 'max', 'min': "
                 "they are combined with what is there"}},
      .infer = infer_scatter,
      .gradient = {grad_scatter, 7, 1},
      .cost = scatter_cost,
      .doc =
          "x with updates at indices [..., k], which name the first k axes of x: y[indices[i]] is "
          "x[indices[i]] combined with updates[i], in the order of i where several fall on one "
          "place (of many times more updates than elements, sums are made in chunks cut by sizes "
          "alone). Updates have the shape of indices without its last axis, then x's axes from k "
          "on. max and min give NaN beside NaN. An index outside its axis fails the run with error "
          "IndexOutOfRange.",
      .decompose = decompose_scatter,
      .checks_data = true}};
}

}  // namespace tracefire
