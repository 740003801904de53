// SPDX-License-Identifier: Apache-2.0
// Graph nodes -> loop programs: every result element from one element of each operand.

#include <unordered_map>

#include "core/compile/compile.h"
#include "core/compile/constants.h"
#include "core/compile/known_ops.h"

namespace tracefire {
namespace {

/// Longest table that a constant may become inside a loop (constants hold at most 64 bytes).
constexpr int64_t kMaxTable = 64;
/// Most axes of a loop that reads an operand by strides; bound loops have no more.
constexpr int kMaxRank = 8;

/// Type of a register that holds a value of `dtype`; kInvalid where loops have none. Narrow
/// floating types are computed in f32.
DType register_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
    case DType::kF32:
    case DType::kF64:
      return dtype;
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return DType::kF32;
    default:
      return DType::kInvalid;
  }
}

/// Builds one LoopProgram. Values of the source graph are registers of the loop.
class Emitter {
 public:
  explicit Emitter(const Shape& shape) : known_(KnownOps::get()) {
    program_ = std::make_shared<LoopProgram>();
    program_->shape = shape;
  }

  void input(Value value, const ValueType& type, bool is_key) {
    LoopProgram::Input input{type.dtype, type.shape, is_key};
    // A full-size operand under another shape walks in step with the loop; so does its declaration.
    if (type.shape.elements() == program_->shape.elements()) input.shape = program_->shape;
    if (!is_key && register_type(type.dtype) == DType::kInvalid) ok_ = false;
    if (!is_key && program_->shape.rank() > kMaxRank && input.shape != program_->shape &&
        input.shape.elements() != Dim(1)) {
      ok_ = false;
    }
    registers_[key(value)] = static_cast<int32_t>(program_->inputs.size());
    program_->inputs.push_back(std::move(input));
  }
  /// Must follow the last input().
  void node(const Graph& graph, const Node& node, Value result);
  void output(Value value, DType dtype) {
    if (ok_) program_->outputs.push_back({at(value), dtype});
  }
  bool ok() const { return ok_; }
  std::shared_ptr<const LoopProgram> finish() {
    return ok_ && !program_->outputs.empty() ? program_ : nullptr;
  }

 private:
  static uint64_t key(Value value) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(value.node)) << 32) |
           static_cast<uint32_t>(value.index);
  }
  int32_t at(Value value) {
    const auto it = registers_.find(key(value));
    if (it != registers_.end()) return it->second;
    ok_ = false;
    return -1;
  }
  int32_t add(LoopInstr instr) {
    program_->body.push_back(instr);
    return static_cast<int32_t>(program_->inputs.size() + program_->body.size()) - 1;
  }
  int32_t add(LoopOp op, DType dtype, DType from, int32_t a, int32_t b = -1, int32_t c = -1) {
    return add({.op = op, .dtype = dtype, .from = from, .a = a, .b = b, .c = c});
  }
  int32_t number(const Scalar& scalar) {
    const DType dtype = register_type(scalar.dtype);
    if (dtype == DType::kInvalid) ok_ = false;
    return add({.op = LoopOp::kConst,
                .dtype = dtype,
                .from = dtype,
                .imm = scalar.real,
                .imm_int = scalar.integer});
  }
  int32_t index(int axis, DType dtype) {
    return add({.op = LoopOp::kIndex, .dtype = dtype, .from = dtype, .axis = axis});
  }
  /// True where each element of the node belongs to one element of the loop: its shape broadcasts
  /// to the loop's, or is a reshape of it that only full-size and single elements go into.
  bool fits(const Graph& graph, const Node& node) const;
  int32_t constant(const Node& node);
  int32_t iota(const Node& node);
  int32_t random(const Node& node);
  int32_t convert(int32_t reg, DType from, DType to);

  const KnownOps& known_;
  std::shared_ptr<LoopProgram> program_;
  std::unordered_map<uint64_t, int32_t> registers_;
  bool ok_ = true;
};

bool Emitter::fits(const Graph& graph, const Node& node) const {
  const Shape& shape = node.outputs[0].shape;
  const Dim whole = program_->shape.elements();
  if (shape == program_->shape) {
    // Everything but a reshape follows the rules of broadcasting, which go by axes.
    if (!known_.is_alias(node.op)) return true;
    const Shape& from = graph.type(node.inputs[0]).shape;
    return from == shape || from.elements() == whole;
  }
  if (shape.elements() == whole) {
    for (Value value : node.inputs) {
      const Dim elements = graph.type(value).shape.elements();
      if (elements != whole && elements != Dim(1)) return false;
    }
    return node.op != known_.iota && (node.op != known_.constant || ConstantView(node).splat());
  }
  if (shape.elements() == Dim(1)) return true;
  if (shape.rank() > program_->shape.rank() || known_.is_alias(node.op)) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    const Dim target = program_->shape[i + program_->shape.rank() - shape.rank()];
    if (shape[i] != target && shape[i] != Dim(1)) return false;
  }
  return true;
}

int32_t Emitter::convert(int32_t reg, DType from, DType to) {
  const DType source = register_type(from), target = register_type(to);
  if (source == DType::kInvalid || target == DType::kInvalid) {
    ok_ = false;
    return -1;
  }
  // Reading a narrow value as f32 is exact and has happened already.
  if (from == to || (source == target && to == target)) return reg;
  return add(LoopOp::kCast, to, source, reg);
}

int32_t Emitter::constant(const Node& node) {
  const ConstantView view(node);
  if (!view.ok() || (!view.splat() && view.elements() > kMaxTable)) {
    ok_ = false;
    return -1;
  }
  if (view.splat() || view.elements() == 0) return number(view.at(0));
  // A short table: the number of the element picks among immediates. Axes count from the last one,
  // as operands are aligned; along an axis of size 1 the table repeats.
  const DType whole = DType::kI32;
  const Shape& shape = view.shape();
  int32_t linear = -1;
  int64_t stride = 1;
  for (int axis = shape.rank(); axis-- > 0;) {
    const int64_t size = shape[axis].value();
    const int loop_axis = axis + program_->shape.rank() - shape.rank();
    if (size > 1 && loop_axis >= 0) {
      int32_t part = index(loop_axis, whole);
      if (stride > 1) {
        part = add(LoopOp::kMul, whole, whole, part, number({whole, 0, stride}));
      }
      linear = linear < 0 ? part : add(LoopOp::kAdd, whole, whole, linear, part);
    }
    stride *= size;
  }
  int32_t result = number(view.at(view.elements() - 1));
  const DType dtype = register_type(view.dtype());
  for (int64_t i = view.elements() - 1; i-- > 0;) {
    const int32_t here = add(LoopOp::kEqual, DType::kBool, whole, linear, number({whole, 0, i}));
    result = add(LoopOp::kSelect, dtype, dtype, here, number(view.at(i)), result);
  }
  return result;
}

int32_t Emitter::iota(const Node& node) {
  const Shape& shape = node.outputs[0].shape;
  const int axis = static_cast<int>(node.attrs.integer("axis"));
  const DType dtype = node.attrs.dtype("dtype");
  const int loop_axis = axis + program_->shape.rank() - shape.rank();
  if (loop_axis < 0 || shape[axis] != program_->shape[loop_axis]) {
    ok_ = false;
    return -1;
  }
  const bool small = shape[axis].bound() <= std::numeric_limits<int32_t>::max();
  const DType counter = small ? DType::kI32 : DType::kI64;
  return convert(index(loop_axis, counter), counter, dtype);
}

int32_t Emitter::random(const Node& node) {
  const std::string& algorithm = node.attrs.text("algorithm");
  const int32_t key = at(node.inputs[0]);
  const bool known = algorithm == "threefry2x32" || algorithm == "philox4x32";
  const DType dtype = node.outputs[0].dtype;
  // Numbers are counted over the node's own shape, and the key is read, not computed here. Wider
  // elements and offsets have kernels of their own.
  if (!known || node.inputs.size() != 1 || dtype_size(dtype) > 4 || !ok_ ||
      static_cast<size_t>(key) >= program_->inputs.size() ||
      !program_->inputs[static_cast<size_t>(key)].is_key ||
      node.outputs[0].shape.elements() != program_->shape.elements()) {
    ok_ = false;
    return -1;
  }
  const LoopOp op = algorithm == "threefry2x32" ? LoopOp::kThreefry : LoopOp::kPhilox;
  return convert(add(op, DType::kU32, DType::kU32, key), DType::kU32, dtype);  // the low bits
}

void Emitter::node(const Graph& graph, const Node& node, Value result) {
  if (!ok_) return;
  int32_t reg = -1;
  const DType dtype = register_type(node.outputs[0].dtype);
  if (dtype == DType::kInvalid || !fits(graph, node)) ok_ = false;
  if (node.op == known_.constant) {
    reg = constant(node);
  } else if (node.op == known_.iota) {
    reg = iota(node);
  } else if (node.op == known_.random_bits) {
    reg = random(node);
  } else if (known_.is_alias(node.op) || node.op == known_.broadcast_to) {
    reg = at(node.inputs[0]);
  } else if (node.op == known_.cast) {
    reg = convert(at(node.inputs[0]), graph.type(node.inputs[0]).dtype, node.outputs[0].dtype);
  } else if (node.op == known_.bitcast) {
    reg = add(LoopOp::kBitcast, node.outputs[0].dtype, graph.type(node.inputs[0]).dtype,
              at(node.inputs[0]));
  } else if (const auto op = known_.loop_op(node.op)) {
    // select's operands are of the type of its branches, its condition is bool.
    const Value typed = node.inputs[node.op == known_.select ? 1 : 0];
    LoopInstr instr{.op = *op, .dtype = dtype, .from = register_type(graph.type(typed).dtype)};
    int32_t* const operands[] = {&instr.a, &instr.b, &instr.c};
    for (size_t i = 0; i < node.inputs.size(); ++i) *operands[i] = at(node.inputs[i]);
    reg = add(instr);
  } else {
    ok_ = false;
  }
  registers_[key(result)] = reg;
}

/// Nodes that a loop can compute, whatever their operands are.
bool is_loop_op(const KnownOps& known, OpId op) {
  return known.loop_op(op) || op == known.constant || op == known.iota || op == known.random_bits ||
         op == known.broadcast_to || known.is_alias(op);
}

std::shared_ptr<const LoopProgram> emit_fused(const KnownOps& known, const Graph& region) {
  if (region.results.empty()) return nullptr;
  Emitter emitter(region.type(region.results[0].value).shape);
  std::vector<bool> is_key(region.params.size(), false);
  for (const Node& node : region.nodes) {
    if (node.op == known.random_bits && node.inputs[0].is_param()) {
      is_key[static_cast<size_t>(node.inputs[0].index)] = true;
    }
  }
  for (size_t i = 0; i < region.params.size(); ++i) {
    emitter.input({-1, static_cast<int32_t>(i)}, region.params[i].type, is_key[i]);
  }
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    emitter.node(region, region.nodes[i], {static_cast<int32_t>(i), 0});
    if (!emitter.ok()) return nullptr;
  }
  for (const ResultValue& result : region.results) {
    emitter.output(result.value, region.type(result.value).dtype);
  }
  return emitter.finish();
}

}  // namespace

std::shared_ptr<const LoopProgram> emit_loop(const Graph& graph, const Node& node) {
  const KnownOps& known = KnownOps::get();
  if (node.op == known.fused) return emit_fused(known, *node.regions[0]);
  if (!is_loop_op(known, node.op) || node.outputs.size() != 1) return nullptr;

  // Inputs are numbered as the node's: a value that it reads twice is two inputs, either of which
  // serves.
  Emitter emitter(node.outputs[0].shape);
  for (Value value : node.inputs) {
    emitter.input(value, graph.type(value), node.op == known.random_bits);
  }
  const Value result{static_cast<int32_t>(graph.nodes.size()), 0};
  emitter.node(graph, node, result);
  emitter.output(result, node.outputs[0].dtype);
  return emitter.finish();
}

}  // namespace tracefire
