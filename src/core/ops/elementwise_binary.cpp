// SPDX-License-Identifier: Apache-2.0
// Element-wise operations of two operands with NumPy broadcasting: z[i] = f(x[i], y[i]).

#include "core/ops/math.h"
#include "core/ops/rows.h"

namespace tracefire {
namespace {

Status infer_operands(const Types& inputs, const TypeRule& rule, Shape* shape) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, rule));
  TF_RETURN_IF_ERROR(need_same_type(inputs, 0, 1));
  TF_ASSIGN(*shape, broadcast_shapes(inputs[0].shape, inputs[1].shape));
  return {};
}

template <const TypeRule& rule>
Status infer_binary(const Types& inputs, Node* node) {
  Shape shape;
  TF_RETURN_IF_ERROR(infer_operands(inputs, rule, &shape));
  set_output(node, inputs[0].dtype, std::move(shape));
  return {};
}

template <const TypeRule& rule>
Status infer_compare(const Types& inputs, Node* node) {
  Shape shape;
  TF_RETURN_IF_ERROR(infer_operands(inputs, rule, &shape));
  set_output(node, DType::kBool, std::move(shape));
  return {};
}

// Gradients. g is dL/dz; each operand's is summed over the axes it was repeated along.
using Grads = std::vector<Value>;

/// `dx` and `dy` in the result's shape, brought to the operands' shapes.
Grads fit(GradContext& c, Value dx, Value dy) {
  Math m(c.b);
  dx = m.unbroadcast(dx, m.shape(c.inputs[0]));
  dy = m.unbroadcast(dy, m.shape(c.inputs[1]));
  return {dx, dy};
}

Grads grad_add(GradContext& c) { return fit(c, c.out_grads[0], c.out_grads[0]); }
Grads grad_sub(GradContext& c) { return fit(c, c.out_grads[0], Math(c.b).neg(c.out_grads[0])); }
Grads grad_mul(GradContext& c) {
  Math m(c.b);
  const Value g = c.out_grads[0];
  const Value dx = m.mul(g, c.inputs[1]);
  return fit(c, dx, m.mul(g, c.inputs[0]));
}
Grads grad_div(GradContext& c) {  // dz/dy = -x / y^2 = -z / y
  Math m(c.b);
  const Value dx = m.div(c.out_grads[0], c.inputs[1]);
  return fit(c, dx, m.neg(m.mul(dx, c.outputs[0])));
}
Grads grad_floor_div(GradContext&) { return {Value{}, Value{}}; }
Grads grad_floor_mod(GradContext& c) {  // z = x - floor(x / y) y
  Math m(c.b);
  const Value g = c.out_grads[0];
  const Value quotient = m.op("floor_div", {c.inputs[0], c.inputs[1]});
  return fit(c, g, m.neg(m.mul(g, quotient)));
}
/// dx = g y x^(y-1), 0 at y = 0 also where 1/x is infinite; dy = g z log(x), 0 where x <= 0 as
/// there is no real power beside it.
Grads grad_pow(GradContext& c) {
  Math m(c.b);
  const Value g = c.out_grads[0], x = c.inputs[0], y = c.inputs[1];
  const Value zero = m.scalar(0, x), one = m.scalar(1, x), less = m.sub(y, one);
  // Any exponent with a finite power keeps 0 * x^(y-1) at 0. Where 1/x is finite it stays y - 1, so
  // that an infinite x gives 0 * 0, and a second gradient finds the power.
  const Value inverse = m.op("is_finite", {m.op("reciprocal", {x})});
  const Value exponent = m.select(m.equal(y, zero), m.select(inverse, less, one), less);
  const Value dx = m.mul(g, m.mul(y, m.op("pow", {x, exponent})));
  const Value positive = m.op("greater", {x, zero});
  const Value log = m.op("log", {m.select(positive, x, one)});
  return fit(c, dx, m.mul(g, m.mul(c.outputs[0], log)));
}
/// The operand that was taken gets the gradient, half of it where both are equal.
Grads grad_pick(GradContext& c, const char* takes_x, const char* takes_y) {
  Math m(c.b);
  const Value g = c.out_grads[0], x = c.inputs[0], y = c.inputs[1];
  const Value shared = m.select(m.equal(x, y), m.scale(g, 0.5), m.scalar(0, g));
  const Value dx = m.select(m.op(takes_x, {x, y}), g, shared);
  return fit(c, dx, m.select(m.op(takes_y, {x, y}), g, shared));
}
Grads grad_maximum(GradContext& c) { return grad_pick(c, "greater", "less"); }
Grads grad_minimum(GradContext& c) { return grad_pick(c, "less", "greater"); }
Grads grad_atan2(GradContext& c) {  // x here is the first operand, the ordinate
  Math m(c.b);
  const Value x = c.inputs[0], y = c.inputs[1];
  const Value scaled = m.div(c.out_grads[0], m.add(m.square(x), m.square(y)));
  const Value dx = m.mul(scaled, y);
  return fit(c, dx, m.neg(m.mul(scaled, x)));
}

constexpr uint32_t kX = 1, kY = 2, kXY = 3, kZ = 1;
constexpr Gradient kTruth = no_gradient("truth values have none");
constexpr Gradient kIntegers = no_gradient("integers have none");
constexpr CostFn kSimple = elementwise_cost<1>, kCurve = elementwise_cost<16>;

const Elementwise kBinary[] = {
    {"add",
     "AddV2",
     infer_binary<kReal>,
     {grad_add, 0, 0},
     kSimple,
     "x + y. Integers wrap around."},
    {"sub", "Sub", infer_binary<kReal>, {grad_sub, 0, 0}, kSimple, "x - y. Integers wrap around."},
    {"mul",
     "Mul",
     infer_binary<kReal>,
     {grad_mul, kXY, 0},
     kSimple,
     "x * y. Integers wrap around."},
    {"div",
     "RealDiv",
     infer_binary<kFloating>,
     {grad_div, kY, kZ},
     kSimple,
     "x / y as IEEE 754 divides. Integers go through cast first, or floor_div."},
    {"floor_div",
     "FloorDiv",
     infer_binary<kReal>,
     {grad_floor_div, 0, 0},
     elementwise_cost<2>,
     "floor(x / y) of the exact quotient, so -1 where x is below 0 and y is infinite; NaN where x "
     "is infinite and y is not 0. An integer divided by 0 gives 0; the smallest integer divided by "
     "-1 wraps around. Its gradient is 0 wherever it exists."},
    {"floor_mod",
     "FloorMod",
     infer_binary<kReal>,
     {grad_floor_mod, kXY, 0},
     elementwise_cost<3>,
     "x - floor(x / y) * y, with the sign of y. An integer modulo 0 gives 0."},
    {"pow",
     "Pow",
     infer_binary<kReal>,
     {grad_pow, kXY, kZ},
     kCurve,
     "x to the power y. Integers wrap around; a negative integer power gives 0 but for x of 1 "
     "and -1. pow(x, 0) is 1 for every x."},
    {"maximum",
     "Maximum",
     infer_binary<kOrdered>,
     {grad_maximum, kXY, 0},
     kSimple,
     "The larger one; NaN where one is NaN. Where both are equal each gets half the gradient."},
    {"minimum",
     "Minimum",
     infer_binary<kOrdered>,
     {grad_minimum, kXY, 0},
     kSimple,
     "The smaller one; NaN where one is NaN. Where both are equal each gets half the gradient."},
    {"atan2",
     "Atan2",
     infer_binary<kFloating>,
     {grad_atan2, kXY, 0},
     kCurve,
     "Angle in radians, from -pi to pi, of the point whose ordinate is x and abscissa is y."},
    {"equal", "Equal", infer_compare<kPlain>, kTruth, kSimple,
     "x == y as bool; NaN equals nothing."},
    {"not_equal", "NotEqual", infer_compare<kPlain>, kTruth, kSimple,
     "x != y as bool; NaN differs from everything."},
    {"less", "Less", infer_compare<kOrdered>, kTruth, kSimple, "x < y as bool; false beside NaN."},
    {"less_equal", "LessEqual", infer_compare<kOrdered>, kTruth, kSimple,
     "x <= y as bool; false beside NaN."},
    {"greater", "Greater", infer_compare<kOrdered>, kTruth, kSimple,
     "x > y as bool; false beside NaN."},
    {"greater_equal", "GreaterEqual", infer_compare<kOrdered>, kTruth, kSimple,
     "x >= y as bool; false beside NaN."},
    {"logical_and", "LogicalAnd", infer_binary<kBoolean>, kTruth, kSimple, "x and y."},
    {"logical_or", "LogicalOr", infer_binary<kBoolean>, kTruth, kSimple, "x or y."},
    {"bitwise_and", "BitwiseAnd", infer_binary<kIntegerOrBool>, kIntegers, kSimple,
     "Bits set in both."},
    {"bitwise_or", "BitwiseOr", infer_binary<kIntegerOrBool>, kIntegers, kSimple,
     "Bits set in one or both."},
    {"bitwise_xor", "BitwiseXor", infer_binary<kIntegerOrBool>, kIntegers, kSimple,
     "Bits set in exactly one."},
    {"shift_left", "LeftShift", infer_binary<kInteger>, kIntegers, kSimple,
     "x with its bits moved up by y, zeros coming in; 0 where y is negative or at least the "
     "number of bits."},
    {"shift_right", "RightShift", infer_binary<kInteger>, kIntegers, kSimple,
     "x with its bits moved down by y, copies of the sign coming in (zeros where unsigned); where "
     "y is negative or at least the number of bits, only those remain."},
};

}  // namespace

std::vector<OpRow> binary_rows() {
  std::vector<OpRow> rows;
  for (const Elementwise& binary : kBinary) {
    rows.push_back(elementwise_row(binary, {"x", "y"}, "z"));
  }
  return rows;
}

}  // namespace tracefire
