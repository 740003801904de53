// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emit/ready_loops.h"

namespace tracefire::cuda {
namespace {

using Access = BoundLoop::Access;

const std::vector<DType> kNumbers = {
    DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8,  DType::kI16, DType::kI32,
    DType::kI64, DType::kU8,  DType::kU16, DType::kU32,  DType::kU64, DType::kBool};

/// Types of which large arrays are usual: they also get kernels that take four elements a thread.
bool usual(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

/// As the emitter of loops chooses the type of a register.
DType register_type(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return DType::kF32;
    default:
      return dtype;
  }
}

bool compares(LoopOp op) {
  return op == LoopOp::kEqual || op == LoopOp::kNotEqual || op == LoopOp::kLess ||
         op == LoopOp::kLessEqual || op == LoopOp::kGreater || op == LoopOp::kGreaterEqual;
}

bool gives_truth(LoopOp op) {
  return compares(op) || op == LoopOp::kIsNan || op == LoopOp::kIsFinite ||
         op == LoopOp::kLogicalAnd || op == LoopOp::kLogicalOr || op == LoopOp::kLogicalNot;
}

LoopVariant flat_variant(size_t inputs, int vector) {
  LoopVariant variant;
  variant.access.assign(inputs, Access::kFlat);
  variant.vector = vector;
  return variant;
}

LoopVariant strided_variant(size_t inputs) {
  LoopVariant variant;
  variant.access.assign(inputs, Access::kStrided);
  variant.axes = kGeneralAxes;
  return variant;
}

/// Programs of one family, with the variants they are compiled in.
class Maker {
 public:
  std::vector<ReadyLoop> take() { return std::move(made_); }

  /// `types`: of the inputs; `op`: nothing for a copy. `bits`: a cast's type.
  void add(const std::vector<DType>& types, std::optional<LoopInstr> op, DType result) {
    ReadyLoop made;
    for (const DType type : types) made.program.inputs.push_back({type, Shape(), false});
    if (op) made.program.body.push_back(*op);
    const auto last = static_cast<int32_t>(types.size() + made.program.body.size()) - 1;
    made.program.outputs.push_back({last, result});
    if (!loop_refusal(made.program).empty()) return;
    bool large = usual(result) || result == DType::kBool;
    for (const DType type : types) large = large && (usual(type) || type == DType::kBool);
    if (large) made.variants.push_back(flat_variant(types.size(), 4));
    if (types.size() == 1) made.variants.push_back(flat_variant(1, 1));
    if (types.size() > 1 || !op) made.variants.push_back(strided_variant(types.size()));
    made_.push_back(std::move(made));
  }

  void operation(LoopOp op, DType type) {
    const size_t operands = static_cast<size_t>(loop_op_operands(op));
    const DType held = register_type(type);
    LoopInstr instr{.op = op, .dtype = gives_truth(op) ? DType::kBool : held, .from = held};
    int32_t* const registers[] = {&instr.a, &instr.b, &instr.c};
    for (size_t i = 0; i < operands; ++i) *registers[i] = static_cast<int32_t>(i);
    std::vector<DType> types(operands, type);
    if (op == LoopOp::kSelect) types[0] = DType::kBool;
    add(types, instr, gives_truth(op) ? DType::kBool : type);
  }

  void cast(DType from, DType to) {
    const DType source = register_type(from);
    const bool nothing_to_do = from == to || (source == register_type(to) && to == source);
    if (nothing_to_do) return add({from}, std::nullopt, to);
    add({from}, LoopInstr{.op = LoopOp::kCast, .dtype = to, .from = source, .a = 0}, to);
  }

  void bitcast(DType from, DType to) {
    add({from}, LoopInstr{.op = LoopOp::kBitcast, .dtype = to, .from = from, .a = 0}, to);
  }

  /// 0, 1, 2, … along an axis.
  void counting(int axis, DType counter, DType to) {
    ReadyLoop made;
    made.program.body.push_back(
        {.op = LoopOp::kIndex, .dtype = counter, .from = counter, .axis = axis});
    if (counter != to) {
      made.program.body.push_back({.op = LoopOp::kCast, .dtype = to, .from = counter, .a = 0});
    }
    made.program.outputs.push_back({static_cast<int32_t>(made.program.body.size()) - 1, to});
    made.variants = {flat_variant(0, 1)};
    made_.push_back(std::move(made));
  }

  void random(LoopOp op, DType to) {
    ReadyLoop made;
    made.program.inputs.push_back({DType::kU32, Shape(), true});
    made.program.body.push_back({.op = op, .dtype = DType::kU32, .from = DType::kU32, .a = 0});
    if (to != DType::kU32) {
      made.program.body.push_back({.op = LoopOp::kCast, .dtype = to, .from = DType::kU32, .a = 1});
    }
    made.program.outputs.push_back({static_cast<int32_t>(made.program.body.size()), to});
    for (const int vector : {1, 4}) {
      made.variants.push_back(flat_variant(1, vector));
      made.variants.back().access[0] = Access::kScalar;
    }
    made_.push_back(std::move(made));
  }

 private:
  std::vector<ReadyLoop> made_;
};

void add_operations(Maker* maker, int operands, bool comparing) {
  for (int i = 0; i < static_cast<int>(LoopOp::kCount); ++i) {
    const auto op = static_cast<LoopOp>(i);
    if (loop_op_operands(op) != operands || compares(op) != comparing) continue;
    if (op == LoopOp::kCast || op == LoopOp::kBitcast) continue;
    for (const DType type : kNumbers) maker->operation(op, type);
  }
}

}  // namespace

const std::vector<std::string>& ready_loop_families() {
  static const std::vector<std::string> families = {"unary", "binary", "compare", "cast", "other"};
  return families;
}

std::vector<ReadyLoop> ready_loops(const std::string& family) {
  Maker maker;
  if (family == "unary") {
    add_operations(&maker, 1, false);
  } else if (family == "binary") {
    add_operations(&maker, 2, false);
  } else if (family == "compare") {
    add_operations(&maker, 2, true);
    add_operations(&maker, 3, false);
  } else if (family == "cast") {
    for (const DType from : kNumbers) {
      for (const DType to : kNumbers) maker.cast(from, to);
    }
    for (const DType small : {DType::kF8E4M3, DType::kF8E5M2}) {
      for (const DType type : kNumbers) {
        maker.cast(small, type);
        maker.cast(type, small);
      }
      maker.cast(small, small);
    }
  } else if (family == "other") {
    for (int axis = 0; axis < 4; ++axis) {
      for (const DType to : kNumbers) maker.counting(axis, DType::kI32, to);
    }
    for (const LoopOp op : {LoopOp::kThreefry, LoopOp::kPhilox}) {
      for (const DType to : {DType::kU32, DType::kU16, DType::kU8}) maker.random(op, to);
    }
    for (const DType from : kNumbers) {
      for (const DType to : kNumbers) {
        const bool moves = from != to && dtype_size(from) == dtype_size(to);
        if (moves && from != DType::kBool && to != DType::kBool) maker.bitcast(from, to);
      }
    }
  }
  return maker.take();
}

std::optional<GeneralLoop> general_loop(const LoopProgram& program, const BoundLoop& bound) {
  constexpr int64_t kMaxNarrow = (int64_t{1} << 31) - 1024;  // with room for the last block
  if (bound.elements > kMaxNarrow) return std::nullopt;
  GeneralLoop general{bound, {}};
  bool strided = false;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    strided = strided || (program.inputs.size() > 1 && !program.inputs[i].is_key) ||
              bound.access[i] == Access::kStrided ||
              (bound.access[i] == Access::kScalar && !program.inputs[i].is_key);
  }
  general.variant.access = bound.access;
  if (!strided) return general;
  if (bound.sizes.size() > kGeneralAxes) return std::nullopt;
  const size_t missing = kGeneralAxes - bound.sizes.size();
  general.bound.flat = false;
  general.bound.sizes.insert(general.bound.sizes.begin(), missing, 1);
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    general.bound.strides[i].insert(general.bound.strides[i].begin(), missing, 0);
    general.bound.access[i] = Access::kStrided;
  }
  general.variant = strided_variant(program.inputs.size());
  return general;
}

}  // namespace tracefire::cuda
