// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emit/loop_source.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "core/base/status.h"

namespace tracefire::cuda {
namespace {

using Access = BoundLoop::Access;

/// Type of an element in memory; "" where loops have none.
const char* memory_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "uint8_t";
    case DType::kI8:
      return "int8_t";
    case DType::kI16:
      return "int16_t";
    case DType::kI32:
      return "int32_t";
    case DType::kI64:
      return "int64_t";
    case DType::kU8:
      return "uint8_t";
    case DType::kU16:
      return "uint16_t";
    case DType::kU32:
      return "uint32_t";
    case DType::kU64:
      return "uint64_t";
    case DType::kF8E4M3:
      return "tf_e4m3";
    case DType::kF8E5M2:
      return "tf_e5m2";
    case DType::kF16:
      return "tf_f16";
    case DType::kBF16:
      return "tf_bf16";
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
    default:
      return "";
  }
}

bool narrow(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF8E4M3 ||
         dtype == DType::kF8E5M2;
}

/// Type of a register: narrow floating types are computed in f32.
std::string register_type(DType dtype) {
  if (dtype == DType::kBool) return "bool";
  return narrow(dtype) ? "float" : memory_type(dtype);
}

enum class Class { kReal, kInt, kBool };
Class class_of(DType dtype) {
  if (dtype == DType::kBool) return Class::kBool;
  return is_floating(dtype) ? Class::kReal : Class::kInt;
}

std::string reg(int32_t number) { return "r" + std::to_string(number); }

/// Suffix of C's functions: expf for float, exp for double.
std::string with_suffix(const char* function, DType from) {
  return std::string(function) + (from == DType::kF64 ? "" : "f");
}

std::string number_text(const LoopInstr& instr) {
  if (class_of(instr.dtype) == Class::kBool) return instr.imm_int != 0 ? "true" : "false";
  if (class_of(instr.dtype) == Class::kInt) {
    // The smallest 64-bit number has no literal of its own.
    return "(" + register_type(instr.dtype) + ")" +
           std::to_string(static_cast<uint64_t>(instr.imm_int)) + "ull";
  }
  if (std::isnan(instr.imm)) return "(" + register_type(instr.dtype) + ")NAN";
  if (std::isinf(instr.imm)) {
    return "(" + register_type(instr.dtype) + ")" + (instr.imm < 0 ? "-INFINITY" : "INFINITY");
  }
  char text[64];
  std::snprintf(text, sizeof text, instr.dtype == DType::kF64 ? "%a" : "%af", instr.imm);
  return text;
}

/// From a register of type `from` to one that holds a value of type `to`.
std::string cast_text(const std::string& x, DType from, DType to) {
  const Class source = class_of(from);
  switch (to) {
    case DType::kBool:
      return source == Class::kBool ? x : "(" + x + " != 0)";
    case DType::kF16:
      return "tf_float(tf_to_f16(tf_source(" + x + ")))";
    case DType::kBF16:
      return "tf_float(tf_to_bf16(tf_source(" + x + ")))";
    case DType::kF8E4M3:
      return "tf_float(tf_to_e4m3(tf_source(" + x + ")))";
    case DType::kF8E5M2:
      return "tf_float(tf_to_e5m2(tf_source(" + x + ")))";
    default:
      break;
  }
  if (source == Class::kReal && class_of(to) == Class::kInt) {
    return "tf_to_int<" + register_type(to) + ">(" + x + ")";
  }
  return "(" + register_type(to) + ")" + x;
}

/// A register's value as an element in memory.
std::string store_text(const std::string& x, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "(uint8_t)(" + x + " ? 1 : 0)";
    case DType::kF16:
      return "tf_to_f16(" + x + ")";
    case DType::kBF16:
      return "tf_to_bf16(" + x + ")";
    case DType::kF8E4M3:
      return "tf_to_e4m3(" + x + ")";
    case DType::kF8E5M2:
      return "tf_to_e5m2(" + x + ")";
    default:
      return x;
  }
}

std::string load_text(const std::string& x, DType dtype) {
  if (dtype == DType::kBool) return "(" + x + " != 0)";
  return narrow(dtype) ? "tf_float(" + x + ")" : x;
}

std::string bitcast_text(const std::string& x, DType from, DType to) {
  const std::string bits = store_text(x, from);
  const std::string moved = std::string("tf_bits<") + memory_type(to) + ">(" + bits + ")";
  return load_text(moved, to);
}

std::optional<std::string> unary(const LoopInstr& i, const std::string& a) {
  const Class c = class_of(i.from);
  const auto real = [&](const std::string& text) {
    return c == Class::kReal ? std::optional<std::string>(text) : std::nullopt;
  };
  const auto call = [&](const char* function) {
    return real(with_suffix(function, i.from) + "(" + a + ")");
  };
  const std::string one = i.from == DType::kF64 ? "1." : "1.f";
  switch (i.op) {
    case LoopOp::kNeg:
      return c == Class::kReal  ? std::optional("-" + a)
             : c == Class::kInt ? std::optional("tf_int_neg(" + a + ")")
                                : std::nullopt;
    case LoopOp::kAbs:
      return c == Class::kReal  ? call("fabs")
             : c == Class::kInt ? std::optional("tf_int_abs(" + a + ")")
                                : std::nullopt;
    case LoopOp::kSign:
      if (c == Class::kBool) return std::nullopt;
      return "tf_sign(" + a + ")";
    case LoopOp::kExp:
      return call("exp");
    case LoopOp::kExpm1:
      return call("expm1");
    case LoopOp::kLog:
      return call("log");
    case LoopOp::kLog1p:
      return call("log1p");
    case LoopOp::kSqrt:
      return call("sqrt");
    case LoopOp::kRsqrt:
      return real(one + " / " + with_suffix("sqrt", i.from) + "(" + a + ")");
    case LoopOp::kSquare:
      return c == Class::kReal  ? std::optional(a + " * " + a)
             : c == Class::kInt ? std::optional("tf_int_mul(" + a + ", " + a + ")")
                                : std::nullopt;
    case LoopOp::kReciprocal:
      return real(one + " / " + a);
    case LoopOp::kTanh:
      return call("tanh");
    case LoopOp::kSigmoid:
      return real("tf_sigmoid(" + a + ")");
    case LoopOp::kRelu:
      if (c == Class::kBool) return std::nullopt;
      return a + " < 0 ? (" + register_type(i.dtype) + ")0 : " + a;
    case LoopOp::kErf:
      return call("erf");
    case LoopOp::kErfInv:
      return call("erfinv");
    case LoopOp::kSin:
      return call("sin");
    case LoopOp::kCos:
      return call("cos");
    case LoopOp::kFloor:
      return call("floor");
    case LoopOp::kCeil:
      return call("ceil");
    case LoopOp::kRound:
      return call("rint");
    case LoopOp::kLogicalNot:
      return c == Class::kBool ? std::optional("!" + a) : std::nullopt;
    case LoopOp::kBitwiseNot:
      return c == Class::kBool  ? std::optional("!" + a)
             : c == Class::kInt ? std::optional("(" + register_type(i.dtype) + ")~" + a)
                                : std::nullopt;
    case LoopOp::kIsNan:
      return real(a + " != " + a);
    case LoopOp::kIsFinite:
      return real("tf_finite(" + a + ")");
    case LoopOp::kCheckFinite:
      return real(a);
    case LoopOp::kCast:
      return cast_text(a, i.from, i.dtype);
    case LoopOp::kBitcast:
      return bitcast_text(a, i.from, i.dtype);
    default:
      return std::nullopt;
  }
}

std::optional<std::string> binary(const LoopInstr& i, const std::string& a, const std::string& b) {
  const Class c = class_of(i.from);
  const auto infix = [&](const char* op) { return "(" + a + " " + op + " " + b + ")"; };
  const auto call = [&](const char* f) { return std::string(f) + "(" + a + ", " + b + ")"; };
  const auto pick = [&](std::optional<std::string> real, std::optional<std::string> whole,
                        std::optional<std::string> truth = std::nullopt) {
    return c == Class::kReal ? real : c == Class::kInt ? whole : truth;
  };
  const std::string type = "(" + register_type(i.dtype) + ")";
  switch (i.op) {
    case LoopOp::kAdd:
      return pick(infix("+"), call("tf_int_add"));
    case LoopOp::kSub:
      return pick(infix("-"), call("tf_int_sub"));
    case LoopOp::kMul:
      return pick(infix("*"), call("tf_int_mul"));
    case LoopOp::kDiv:
      return pick(infix("/"), call("tf_int_div"));
    case LoopOp::kFloorDiv:
      return pick(call("tf_floor_div"), call("tf_int_div"));
    case LoopOp::kFloorMod:
      return pick(call("tf_floor_mod"), call("tf_int_mod"));
    case LoopOp::kPow:
      return pick(call(with_suffix("pow", i.from).c_str()), call("tf_int_pow"));
    case LoopOp::kMaximum:
      return pick(call("tf_max"), call("tf_max"), infix("|"));
    case LoopOp::kMinimum:
      return pick(call("tf_min"), call("tf_min"), infix("&"));
    case LoopOp::kAtan2:
      return pick(call(with_suffix("atan2", i.from).c_str()), std::nullopt);
    case LoopOp::kEqual:
      return infix("==");
    case LoopOp::kNotEqual:
      return infix("!=");
    case LoopOp::kLess:
      return infix("<");
    case LoopOp::kLessEqual:
      return infix("<=");
    case LoopOp::kGreater:
      return infix(">");
    case LoopOp::kGreaterEqual:
      return infix(">=");
    case LoopOp::kLogicalAnd:
      return pick(std::nullopt, std::nullopt, infix("&"));
    case LoopOp::kLogicalOr:
      return pick(std::nullopt, std::nullopt, infix("|"));
    case LoopOp::kBitwiseAnd:
      return pick(std::nullopt, type + infix("&"), infix("&"));
    case LoopOp::kBitwiseOr:
      return pick(std::nullopt, type + infix("|"), infix("|"));
    case LoopOp::kBitwiseXor:
      return pick(std::nullopt, type + infix("^"), infix("!="));
    case LoopOp::kShiftLeft:
      return pick(std::nullopt, call("tf_shift_left"));
    case LoopOp::kShiftRight:
      return pick(std::nullopt, call("tf_shift_right"));
    default:
      return std::nullopt;
  }
}

/// The value of an instruction with register operands; nullopt where its types have none. Sources
/// (constants, coordinates, random words) are the caller's.
std::optional<std::string> expression(const LoopInstr& i) {
  if (i.op == LoopOp::kSelect) {
    return reg(i.a) + " ? " + reg(i.b) + " : " + reg(i.c);
  }
  if (i.op == LoopOp::kFma) {
    if (class_of(i.from) != Class::kReal) return std::nullopt;
    return with_suffix("fma", i.from) + "(" + reg(i.a) + ", " + reg(i.b) + ", " + reg(i.c) + ")";
  }
  if (loop_op_operands(i.op) == 1) return unary(i, reg(i.a));
  return binary(i, reg(i.a), reg(i.b));
}

bool is_random(LoopOp op) { return op == LoopOp::kThreefry || op == LoopOp::kPhilox; }

uint64_t hash(const std::string& text) {
  uint64_t value = 0xcbf29ce484222325u;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return value;
}

/// Writes one kernel.
class Writer {
 public:
  Writer(const LoopProgram& program, const LoopVariant& variant)
      : program_(program), variant_(variant) {}

  LoopSource write() {
    source_.name = loop_kernel_name(program_, variant_);
    find_uses();
    parameters();
    source_.text += "  TF_WAIT;\n  const tf_i first = (" + index_from_thread() + ")" +
                    (variant_.vector > 1 ? " * " + std::to_string(variant_.vector) : "") + ";\n" +
                    "  if (first >= n) return;\n";
    if (has_strided()) coordinates();
    loads();
    body();
    stores();
    source_.text += "}\n";
    return std::move(source_);
  }

 private:
  bool has_strided() const {
    return std::count(variant_.access.begin(), variant_.access.end(), Access::kStrided) > 0;
  }
  std::string index_type() const { return variant_.wide ? "uint64_t" : "uint32_t"; }
  std::string divisor_type() const { return variant_.wide ? "tf_div64" : "tf_div"; }
  std::string index_from_thread() const {
    return variant_.wide ? "(uint64_t)blockIdx.x * blockDim.x + threadIdx.x"
                         : "blockIdx.x * blockDim.x + threadIdx.x";
  }
  std::string lanes() const { return std::to_string(variant_.vector); }
  void line(const std::string& text) { source_.text += "  " + text + "\n"; }

  void find_uses() {
    used_.assign(program_.inputs.size() + program_.body.size(), false);
    for (const LoopProgram::Output& output : program_.outputs)
      used_[static_cast<size_t>(output.reg)] = true;
    for (size_t i = program_.body.size(); i-- > 0;) {
      const LoopInstr& instr = program_.body[i];
      if (instr.op == LoopOp::kCheckFinite) used_[program_.inputs.size() + i] = true;
      if (!used_[program_.inputs.size() + i]) continue;
      if (is_random(instr.op)) continue;
      for (const int32_t operand : {instr.a, instr.b, instr.c}) {
        if (operand >= 0) used_[static_cast<size_t>(operand)] = true;
      }
      if (instr.op == LoopOp::kIndex &&
          std::find(source_.index_axes.begin(), source_.index_axes.end(), instr.axis) ==
              source_.index_axes.end()) {
        source_.index_axes.push_back(instr.axis);
      }
      source_.reports = source_.reports || instr.op == LoopOp::kCheckFinite;
    }
    std::sort(source_.index_axes.begin(), source_.index_axes.end());
  }

  void parameters() {
    std::vector<std::string> list;
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const LoopProgram::Input& input = program_.inputs[i];
      const char* type = input.is_key ? "uint32_t" : memory_type(input.dtype);
      list.push_back(std::string("const ") + type + "* in" + std::to_string(i));
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      list.push_back(std::string(memory_type(program_.outputs[i].dtype)) + "* out" +
                     std::to_string(i));
    }
    list.push_back(index_type() + " n");
    if (has_strided()) {
      for (int axis = 1; axis < variant_.axes; ++axis) {
        list.push_back(divisor_type() + " size" + std::to_string(axis));
      }
      for (size_t i = 0; i < variant_.access.size(); ++i) {
        if (variant_.access[i] != Access::kStrided) continue;
        for (int axis = 0; axis < variant_.axes; ++axis) {
          list.push_back(index_type() + " s" + std::to_string(i) + "_" + std::to_string(axis));
        }
      }
    }
    for (const int axis : source_.index_axes) {
      list.push_back(divisor_type() + " axis_stride" + std::to_string(axis));
      list.push_back(divisor_type() + " axis_size" + std::to_string(axis));
    }
    if (source_.reports) {
      list.push_back("tf_error* error");
      list.push_back("unsigned step");
    }
    source_.text = "extern \"C\" __global__ void __launch_bounds__(256) " + source_.name + "(";
    for (size_t i = 0; i < list.size(); ++i) source_.text += (i == 0 ? "" : ", ") + list[i];
    source_.text += ") {\n  typedef " + index_type() + " tf_i;\n";
  }

  /// Coordinates c0 … of element `first` over the merged axes.
  void coordinates() {
    line("tf_i rest = first;");
    for (int axis = variant_.axes - 1; axis > 0; --axis) {
      const std::string a = std::to_string(axis);
      line("const tf_i q" + a + " = tf_quotient(rest, size" + a + "), c" + a + " = rest - q" + a +
           " * (tf_i)size" + a + ".divisor; rest = q" + a + ";");
    }
    line("const tf_i c0 = rest;");
  }

  void loads() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      if (program_.inputs[i].is_key || !used_[i]) continue;
      const std::string number = std::to_string(i);
      const std::string type = memory_type(program_.inputs[i].dtype);
      switch (variant_.access[i]) {
        case Access::kScalar:
          line("const " + type + " x" + number + " = in" + number + "[0];");
          break;
        case Access::kFlat:
          line("const tf_pack<" + type + ", " + lanes() + "> x" + number + " = *(const tf_pack<" +
               type + ", " + lanes() + ">*)(in" + number + " + first);");
          break;
        case Access::kStrided:
          strided_load(number, type);
          break;
      }
    }
  }

  /// With more than one element a thread, the innermost axis holds whole groups of elements.
  void strided_load(const std::string& number, const std::string& type) {
    std::string offset;
    for (int axis = 0; axis < variant_.axes; ++axis) {
      const std::string a = std::to_string(axis);
      offset += (axis == 0 ? "" : " + ") + ("c" + a) + " * s" + number + "_" + a;
    }
    line("tf_pack<" + type + ", " + lanes() + "> x" + number + ";");
    const std::string inner = "s" + number + "_" + std::to_string(variant_.axes - 1);
    line("{ const " + type + "* at = in" + number + " + (" + offset + ");");
    for (int v = 0; v < variant_.vector; ++v) {
      line("  x" + number + ".at[" + std::to_string(v) + "] = at[" + std::to_string(v) + " * " +
           inner + "];");
    }
    line("}");
  }

  std::string loaded(size_t i) const {
    const std::string x = "x" + std::to_string(i);
    return load_text(variant_.access[i] == Access::kScalar ? x : x + ".at[v]",
                     program_.inputs[i].dtype);
  }

  void body() {
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      line(std::string("tf_pack<") + memory_type(program_.outputs[i].dtype) + ", " + lanes() +
           "> y" + std::to_string(i) + ";");
    }
    line("#pragma unroll");
    line("for (int v = 0; v < " + lanes() + "; ++v) {");
    line("  const tf_i i = first + v;");
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      if (program_.inputs[i].is_key || !used_[i]) continue;
      line("  const " + register_type(program_.inputs[i].dtype) + " " +
           reg(static_cast<int32_t>(i)) + " = " + loaded(i) + ";");
    }
    for (size_t i = 0; i < program_.body.size(); ++i) instruction(i);
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const LoopProgram::Output& output = program_.outputs[i];
      line("  y" + std::to_string(i) + ".at[v] = " + store_text(reg(output.reg), output.dtype) +
           ";");
    }
    line("}");
  }

  void instruction(size_t index) {
    const LoopInstr& instr = program_.body[index];
    const size_t number = program_.inputs.size() + index;
    if (!used_[number]) return;
    std::string value;
    if (instr.op == LoopOp::kConst) {
      value = number_text(instr);
    } else if (instr.op == LoopOp::kIndex) {
      const std::string axis = std::to_string(instr.axis);
      line("  const tf_i w" + std::to_string(number) + " = tf_quotient(i, axis_stride" + axis +
           ");");
      const std::string w = "w" + std::to_string(number);
      value = "(" + register_type(instr.dtype) + ")(" + w + " - tf_quotient(" + w + ", axis_size" +
              axis + ") * (tf_i)axis_size" + axis + ".divisor)";
    } else if (is_random(instr.op)) {
      value = std::string(instr.op == LoopOp::kThreefry ? "tf_threefry" : "tf_philox") + "(in" +
              std::to_string(instr.a) + ", i)";
    } else {
      value = *expression(instr);
    }
    if (instr.op == LoopOp::kCheckFinite) {
      line("  if (!tf_finite(" + reg(instr.a) + ")) tf_report(error, step, " +
           std::to_string(static_cast<int>(ErrorCode::kNotFinite)) + "u, (int64_t)i);");
    }
    line("  const " + register_type(instr.dtype) + " " + reg(static_cast<int32_t>(number)) + " = " +
         value + ";");
  }

  void stores() {
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const std::string number = std::to_string(i);
      const std::string pack =
          std::string("tf_pack<") + memory_type(program_.outputs[i].dtype) + ", " + lanes() + ">";
      line("*(" + pack + "*)(out" + number + " + first) = y" + number + ";");
    }
  }

  const LoopProgram& program_;
  const LoopVariant& variant_;
  LoopSource source_;
  std::vector<bool> used_;  ///< registers that a result or a check needs
};

}  // namespace

std::string loop_kernel_name(const LoopProgram& program, const LoopVariant& variant) {
  std::string name = "tf";
  int listed = 0;
  for (const LoopInstr& instr : program.body) {
    if (instr.op == LoopOp::kConst || listed == 4) continue;
    name += std::string("_") + loop_op_name(instr.op);
    ++listed;
  }
  if (listed == 0) name += "_copy";
  char digits[20];
  std::snprintf(digits, sizeof digits, "_%016llx",
                static_cast<unsigned long long>(hash(program.key() + "|" + variant.str())));
  return name + digits;
}

std::string LoopVariant::str() const {
  std::string text;
  for (const Access one : access) {
    text += one == Access::kFlat ? 'F' : one == Access::kScalar ? 'C' : 'S';
  }
  return text + " a" + std::to_string(axes) + " v" + std::to_string(vector) +
         (wide ? " i64" : " i32");
}

LoopVariant choose_variant(const LoopProgram& program, const BoundLoop& bound,
                           int multiprocessors) {
  constexpr int64_t kMaxNarrow = (int64_t{1} << 31) - 1024;  // with room for the last block
  LoopVariant variant;
  variant.access = bound.access;
  variant.axes = bound.flat ? 1 : static_cast<int>(bound.sizes.size());
  // Offsets into strided inputs stay below their own sizes, which are at most the loop's.
  variant.wide = bound.elements > kMaxNarrow;
  bool groups = bound.elements % 4 == 0;
  if (!bound.flat) {
    groups = groups && bound.sizes.back() % 4 == 0;
    // Only steps that let a thread read neighbours or one element pay.
    for (size_t i = 0; i < bound.access.size(); ++i) {
      if (bound.access[i] == Access::kStrided) groups = groups && bound.strides[i].back() <= 1;
    }
  }
  // Fewer threads than this leave multiprocessors idle.
  const bool enough = bound.elements >= int64_t{4} * 128 * multiprocessors;
  if (groups && enough && !program.outputs.empty()) variant.vector = 4;
  return variant;
}

LoopVariant scalar_variant(LoopVariant variant) {
  variant.vector = 1;
  return variant;
}

std::string loop_refusal(const LoopProgram& program) {
  const auto no = [](DType dtype) {
    return "cuda: elements of " + std::string(dtype_name(dtype)) + " are not computed in loops";
  };
  for (const LoopProgram::Input& input : program.inputs) {
    if (*memory_type(input.dtype) == '\0') return no(input.dtype);
  }
  for (const LoopProgram::Output& output : program.outputs) {
    if (*memory_type(output.dtype) == '\0') return no(output.dtype);
  }
  for (const LoopInstr& instr : program.body) {
    if (*memory_type(instr.dtype) == '\0') return no(instr.dtype);
    if (*memory_type(instr.from) == '\0') return no(instr.from);
    const bool source = instr.op == LoopOp::kConst || instr.op == LoopOp::kIndex;
    if (source) continue;
    if (is_random(instr.op)) {
      if (instr.dtype == DType::kU32) continue;
      return "cuda: random words of " + std::string(dtype_name(instr.dtype)) + " in a loop";
    }
    if (instr.op == LoopOp::kBitcast && dtype_size(instr.dtype) != dtype_size(instr.from)) {
      return "cuda: bitcast between widths";
    }
    if (!expression(instr)) {
      return std::string("cuda: ") + loop_op_name(instr.op) + " of " +
             std::string(dtype_name(instr.from)) + " is not defined";
    }
  }
  return "";
}

LoopSource loop_source(const LoopProgram& program, const LoopVariant& variant) {
  return Writer(program, variant).write();
}

}  // namespace tracefire::cuda
