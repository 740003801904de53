// SPDX-License-Identifier: Apache-2.0
#include "backends/api/loop.h"

#include <cmath>
#include <cstdio>

namespace tracefire {
namespace {

/// Name and number of register operands of each LoopOp, in the order of the enum.
struct LoopOpInfo {
  LoopOp op;
  const char* name;
  int operands;
};

constexpr LoopOpInfo kLoopOps[] = {
    {LoopOp::kConst, "const", 0},
    {LoopOp::kIndex, "index", 0},
    {LoopOp::kThreefry, "threefry", 0},
    {LoopOp::kPhilox, "philox", 0},
    {LoopOp::kNeg, "neg", 1},
    {LoopOp::kAbs, "abs", 1},
    {LoopOp::kSign, "sign", 1},
    {LoopOp::kExp, "exp", 1},
    {LoopOp::kExpm1, "expm1", 1},
    {LoopOp::kLog, "log", 1},
    {LoopOp::kLog1p, "log1p", 1},
    {LoopOp::kSqrt, "sqrt", 1},
    {LoopOp::kRsqrt, "rsqrt", 1},
    {LoopOp::kSquare, "square", 1},
    {LoopOp::kReciprocal, "reciprocal", 1},
    {LoopOp::kTanh, "tanh", 1},
    {LoopOp::kSigmoid, "sigmoid", 1},
    {LoopOp::kRelu, "relu", 1},
    {LoopOp::kErf, "erf", 1},
    {LoopOp::kErfInv, "erf_inv", 1},
    {LoopOp::kSin, "sin", 1},
    {LoopOp::kCos, "cos", 1},
    {LoopOp::kFloor, "floor", 1},
    {LoopOp::kCeil, "ceil", 1},
    {LoopOp::kRound, "round", 1},
    {LoopOp::kLogicalNot, "logical_not", 1},
    {LoopOp::kBitwiseNot, "bitwise_not", 1},
    {LoopOp::kIsNan, "is_nan", 1},
    {LoopOp::kIsFinite, "is_finite", 1},
    {LoopOp::kCast, "cast", 1},
    {LoopOp::kBitcast, "bitcast", 1},
    {LoopOp::kAdd, "add", 2},
    {LoopOp::kSub, "sub", 2},
    {LoopOp::kMul, "mul", 2},
    {LoopOp::kDiv, "div", 2},
    {LoopOp::kFloorDiv, "floor_div", 2},
    {LoopOp::kFloorMod, "floor_mod", 2},
    {LoopOp::kPow, "pow", 2},
    {LoopOp::kMaximum, "maximum", 2},
    {LoopOp::kMinimum, "minimum", 2},
    {LoopOp::kAtan2, "atan2", 2},
    {LoopOp::kEqual, "equal", 2},
    {LoopOp::kNotEqual, "not_equal", 2},
    {LoopOp::kLess, "less", 2},
    {LoopOp::kLessEqual, "less_equal", 2},
    {LoopOp::kGreater, "greater", 2},
    {LoopOp::kGreaterEqual, "greater_equal", 2},
    {LoopOp::kLogicalAnd, "logical_and", 2},
    {LoopOp::kLogicalOr, "logical_or", 2},
    {LoopOp::kBitwiseAnd, "bitwise_and", 2},
    {LoopOp::kBitwiseOr, "bitwise_or", 2},
    {LoopOp::kBitwiseXor, "bitwise_xor", 2},
    {LoopOp::kShiftLeft, "shift_left", 2},
    {LoopOp::kShiftRight, "shift_right", 2},
    {LoopOp::kSelect, "select", 3},
    {LoopOp::kFma, "fma", 3},
    {LoopOp::kCheckFinite, "check_finite", 1},
};

constexpr bool table_follows_enum() {
  for (size_t i = 0; i < std::size(kLoopOps); ++i) {
    if (static_cast<size_t>(kLoopOps[i].op) != i) return false;
  }
  return std::size(kLoopOps) == static_cast<size_t>(LoopOp::kCount);
}
static_assert(table_follows_enum(), "each LoopOp has its row, in the order of the enum");

/// Every bit of a floating immediate, so that equal texts are equal constants.
std::string exact(double value) {
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  char text[40];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

std::string plain(double value) {
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

/// "mul f32 r0 r1": everything of an instruction but its register number.
std::string instruction_text(const LoopInstr& instr, bool exact_numbers) {
  std::string text = loop_op_name(instr.op);
  text += ' ';
  text += dtype_name(instr.dtype);
  if (instr.from != instr.dtype) {
    text += " from ";
    text += dtype_name(instr.from);
  }
  if (instr.op == LoopOp::kConst) {
    text += ' ';
    if (is_floating(instr.dtype)) {
      text += exact_numbers ? exact(instr.imm) : plain(instr.imm);
    } else {
      text += std::to_string(instr.imm_int);
    }
    return text;
  }
  if (instr.op == LoopOp::kIndex) return text + " axis " + std::to_string(instr.axis);
  if (instr.op == LoopOp::kThreefry || instr.op == LoopOp::kPhilox) {
    return text + " key " + std::to_string(instr.a);
  }
  const int32_t operands[] = {instr.a, instr.b, instr.c};
  for (int i = 0; i < loop_op_operands(instr.op); ++i) {
    text += " r" + std::to_string(operands[i]);
  }
  return text;
}

}  // namespace

const char* loop_op_name(LoopOp op) { return kLoopOps[static_cast<size_t>(op)].name; }

int loop_op_operands(LoopOp op) { return kLoopOps[static_cast<size_t>(op)].operands; }

std::string LoopProgram::key() const {
  std::string text = "in";
  for (const Input& input : inputs) {
    text += ' ';
    text += input.is_key ? "key" : dtype_name(input.dtype);
  }
  for (const LoopInstr& instr : body) {
    text += "; ";
    text += instruction_text(instr, true);
  }
  text += "; out";
  for (const Output& output : outputs) {
    text += " r" + std::to_string(output.reg) + ' ';
    text += dtype_name(output.dtype);
  }
  return text;
}

std::string LoopProgram::str() const {
  std::string text = "loop " + shape.str() + " {\n";
  for (size_t i = 0; i < inputs.size(); ++i) {
    text += "  r" + std::to_string(i) + (inputs[i].is_key ? " = key " : " = input ");
    text += dtype_name(inputs[i].dtype);
    text += inputs[i].shape.str() + "\n";
  }
  for (size_t i = 0; i < body.size(); ++i) {
    text +=
        "  r" + std::to_string(inputs.size() + i) + " = " + instruction_text(body[i], false) + "\n";
  }
  for (const Output& output : outputs) {
    text += "  output r" + std::to_string(output.reg) + ' ';
    text += dtype_name(output.dtype);
    text += '\n';
  }
  return text + "}\n";
}

}  // namespace tracefire
