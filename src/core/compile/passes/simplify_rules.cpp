// SPDX-License-Identifier: Apache-2.0
// The rules of simplify. None changes a NaN, an infinity or the sign of a zero.

#include <algorithm>
#include <cmath>

#include "core/compile/passes/fold.h"
#include "core/compile/passes/simplifier.h"

namespace tracefire {
namespace {

/// True where every number of `from` is one of `to`, so that a cast there and on is a cast on.
bool widens(DType from, DType to) {
  if (from == to) return true;
  if (from == DType::kBool) return is_numeric(to);
  const size_t a = dtype_size(from), b = dtype_size(to);
  if (is_integer(from) && is_integer(to)) {
    if (is_signed_integer(from)) return is_signed_integer(to) && a < b;
    return a < b;
  }
  if (is_integer(from)) {
    if (to == DType::kF64) return a <= 4;
    if (to == DType::kF32) return a <= 2;
    return to == DType::kF16 && a == 1;
  }
  const bool half = from == DType::kF16 || from == DType::kBF16;
  if (half) return to == DType::kF32 || to == DType::kF64;
  return from == DType::kF32 && to == DType::kF64;
}

bool is_identity(const std::vector<int64_t>& perm) {
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

/// True where the transpose moves only axes of size 1: the elements keep their order.
bool keeps_order(const Shape& shape, const std::vector<int64_t>& perm) {
  int64_t last = -1;
  for (int64_t axis : perm) {
    if (shape[static_cast<int>(axis)] == Dim(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

/// The transpose swaps the last two axes and leaves the others.
bool swaps_last_two(const std::vector<int64_t>& perm) {
  if (perm.size() < 2) return false;
  std::vector<int64_t> swapped = perm;
  std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
  return is_identity(swapped);
}

}  // namespace

const Node* Simplifier::producer(Value value, OpId op) const {
  if (value.is_param()) return nullptr;
  const Node& node = builder_.graph().node(value);
  return node.op == op ? &node : nullptr;
}

std::optional<Scalar> Simplifier::number(Value value) const {
  if (const Node* broadcast = producer(value, known_.broadcast_to)) value = broadcast->inputs[0];
  const Node* node = producer(value, known_.constant);
  if (!node) return std::nullopt;
  const ConstantView view(*node);
  if (!view.ok() || (!view.splat() && view.elements() != 1)) return std::nullopt;
  return view.at(0);
}

bool Simplifier::is_number(Value value, double wanted) const {
  const std::optional<Scalar> scalar = number(value);
  if (!scalar) return false;
  if (!is_floating(scalar->dtype)) return static_cast<double>(scalar->integer) == wanted;
  return scalar->real == wanted && std::signbit(scalar->real) == std::signbit(wanted);
}

Value Simplifier::shaped(Value value, const Node& node) {
  const Shape to = node.outputs[0].shape;
  if (shape(value) == to) return value;
  return make(known_.broadcast_to, {value}, {{"shape", to}});
}

Value Simplifier::reshaped(Value value, const Shape& to) {
  if (shape(value) == to) return value;
  return make(known_.reshape, {value}, {{"shape", to}});
}

Value Simplifier::make_constant(const Scalar& scalar, const Shape& to) {
  return make(known_.constant, {},
              {{"dtype", scalar.dtype}, {"shape", to}, {"bytes", element_bytes(scalar)}});
}

Value Simplifier::rule(const Node& node) {
  if (node.op == known_.stop_gradient) return node.inputs[0];
  if (node.op == known_.reshape) return reshape(node);
  if (node.op == known_.broadcast_to) return broadcast(node);
  if (node.op == known_.transpose) return transpose(node);
  if (node.op == known_.matmul) return matmul(node);
  if (node.op == known_.constant) {
    // One number for many elements: a scalar that is repeated where it is used.
    const ConstantView view(node);
    if (!view.ok() || !view.splat() || view.shape().elements() == Dim(1)) return {};
    const Shape to = view.shape();
    const Value scalar = make_constant(view.at(0), Shape());
    return make(known_.broadcast_to, {scalar}, {{"shape", to}});
  }
  if (known_.loop_op(node.op)) {
    for (auto apply : {&Simplifier::constants, &Simplifier::implicit_broadcast,
                       &Simplifier::arithmetic, &Simplifier::cast, &Simplifier::select}) {
      const Value value = (this->*apply)(node);
      if (value.valid()) return value;
    }
    return {};
  }
  return reduction(node);
}

Value Simplifier::constants(const Node& node) {
  std::vector<Scalar> inputs;
  for (Value value : node.inputs) {
    const std::optional<Scalar> scalar = number(value);
    if (!scalar) return {};
    inputs.push_back(*scalar);
  }
  const std::optional<Scalar> result = fold(node.op, inputs, node.outputs[0].dtype);
  if (!result) return {};
  return make_constant(*result, node.outputs[0].shape);
}

Value Simplifier::implicit_broadcast(const Node& node) {
  std::vector<Value> inputs = node.inputs;
  bool any = false;
  for (Value& value : inputs) {
    if (const Node* broadcast = producer(value, known_.broadcast_to)) {
      value = broadcast->inputs[0];
      any = true;
    }
  }
  if (!any) return {};
  // The operation repeats its operands by itself; where all were repeated, the result is.
  const Value small = make(node.op, std::move(inputs), node.attrs);
  return small.valid() ? shaped(small, node) : small;
}

Value Simplifier::arithmetic(const Node& node) {
  const bool whole = is_integer(node.outputs[0].dtype);
  if (node.op == known_.mul) {
    if (is_number(node.inputs[1], 1)) return shaped(node.inputs[0], node);
    if (is_number(node.inputs[0], 1)) return shaped(node.inputs[1], node);
  } else if (node.op == known_.div) {
    if (is_number(node.inputs[1], 1)) return shaped(node.inputs[0], node);
  } else if (node.op == known_.add) {
    // x + 0 is 0 for x = -0; x + -0 is x.
    const double zero = whole ? 0.0 : -0.0;
    if (is_number(node.inputs[1], zero)) return shaped(node.inputs[0], node);
    if (is_number(node.inputs[0], zero)) return shaped(node.inputs[1], node);
  } else if (node.op == known_.sub) {
    if (is_number(node.inputs[1], 0)) return shaped(node.inputs[0], node);
  } else if (node.op == known_.pow) {
    if (is_number(node.inputs[1], 1)) return shaped(node.inputs[0], node);
    if (is_number(node.inputs[1], 2)) {
      const Value square = make(known_.square, {node.inputs[0]});
      return square.valid() ? shaped(square, node) : square;
    }
  } else if (node.op == known_.neg || node.op == known_.logical_not) {
    if (const Node* inner = producer(node.inputs[0], node.op)) return inner->inputs[0];
  }
  return {};
}

Value Simplifier::cast(const Node& node) {
  if (node.op != known_.cast && node.op != known_.bitcast) return {};
  const Value input = node.inputs[0];
  if (dtype(input) == node.outputs[0].dtype) return input;
  const Node* inner = producer(input, node.op);
  if (!inner) return {};
  const Value source = inner->inputs[0];
  if (node.op == known_.cast && !widens(dtype(source), dtype(input))) return {};
  return make(node.op, {source}, {{"dtype", node.outputs[0].dtype}});
}

Value Simplifier::select(const Node& node) {
  if (node.op != known_.select) return {};
  const std::optional<Scalar> condition = number(node.inputs[0]);
  if (condition) return shaped(node.inputs[condition->integer ? 1 : 2], node);
  if (node.inputs[1] == node.inputs[2]) return shaped(node.inputs[1], node);
  return {};
}

Value Simplifier::reshape(const Node& node) {
  const Value input = node.inputs[0];
  const Shape to = node.outputs[0].shape;
  if (shape(input) == to) return input;
  if (const Node* inner = producer(input, known_.reshape)) {
    return reshaped(inner->inputs[0], to);
  }
  if (const Node* constant = producer(input, known_.constant)) {
    const ConstantView view(*constant);
    if (!view.ok()) return {};
    Attrs attrs = constant->attrs;
    attrs.set("shape", to);
    return make(known_.constant, {}, std::move(attrs));
  }
  if (const Node* repeat = producer(input, known_.broadcast_to)) {
    const Value one = repeat->inputs[0];
    if (shape(one).elements() != Dim(1)) return {};
    const Value scalar = reshaped(one, Shape());
    return scalar.valid() ? shaped(scalar, node) : scalar;
  }
  return {};
}

Value Simplifier::broadcast(const Node& node) {
  const Value input = node.inputs[0];
  const Shape to = node.outputs[0].shape;
  if (shape(input) == to) return input;
  if (shape(input).elements() == to.elements()) return reshaped(input, to);
  if (const Node* inner = producer(input, known_.broadcast_to)) {
    return make(known_.broadcast_to, {inner->inputs[0]}, {{"shape", to}});
  }
  // A single element is one whatever its rank is.
  if (shape(input).rank() > 0 && shape(input).elements() == Dim(1)) {
    const Value scalar = reshaped(input, Shape());
    return scalar.valid() ? make(known_.broadcast_to, {scalar}, {{"shape", to}}) : scalar;
  }
  return {};
}

Value Simplifier::transpose(const Node& node) {
  const Value input = node.inputs[0];
  const std::vector<int64_t>& perm = node.attrs.ints("perm");
  if (is_identity(perm)) return input;
  if (keeps_order(shape(input), perm)) return reshaped(input, node.outputs[0].shape);
  if (const Node* inner = producer(input, known_.transpose)) {
    const std::vector<int64_t>& first = inner->attrs.ints("perm");
    std::vector<int64_t> both;
    for (int64_t axis : perm) both.push_back(first[static_cast<size_t>(axis)]);
    return make(known_.transpose, {inner->inputs[0]}, {{"perm", std::move(both)}});
  }
  return {};
}

Value Simplifier::reduction(const Node& node) {
  const OpId plain[] = {known_.reduce_sum, known_.reduce_mean, known_.reduce_max,
                        known_.reduce_min, known_.reduce_prod, known_.reduce_any,
                        known_.reduce_all};
  if (std::find(std::begin(plain), std::end(plain), node.op) == std::end(plain)) return {};
  const Shape& from = shape(node.inputs[0]);
  for (int64_t axis : node.attrs.ints("axes")) {
    if (from[static_cast<int>(axis)] != Dim(1)) return {};
  }
  return reshaped(node.inputs[0], node.outputs[0].shape);  // of one element each
}

Value Simplifier::matmul(const Node& node) {
  // Products read their operands transposed at no cost.
  Attrs attrs = node.attrs;
  std::vector<Value> inputs = node.inputs;
  const char* const flags[] = {"transpose_a", "transpose_b"};
  bool any = false;
  for (size_t i = 0; i < 2; ++i) {
    const Node* swap = producer(inputs[i], known_.transpose);
    if (!swap || !swaps_last_two(swap->attrs.ints("perm"))) continue;
    attrs.set(flags[i], !attrs.flag(flags[i]));
    inputs[i] = swap->inputs[0];
    any = true;
  }
  return any ? make(known_.matmul, std::move(inputs), std::move(attrs)) : Value{};
}

}  // namespace tracefire
