// SPDX-License-Identifier: Apache-2.0
#include "core/compile/passes/fold.h"

#include <cmath>

#include "core/compile/known_ops.h"

namespace tracefire {
namespace {

/// `scalar` as memory would keep it: rounded or wrapped to its type.
std::optional<Scalar> stored(const Scalar& scalar) {
  return read_element(scalar.dtype, element_bytes(scalar), 0);
}

Scalar truth(bool value) { return {DType::kBool, 0, value}; }

bool is_unsigned(DType dtype) { return is_integer(dtype) && !is_signed_integer(dtype); }

/// a < b of equal types; false where one is NaN.
bool less(const Scalar& a, const Scalar& b) {
  if (is_floating(a.dtype)) return a.real < b.real;
  if (is_unsigned(a.dtype)) {
    return static_cast<uint64_t>(a.integer) < static_cast<uint64_t>(b.integer);
  }
  return a.integer < b.integer;
}

bool equal(const Scalar& a, const Scalar& b) {
  return is_floating(a.dtype) ? a.real == b.real : a.integer == b.integer;
}

/// Largest whole number up to which every one is exact in `dtype`, or 0.
double exact_limit(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 9007199254740992.0;  // 2^53
    case DType::kF32:
      return 16777216.0;
    case DType::kF16:
      return 2048.0;
    case DType::kBF16:
      return 256.0;
    default:
      return 0;
  }
}

std::optional<Scalar> fold_cast(const Scalar& x, DType to) {
  Scalar y{to, 0, 0};
  if (to == DType::kBool) return truth(is_floating(x.dtype) ? x.real != 0 : x.integer != 0);
  if (is_floating(to)) {
    if (is_floating(x.dtype)) {
      y.real = x.real;
      return stored(y);
    }
    const double limit = exact_limit(to);
    const bool huge = is_unsigned(x.dtype) && x.integer < 0;
    if (huge || std::fabs(static_cast<double>(x.integer)) > limit) return std::nullopt;
    y.real = static_cast<double>(x.integer);
    return y;
  }
  if (is_floating(x.dtype)) {
    if (!(std::fabs(x.real) < 2147483647.0)) return std::nullopt;  // ends of ranges, NaN
    y.integer = static_cast<int64_t>(x.real);
    const std::optional<Scalar> kept = stored(y);
    if (!kept || kept->integer != y.integer) return std::nullopt;
    return y;
  }
  y.integer = x.integer;
  return stored(y);
}

/// What is written alike for doubles and for words that wrap around.
template <class T>
std::optional<T> arithmetic(LoopOp op, T a, T b) {
  switch (op) {
    case LoopOp::kNeg:
      return -a;
    case LoopOp::kSquare:
      return a * a;
    case LoopOp::kAdd:
      return a + b;
    case LoopOp::kSub:
      return a - b;
    case LoopOp::kMul:
      return a * b;
    default:
      return std::nullopt;
  }
}

std::optional<Scalar> fold_real(LoopOp op, const std::vector<Scalar>& in, DType to) {
  // Half types are computed in f32. For one operation on f32, a double holds enough digits that
  // rounding twice is rounding once (S. Figueroa, "When is double rounding innocuous?", 1995).
  const double a = in[0].real, b = in.size() > 1 ? in[1].real : 0;
  const bool narrow = to != DType::kF64;
  double y;
  switch (op) {
    case LoopOp::kAbs:
      y = std::fabs(a);
      break;
    case LoopOp::kSqrt:
      y = std::sqrt(a);
      break;
    case LoopOp::kReciprocal:
      y = 1 / a;
      break;
    case LoopOp::kFloor:
      y = std::floor(a);
      break;
    case LoopOp::kCeil:
      y = std::ceil(a);
      break;
    case LoopOp::kDiv:
      y = a / b;
      break;
    case LoopOp::kMaximum:
    case LoopOp::kMinimum:
      if (!(a < b) && !(b < a)) return std::nullopt;  // NaN, or zeros of either sign
      y = (op == LoopOp::kMaximum) == (a < b) ? b : a;
      break;
    default: {
      const std::optional<double> common = arithmetic(op, a, b);
      if (!common) return std::nullopt;
      y = *common;
    }
  }
  if (narrow) y = static_cast<float>(y);
  return stored({to, y, 0});
}

std::optional<Scalar> fold_whole(LoopOp op, const std::vector<Scalar>& in, DType to) {
  const uint64_t a = static_cast<uint64_t>(in[0].integer);
  const uint64_t b = in.size() > 1 ? static_cast<uint64_t>(in[1].integer) : 0;
  uint64_t y;
  switch (op) {
    case LoopOp::kBitwiseAnd:
      y = a & b;
      break;
    case LoopOp::kBitwiseOr:
      y = a | b;
      break;
    case LoopOp::kBitwiseXor:
      y = a ^ b;
      break;
    case LoopOp::kMaximum:
      y = less(in[0], in[1]) ? b : a;
      break;
    case LoopOp::kMinimum:
      y = less(in[1], in[0]) ? b : a;
      break;
    default: {
      const std::optional<uint64_t> common = arithmetic(op, a, b);
      if (!common) return std::nullopt;
      y = *common;
    }
  }
  return stored({to, 0, static_cast<int64_t>(y)});
}

}  // namespace

std::optional<Scalar> fold(OpId op, const std::vector<Scalar>& in, DType to) {
  const KnownOps& known = KnownOps::get();
  if (op == known.cast) return fold_cast(in[0], to);
  if (op == known.bitcast) return std::nullopt;
  const std::optional<LoopOp> loop = known.loop_op(op);
  if (!loop) return std::nullopt;
  switch (*loop) {
    case LoopOp::kEqual:
      return truth(equal(in[0], in[1]));
    case LoopOp::kNotEqual:
      return truth(!equal(in[0], in[1]));
    case LoopOp::kLess:
      return truth(less(in[0], in[1]));
    case LoopOp::kGreater:
      return truth(less(in[1], in[0]));
    case LoopOp::kLessEqual:
      return truth(less(in[0], in[1]) || equal(in[0], in[1]));
    case LoopOp::kGreaterEqual:
      return truth(less(in[1], in[0]) || equal(in[0], in[1]));
    case LoopOp::kLogicalNot:
      return truth(!in[0].integer);
    case LoopOp::kLogicalAnd:
      return truth(in[0].integer && in[1].integer);
    case LoopOp::kLogicalOr:
      return truth(in[0].integer || in[1].integer);
    case LoopOp::kSelect:
      return in[0].integer ? in[1] : in[2];
    default:
      break;
  }
  if (is_floating(to) && is_floating(in[0].dtype)) return fold_real(*loop, in, to);
  if (is_integer(to) && is_integer(in[0].dtype)) return fold_whole(*loop, in, to);
  return std::nullopt;
}

}  // namespace tracefire
