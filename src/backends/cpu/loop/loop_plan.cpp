// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/loop/loop_plan.h"

#include <algorithm>

#include "core/base/status.h"

namespace tracefire::cpu {
namespace {

/// Scratch that a tile may take: most of a 32 KiB first-level cache.
constexpr size_t kScratchBytes = 24 * 1024;
constexpr int64_t kMinTile = 128, kMaxTile = 1024;

size_t index_of(LoopOp op) { return static_cast<size_t>(op); }
size_t index_of(DType dtype) { return static_cast<size_t>(dtype); }
size_t index_of(RegType type) { return static_cast<size_t>(type); }

bool narrow_float(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF8E4M3 ||
         dtype == DType::kF8E5M2;
}

RegType must_reg_type(DType dtype) {
  RegType type = RegType::kF32;
  reg_type(dtype, &type);
  return type;
}

TileFn map_function(const LoopInstr& instr) {
  const TileTable& table = tile_table();
  RegType from;
  if (!reg_type(instr.from, &from)) return nullptr;
  return instr.op == LoopOp::kCast ? table.casts[index_of(from)][index_of(instr.dtype)]
                                   : table.ops[index_of(instr.op)][index_of(from)];
}

FiniteFn finite_function(DType dtype) {
  const RegType type = must_reg_type(dtype);
  return type == RegType::kF32   ? tile_table().finite_f32
         : type == RegType::kF64 ? tile_table().finite_f64
                                 : nullptr;
}

/// Rough cost of one element in nanoseconds.
double op_cost(LoopOp op) {
  switch (op) {
    case LoopOp::kConst: return 0;
    case LoopOp::kExp:
    case LoopOp::kExpm1:
    case LoopOp::kLog:
    case LoopOp::kLog1p:
    case LoopOp::kSigmoid:
    case LoopOp::kSin:
    case LoopOp::kCos: return 1.0;
    case LoopOp::kThreefry:
    case LoopOp::kPhilox:
    case LoopOp::kErf:
    case LoopOp::kTanh: return 2.0;
    case LoopOp::kErfInv: return 4.0;
    case LoopOp::kPow:
    case LoopOp::kFloorMod: return 7.0;
    case LoopOp::kAtan2: return 16.0;
    default: return 0.1;
  }
}

/// Hands out scratch slots; a slot is free again after the last step that reads its register.
class SlotAllocator {
 public:
  int32_t take() {
    if (free_.empty()) return count_++;
    const int32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  /// A slot that no register had before: for what is filled once, before the first step runs.
  int32_t take_fresh() { return count_++; }
  void give(int32_t slot) { free_.push_back(slot); }
  int32_t count() const { return count_; }

 private:
  std::vector<int32_t> free_;
  int32_t count_ = 0;
};

/// Builds a plan instruction by instruction.
class Planner {
 public:
  Planner(const LoopProgram& program, const BoundLoop& bound, bool write_through)
      : program_(program), bound_(bound), write_through_(write_through) {}

  LoopPlan make() {
    plan_.slot_size = 1;
    find_uses();
    add_inputs();
    for (size_t i = 0; i < program_.body.size(); ++i) add_instr(i);
    add_outputs();
    plan_.slots = slots_.count();
    choose_tile();
    return std::move(plan_);
  }

 private:
  using Home = LoopPlan::Home;
  using Kind = LoopPlan::Kind;

  int32_t inputs() const { return static_cast<int32_t>(program_.inputs.size()); }
  /// A register that a check passes on stands for the register checked.
  int32_t resolve(int32_t reg) const {
    while (reg >= inputs()) {
      const LoopInstr& instr = program_.body[static_cast<size_t>(reg - inputs())];
      if (instr.op != LoopOp::kCheckFinite) break;
      reg = instr.a;
    }
    return reg;
  }

  /// last_use_[reg]: the last instruction that reads it, body.size() for results, -1 for none.
  void find_uses() {
    const size_t count = program_.inputs.size() + program_.body.size();
    last_use_.assign(count, -1);
    result_of_.assign(count, -1);
    for (size_t i = 0; i < program_.body.size(); ++i) {
      const LoopInstr& instr = program_.body[i];
      if (instr.op == LoopOp::kThreefry || instr.op == LoopOp::kPhilox) continue;
      for (int32_t operand : {instr.a, instr.b, instr.c}) {
        if (operand >= 0) last_use_[static_cast<size_t>(resolve(operand))] = static_cast<int>(i);
      }
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const size_t reg = static_cast<size_t>(resolve(program_.outputs[i].reg));
      last_use_[reg] = static_cast<int>(program_.body.size());
      if (result_of_[reg] < 0) result_of_[reg] = static_cast<int>(i);
    }
  }

  void place(LoopPlan::Register* reg, Home home) {
    reg->home = home;
    reg->index = home == Home::kFixed ? slots_.take_fresh() : slots_.take();
    plan_.slot_size = std::max(plan_.slot_size, reg_size(reg->type));
  }

  void add_inputs() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const LoopProgram::Input& from = program_.inputs[i];
      LoopPlan::Input input;
      LoopPlan::Register reg;
      input.dtype = from.dtype;
      input.size = dtype_size(from.dtype);
      input.gather = __builtin_ctzll(input.size);
      input.load = tile_table().loads[index_of(from.dtype)];
      reg.type = must_reg_type(from.dtype);
      if (!from.is_key && last_use_[i] >= 0) {
        input.reg = static_cast<int32_t>(i);
        const bool scalar = bound_.access[i] == BoundLoop::Access::kScalar;
        // Where results share arrays with inputs, an input that is itself a result is read first.
        const bool safe = write_through_ || result_of_[i] < 0;
        const bool direct =
            bound_.access[i] == BoundLoop::Access::kFlat && !input.load && safe;
        if (scalar) {
          place(&reg, Home::kFixed);
        } else if (direct) {
          reg.home = Home::kInput;
          reg.index = static_cast<int32_t>(i);
        } else {
          place(&reg, Home::kSlot);
        }
        plan_.cost += direct || scalar ? 0.1 : 0.5;
      }
      plan_.inputs.push_back(input);
      plan_.registers.push_back(reg);
    }
  }

  /// The result that the register can be computed in, or -1.
  int output_home(size_t reg, DType dtype) const {
    const int output = result_of_[reg];
    if (!write_through_ || output < 0) return -1;
    const DType stored = program_.outputs[static_cast<size_t>(output)].dtype;
    const bool same = !narrow_float(stored) && must_reg_type(stored) == must_reg_type(dtype);
    return same ? output : -1;
  }

  void add_instr(size_t index) {
    const LoopInstr& instr = program_.body[index];
    const size_t reg_index = program_.inputs.size() + index;
    LoopPlan::Register reg;
    reg.type = must_reg_type(instr.dtype);
    plan_.cost += op_cost(instr.op);
    if (instr.op == LoopOp::kCheckFinite) {
      LoopPlan::Step step;
      step.kind = Kind::kCheckFinite;
      step.finite = finite_function(instr.from);
      step.a = resolve(instr.a);
      plan_.steps.push_back(step);
      plan_.registers.push_back(reg);
      release_operands(instr, index);
      return;
    }
    if (last_use_[reg_index] < 0) {  // nobody reads it
      plan_.registers.push_back(reg);
      release_operands(instr, index);
      return;
    }
    if (instr.op == LoopOp::kConst) {
      place(&reg, Home::kFixed);
      plan_.registers.push_back(reg);
      plan_.constants.push_back({static_cast<int32_t>(reg_index), instr.imm, instr.imm_int});
      return;
    }
    // Operands are released only after the result has its place: functions may not overlap.
    const int output = output_home(reg_index, instr.dtype);
    if (output >= 0) {
      reg.home = Home::kOutput;
      reg.index = output;
    } else {
      place(&reg, Home::kSlot);
    }
    plan_.registers.push_back(reg);
    add_step(instr, static_cast<int32_t>(reg_index));
    release_operands(instr, index);
  }

  void add_step(const LoopInstr& instr, int32_t out) {
    LoopPlan::Step step;
    step.out = out;
    step.axis = instr.axis;
    const TileTable& table = tile_table();
    switch (instr.op) {
      case LoopOp::kIndex:
        step.kind = Kind::kIndex;
        break;
      case LoopOp::kThreefry:
      case LoopOp::kPhilox: {
        const bool wide = dtype_size(instr.dtype) == 8, philox = instr.op == LoopOp::kPhilox;
        step.kind = Kind::kRandom;
        step.random = philox ? (wide ? table.philox64 : table.philox32)
                             : (wide ? table.threefry64 : table.threefry32);
        step.a = instr.a;  // the input's number, not a register
        break;
      }
      case LoopOp::kBitcast:
        step.kind = Kind::kBitcast;
        step.a = resolve(instr.a);
        if (narrow_float(instr.from)) step.unload = table.stores[index_of(instr.from)];
        if (narrow_float(instr.dtype)) step.reload = table.loads[index_of(instr.dtype)];
        break;
      default:
        step.fn = map_function(instr);
        step.a = resolve(instr.a);
        step.b = instr.b < 0 ? -1 : resolve(instr.b);
        step.c = instr.c < 0 ? -1 : resolve(instr.c);
    }
    plan_.steps.push_back(step);
  }

  void release_operands(const LoopInstr& instr, size_t index) {
    if (instr.op == LoopOp::kThreefry || instr.op == LoopOp::kPhilox) return;
    std::vector<int32_t> operands;
    for (int32_t operand : {instr.a, instr.b, instr.c}) {
      if (operand < 0) continue;
      const int32_t reg = resolve(operand);
      if (std::find(operands.begin(), operands.end(), reg) != operands.end()) continue;
      operands.push_back(reg);
      const LoopPlan::Register& from = plan_.registers[static_cast<size_t>(reg)];
      const bool dead = last_use_[static_cast<size_t>(reg)] == static_cast<int>(index);
      if (dead && from.home == Home::kSlot) slots_.give(from.index);
    }
  }

  void add_outputs() {
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const DType dtype = program_.outputs[i].dtype;
      LoopPlan::Output output;
      output.size = dtype_size(dtype);
      output.reg = resolve(program_.outputs[i].reg);
      output.store = tile_table().stores[index_of(dtype)];
      const LoopPlan::Register& reg = plan_.registers[static_cast<size_t>(output.reg)];
      output.in_home = reg.home == Home::kOutput && reg.index == static_cast<int32_t>(i);
      plan_.cost += output.in_home ? 0.1 : 0.2;
      plan_.outputs.push_back(output);
    }
  }

  void choose_tile() {
    const size_t per_element = static_cast<size_t>(std::max(plan_.slots, 1)) * plan_.slot_size;
    const int64_t fits = static_cast<int64_t>(kScratchBytes / per_element) / 64 * 64;
    plan_.tile = std::clamp(fits, kMinTile, kMaxTile);
  }

  const LoopProgram& program_;
  const BoundLoop& bound_;
  const bool write_through_;
  LoopPlan plan_;
  SlotAllocator slots_;
  std::vector<int> last_use_;
  std::vector<int> result_of_;
};

}  // namespace

std::string loop_refusal(const LoopProgram& program) {
  RegType type;
  for (const LoopProgram::Input& input : program.inputs) {
    if (!input.is_key && !reg_type(input.dtype, &type)) {
      return concat_text("elements of ", dtype_name(input.dtype), " are not numbers");
    }
  }
  for (const LoopInstr& instr : program.body) {
    bool known = true;
    switch (instr.op) {
      case LoopOp::kConst:
      case LoopOp::kIndex:
      case LoopOp::kThreefry:
      case LoopOp::kPhilox: known = reg_type(instr.dtype, &type); break;
      case LoopOp::kBitcast:
        known = reg_type(instr.from, &type) && reg_type(instr.dtype, &type);
        break;
      case LoopOp::kCheckFinite: known = finite_function(instr.from) != nullptr; break;
      default: known = map_function(instr) != nullptr;
    }
    if (!known) {
      return concat_text("no ", loop_op_name(instr.op), " on ", dtype_name(instr.from),
                         " elements");
    }
  }
  return "";
}

LoopPlan make_loop_plan(const LoopProgram& program, const BoundLoop& bound, bool write_through) {
  return Planner(program, bound, write_through).make();
}

}  // namespace tracefire::cpu
