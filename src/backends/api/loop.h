// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tracefire/dtype.h"
#include "tracefire/shape.h"

namespace tracefire {

/// Scalar operations of loop programs. The order is free; names are in loop.cpp's table.
enum class LoopOp : uint8_t {
  // sources
  kConst,     ///< imm (floating) or imm_int
  kIndex,     ///< coordinate along `axis` of the iteration space, as an integer
  kThreefry,  ///< 32 random bits of element `linear index`; a = input number of the key u32[2]
  kPhilox,    ///< the same with Philox4x32-10
  // one operand
  kNeg, kAbs, kSign, kExp, kExpm1, kLog, kLog1p, kSqrt, kRsqrt, kSquare, kReciprocal, kTanh,
  kSigmoid, kRelu, kErf, kErfInv, kSin, kCos, kFloor, kCeil, kRound, kLogicalNot, kBitwiseNot,
  kIsNan, kIsFinite,
  kCast,     ///< from dtype `from` to `dtype`, C rules; float to int saturates, NaN gives 0
  kBitcast,  ///< same width
  // two
  kAdd, kSub, kMul, kDiv, kFloorDiv, kFloorMod, kPow, kMaximum, kMinimum, kAtan2, kEqual,
  kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kLogicalAnd, kLogicalOr, kBitwiseAnd,
  kBitwiseOr, kBitwiseXor, kShiftLeft, kShiftRight,
  // three
  kSelect,       ///< a ? b : c
  kFma,          ///< a * b + c, rounded once
  kCheckFinite,  ///< a, and sets the error word where a is not finite
  kCount
};

/// One scalar operation. Registers 0…inputs-1 are the loaded inputs; instruction i defines
/// register inputs + i. Arithmetic happens in `from` (operand type): f16 and bf16 are loaded as
/// f32, computed in f32 and rounded when stored or where the graph casts.
struct LoopInstr {
  LoopOp op = LoopOp::kConst;
  DType dtype = DType::kF32;  ///< type of the result
  DType from = DType::kF32;   ///< type of the operands
  int32_t a = -1, b = -1, c = -1;
  int32_t axis = 0;
  double imm = 0;
  int64_t imm_int = 0;
};

/// A fused element-wise loop: every result element is computed from one element of each input.
/// Backend-neutral; the CPU interprets it in tiles, CUDA turns it into a kernel.
struct LoopProgram {
  struct Input {
    DType dtype;
    Shape shape;         ///< broadcast against `shape`, aligned at the last axis
    bool is_key = false; ///< a key u32[2], read by kThreefry / kPhilox only, not loaded
  };
  struct Output {
    int32_t reg;
    DType dtype;
  };
  std::vector<Input> inputs;
  std::vector<LoopInstr> body;
  std::vector<Output> outputs;  ///< each has the iteration shape
  Shape shape;                  ///< iteration space

  /// Canonical text without sizes: equal texts can share one compiled kernel.
  std::string key() const;
  /// key() in lines for people, with the user's names where known.
  std::string str() const;
};

const char* loop_op_name(LoopOp op);
int loop_op_operands(LoopOp op);  ///< registers read: 0…3

/// A loop with numbers: axes that all operands walk alike are merged, sizes of 1 are gone.
struct BoundLoop {
  int64_t elements = 0;
  std::vector<int64_t> sizes;                 ///< merged iteration sizes, outermost first, ≤ 8
  std::vector<std::vector<int64_t>> strides;  ///< [input][merged axis], in elements; 0: broadcast
  enum class Access : uint8_t { kFlat, kScalar, kStrided };
  std::vector<Access> access;                 ///< per input: index = i, 0, or by strides
  bool flat = true;                           ///< no input is kStrided
  /// For kIndex: size and stride of each original axis in the linear index.
  std::vector<int64_t> axis_sizes, axis_strides;
};

/// `sizes` are the numbers of program.shape, `inputs[i]` those of program.inputs[i].shape.
BoundLoop bind_loop(const LoopProgram& program, const std::vector<int64_t>& sizes,
                    const std::vector<std::vector<int64_t>>& inputs);

}  // namespace tracefire
