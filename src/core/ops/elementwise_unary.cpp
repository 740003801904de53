// SPDX-License-Identifier: Apache-2.0
// Element-wise operations of one operand: y[i] = f(x[i]), y has the shape of x.

#include <cmath>

#include "core/ops/math.h"
#include "core/ops/rows.h"

namespace tracefire {
namespace {

template <const TypeRule& rule>
Status infer_unary(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, rule));
  set_output(node, inputs[0].dtype, inputs[0].shape);
  return {};
}

template <const TypeRule& rule>
Status infer_test(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, rule));
  set_output(node, DType::kBool, inputs[0].shape);
  return {};
}

// Gradients. g is dL/dy; x and y are the operand and the result.
using Grads = std::vector<Value>;

Grads grad_zero(GradContext&) { return {Value{}}; }
Grads grad_pass(GradContext& c) { return {c.out_grads[0]}; }
Grads grad_neg(GradContext& c) { return {Math(c.b).neg(c.out_grads[0])}; }
Grads grad_abs(GradContext& c) {
  Math m(c.b);
  return {m.mul(c.out_grads[0], m.op("sign", {c.inputs[0]}))};
}
Grads grad_exp(GradContext& c) { return {Math(c.b).mul(c.out_grads[0], c.outputs[0])}; }
Grads grad_expm1(GradContext& c) {
  Math m(c.b);
  return {m.mul(c.out_grads[0], m.shift(c.outputs[0], 1))};
}
Grads grad_log(GradContext& c) { return {Math(c.b).div(c.out_grads[0], c.inputs[0])}; }
Grads grad_log1p(GradContext& c) {
  Math m(c.b);
  return {m.div(c.out_grads[0], m.shift(c.inputs[0], 1))};
}
Grads grad_sqrt(GradContext& c) {
  Math m(c.b);
  return {m.div(m.scale(c.out_grads[0], 0.5), c.outputs[0])};
}
Grads grad_rsqrt(GradContext& c) {
  Math m(c.b);
  const Value cube = m.mul(m.square(c.outputs[0]), c.outputs[0]);
  return {m.mul(m.scale(c.out_grads[0], -0.5), cube)};
}
Grads grad_square(GradContext& c) {
  Math m(c.b);
  return {m.mul(c.out_grads[0], m.scale(c.inputs[0], 2))};
}
Grads grad_reciprocal(GradContext& c) {
  Math m(c.b);
  return {m.neg(m.mul(c.out_grads[0], m.square(c.outputs[0])))};
}
Grads grad_tanh(GradContext& c) {
  Math m(c.b);
  return {m.mul(c.out_grads[0], m.sub(m.scalar(1, c.outputs[0]), m.square(c.outputs[0])))};
}
Grads grad_sigmoid(GradContext& c) {
  Math m(c.b);
  const Value y = c.outputs[0];
  return {m.mul(c.out_grads[0], m.mul(y, m.sub(m.scalar(1, y), y)))};
}
Grads grad_relu(GradContext& c) {
  Math m(c.b);
  const Value zero = m.scalar(0, c.outputs[0]);
  return {m.select(m.op("greater", {c.outputs[0], zero}), c.out_grads[0], zero)};
}
Grads grad_erf(GradContext& c) {  // 2 / sqrt(pi) exp(-x^2)
  Math m(c.b);
  const Value bell = m.op("exp", {m.neg(m.square(c.inputs[0]))});
  return {m.mul(m.scale(c.out_grads[0], 2 / std::sqrt(M_PI)), bell)};
}
Grads grad_erf_inv(GradContext& c) {  // sqrt(pi) / 2 exp(y^2)
  Math m(c.b);
  const Value slope = m.op("exp", {m.square(c.outputs[0])});
  return {m.mul(m.scale(c.out_grads[0], std::sqrt(M_PI) / 2), slope)};
}
Grads grad_sin(GradContext& c) {
  Math m(c.b);
  return {m.mul(c.out_grads[0], m.op("cos", {c.inputs[0]}))};
}
Grads grad_cos(GradContext& c) {
  Math m(c.b);
  return {m.neg(m.mul(c.out_grads[0], m.op("sin", {c.inputs[0]})))};
}

constexpr Gradient kZero(grad_zero, 0, 0);
constexpr uint32_t kX = 1, kY = 1;  // residual masks: reads input 0, reads result 0

/// A transcendental function counts as eight operations.
constexpr CostFn kSimple = elementwise_cost<1>, kCurve = elementwise_cost<8>;

const Elementwise kUnary[] = {
    {"neg",
     "Neg",
     infer_unary<kReal>,
     {grad_neg, 0, 0},
     kSimple,
     "-x. Unsigned integers wrap around, as does the smallest signed one."},
    {"abs", "Abs", infer_unary<kReal>, {grad_abs, kX, 0}, kSimple, "|x|. The gradient at 0 is 0."},
    {"sign", "Sign", infer_unary<kReal>, kZero, kSimple,
     "-1, 0 or 1; NaN for NaN, and -0 for -0. Its gradient is 0 wherever it exists."},
    {"exp", "Exp", infer_unary<kFloating>, {grad_exp, 0, kY}, kCurve, "e to the power x."},
    {"expm1",
     "Expm1",
     infer_unary<kFloating>,
     {grad_expm1, 0, kY},
     kCurve,
     "e^x - 1, exact also for small |x|."},
    {"log",
     "Log",
     infer_unary<kFloating>,
     {grad_log, kX, 0},
     kCurve,
     "Natural logarithm; -inf at 0, NaN below."},
    {"log1p",
     "Log1p",
     infer_unary<kFloating>,
     {grad_log1p, kX, 0},
     kCurve,
     "log(1 + x), exact also for small |x|."},
    {"sqrt",
     "Sqrt",
     infer_unary<kFloating>,
     {grad_sqrt, 0, kY},
     kSimple,
     "Square root; NaN below 0."},
    {"rsqrt",
     "Rsqrt",
     infer_unary<kFloating>,
     {grad_rsqrt, 0, kY},
     elementwise_cost<2>,
     "1 / sqrt(x); inf at 0."},
    {"square", "Square", infer_unary<kReal>, {grad_square, kX, 0}, kSimple, "x * x."},
    {"reciprocal",
     "Reciprocal",
     infer_unary<kFloating>,
     {grad_reciprocal, 0, kY},
     kSimple,
     "1 / x."},
    {"tanh", "Tanh", infer_unary<kFloating>, {grad_tanh, 0, kY}, kCurve, "Hyperbolic tangent."},
    {"sigmoid",
     "Sigmoid",
     infer_unary<kFloating>,
     {grad_sigmoid, 0, kY},
     kCurve,
     "1 / (1 + e^-x), without overflow for any x."},
    {"relu",
     "Relu",
     infer_unary<kReal>,
     {grad_relu, 0, kY},
     kSimple,
     "max(x, 0); NaN for NaN. The gradient at 0 is 0."},
    {"erf",
     "Erf",
     infer_unary<kFloating>,
     {grad_erf, kX, 0},
     kCurve,
     "Error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."},
    {"erf_inv",
     "Erfinv",
     infer_unary<kFloating>,
     {grad_erf_inv, 0, kY},
     kCurve,
     "Inverse of erf; -inf at -1, inf at 1, NaN beyond."},
    {"sin", "Sin", infer_unary<kFloating>, {grad_sin, kX, 0}, kCurve, "Sine of x in radians."},
    {"cos", "Cos", infer_unary<kFloating>, {grad_cos, kX, 0}, kCurve, "Cosine of x in radians."},
    {"floor", "Floor", infer_unary<kFloating>, kZero, kSimple,
     "Largest whole number that is not above x. Its gradient is 0 wherever it exists."},
    {"ceil", "Ceil", infer_unary<kFloating>, kZero, kSimple,
     "Smallest whole number that is not below x. Its gradient is 0 wherever it exists."},
    {"round", "Round", infer_unary<kFloating>, kZero, kSimple,
     "Nearest whole number, the even one of two equally near, as IEEE 754 and NumPy round. Its "
     "gradient is 0 wherever it exists."},
    {"logical_not", "LogicalNot", infer_unary<kBoolean>, no_gradient("truth values have none"),
     kSimple, "true where x is false."},
    {"bitwise_not", "Invert", infer_unary<kIntegerOrBool>, no_gradient("integers have none"),
     kSimple, "Every bit turned; logical_not for bool."},
    {"is_nan", "IsNan", infer_test<kFloating>, no_gradient("truth values have none"), kSimple,
     "true where x is not a number. The result is bool."},
    {"is_finite", "IsFinite", infer_test<kFloating>, no_gradient("truth values have none"), kSimple,
     "true where x is neither infinite nor NaN. The result is bool."},
    {"stop_gradient", "StopGradient", infer_unary<kAnything>, kZero, traffic_cost,
     "x; no gradient flows through it."},
};

}  // namespace

std::vector<OpRow> unary_rows() {
  std::vector<OpRow> rows;
  for (const Elementwise& unary : kUnary) rows.push_back(elementwise_row(unary, {"x"}, "y"));
  rows.push_back(
      make_row(OpClass::kElementwise, "check_finite", "CheckNumerics", {"x"},
               {{"message", AttrType::kText, std::string(),
                 "what the error says about x, for example the layer's name"}},
               infer_unary<kFloating>, {grad_pass, 0, 0}, kSimple,
               "x; the run fails with error NotFinite where an element is NaN or infinite."));
  rows.back().checks_data = true;
  return rows;
}

}  // namespace tracefire
