// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tile functions on integers and bool. Each instruction set compiles its own copy: include this
// between TF_TARGET_…_BEGIN and TF_TARGET_END, after tile_map.h. Arithmetic is done on unsigned
// words, because signed overflow is undefined and the op table says that integers wrap around.

namespace tracefire::cpu {
namespace {

template <class T>
using Word = std::make_unsigned_t<T>;
template <class T>
constexpr bool kSigned = T(-1) < T(0);

struct IntNeg {
  template <class T>
  static T f(T x) { return static_cast<T>(Word<T>(0) - static_cast<Word<T>>(x)); }
};
struct IntAbs {
  template <class T>
  static T f(T x) { return x < T(0) ? IntNeg::f(x) : x; }
};
struct IntSign {
  template <class T>
  static T f(T x) { return static_cast<T>((x > T(0)) - (x < T(0))); }
};
struct IntRelu {
  template <class T>
  static T f(T x) { return x < T(0) ? T(0) : x; }
};
struct IntMul {  // widened first: a product of two promoted uint16 overflows int
  template <class T>
  static T f(T x, T y) {
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  }
};
/// 32 and 64 bits multiply in their own width, which vector units have.
template <>
inline int32_t IntMul::f(int32_t x, int32_t y) {
  return static_cast<int32_t>(static_cast<uint32_t>(x) * static_cast<uint32_t>(y));
}
template <>
inline uint32_t IntMul::f(uint32_t x, uint32_t y) { return x * y; }
struct IntSquare {
  template <class T>
  static T f(T x) { return IntMul::f(x, x); }
};
struct IntAdd {
  template <class T>
  static T f(T x, T y) {
    return static_cast<T>(static_cast<Word<T>>(x) + static_cast<Word<T>>(y));
  }
};
struct IntSub {
  template <class T>
  static T f(T x, T y) {
    return static_cast<T>(static_cast<Word<T>>(x) - static_cast<Word<T>>(y));
  }
};
struct IntMax {
  template <class T>
  static T f(T x, T y) { return x > y ? x : y; }
};
struct IntMin {
  template <class T>
  static T f(T x, T y) { return x < y ? x : y; }
};
struct IntAnd {
  template <class T>
  static T f(T x, T y) { return static_cast<T>(x & y); }
};
struct IntOr {
  template <class T>
  static T f(T x, T y) { return static_cast<T>(x | y); }
};
struct IntXor {
  template <class T>
  static T f(T x, T y) { return static_cast<T>(x ^ y); }
};
struct IntNot {
  template <class T>
  static T f(T x) { return static_cast<T>(~x); }
};
struct BoolNot {
  static uint8_t f(uint8_t x) { return x ^ 1; }
};
/// The number of bits to move by, or a count that is too large where `y` is negative.
template <class T>
inline uint64_t shift_count(T y) {
  return static_cast<uint64_t>(static_cast<Word<T>>(y));
}
struct ShiftLeft {
  template <class T>
  static T f(T x, T y) {
    constexpr uint64_t kBits = sizeof(T) * 8;
    const uint64_t count = shift_count(y);
    const uint64_t moved = static_cast<uint64_t>(static_cast<Word<T>>(x)) << (count & 63);
    return count < kBits ? static_cast<T>(moved) : T(0);
  }
};
struct ShiftRight {
  template <class T>
  static T f(T x, T y) {
    constexpr uint64_t kBits = sizeof(T) * 8;
    const uint64_t count = shift_count(y);
    const uint64_t most = kSigned<T> ? kBits - 1 : kBits;
    const uint64_t limited = count < most ? count : most;
    if constexpr (kSigned<T>) return static_cast<T>(static_cast<int64_t>(x) >> limited);
    return limited < 64 ? static_cast<T>(static_cast<uint64_t>(x) >> (limited & 63)) : T(0);
  }
};

template <class T>
void fill_int(TileTable* table, RegType type) {
  set1<IntNeg, T>(table, LoopOp::kNeg, type);
  set1<IntAbs, T>(table, LoopOp::kAbs, type);
  set1<IntSign, T>(table, LoopOp::kSign, type);
  set1<IntSquare, T>(table, LoopOp::kSquare, type);
  set1<IntRelu, T>(table, LoopOp::kRelu, type);
  set1<IntNot, T>(table, LoopOp::kBitwiseNot, type);
  set2<IntAdd, T>(table, LoopOp::kAdd, type);
  set2<IntSub, T>(table, LoopOp::kSub, type);
  set2<IntMul, T>(table, LoopOp::kMul, type);
  set2<IntMax, T>(table, LoopOp::kMaximum, type);
  set2<IntMin, T>(table, LoopOp::kMinimum, type);
  set2<IntAnd, T>(table, LoopOp::kBitwiseAnd, type);
  set2<IntOr, T>(table, LoopOp::kBitwiseOr, type);
  set2<IntXor, T>(table, LoopOp::kBitwiseXor, type);
  set2<ShiftLeft, T>(table, LoopOp::kShiftLeft, type);
  set2<ShiftRight, T>(table, LoopOp::kShiftRight, type);
  fill_compares<T>(table, type);
}

void fill_all_int(TileTable* table) {
  fill_int<int8_t>(table, RegType::kI8);
  fill_int<int16_t>(table, RegType::kI16);
  fill_int<int32_t>(table, RegType::kI32);
  fill_int<int64_t>(table, RegType::kI64);
  fill_int<uint8_t>(table, RegType::kU8);
  fill_int<uint16_t>(table, RegType::kU16);
  fill_int<uint32_t>(table, RegType::kU32);
  fill_int<uint64_t>(table, RegType::kU64);
  constexpr RegType kBool = RegType::kBool;
  for (LoopOp op : {LoopOp::kLogicalNot, LoopOp::kBitwiseNot}) {
    set1<BoolNot, uint8_t>(table, op, kBool);
  }
  for (LoopOp op : {LoopOp::kLogicalAnd, LoopOp::kBitwiseAnd, LoopOp::kMinimum}) {
    set2<IntAnd, uint8_t>(table, op, kBool);
  }
  for (LoopOp op : {LoopOp::kLogicalOr, LoopOp::kBitwiseOr, LoopOp::kMaximum}) {
    set2<IntOr, uint8_t>(table, op, kBool);
  }
  set2<IntXor, uint8_t>(table, LoopOp::kBitwiseXor, kBool);
  fill_compares<uint8_t>(table, kBool);
}

}  // namespace
}  // namespace tracefire::cpu
