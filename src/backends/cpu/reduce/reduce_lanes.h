// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reductions of adjacent elements and of columns. Each instruction set compiles its own copy:
// include this between TF_TARGET_…_BEGIN and TF_TARGET_END. The number of lanes does not depend on
// the instruction set, so all copies give the same bits.

namespace tracefire::cpu {
namespace {

/// Bytes of one vector; 32 bytes are two registers of SSE2 and one of AVX2.
constexpr int kVectorBytes = 32;
template <class T>
struct Vector {
  typedef T type __attribute__((vector_size(kVectorBytes)));
  static constexpr int kLanes = kVectorBytes / sizeof(T);
};

// How an accumulator takes an element in, one by one and as vectors.
template <class T>
struct SumOp {
  using Acc = std::conditional_t<std::is_same_v<T, float>, double, T>;
  static constexpr Acc kInit = 0;
  template <class V>
  static void step(V& acc, const V& x) { acc = acc + x; }
};
/// Integers are summed and multiplied as unsigned words, which wrap around.
template <class T>
struct ProdOp {
  using Acc = std::conditional_t<std::is_same_v<T, float>, double, T>;
  static constexpr Acc kInit = 1;
  template <class V>
  static void step(V& acc, const V& x) { acc = acc * x; }
};
template <class T>
constexpr T lowest() {
  if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::lowest();
}
template <class T>
constexpr T highest() {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::max();
}
template <class T>
struct MaxOp {  // NaN, once in, stays
  using Acc = T;
  static constexpr Acc kInit = lowest<T>();
  template <class V>
  static void step(V& acc, const V& x) { acc = (x > acc) | (x != x) ? x : acc; }
};
template <class T>
struct MinOp {
  using Acc = T;
  static constexpr Acc kInit = highest<T>();
  template <class V>
  static void step(V& acc, const V& x) { acc = (x < acc) | (x != x) ? x : acc; }
};

struct AllOp {  // true where there is nothing
  using Acc = uint8_t;
  static constexpr Acc kInit = 1;
  static void step(uint8_t& acc, const uint8_t& x) { acc = acc & x; }
};

/// Four vectors of lanes over a stretch of floating elements; the lanes are joined in order.
template <class Op, class T>
void row_lanes(typename Op::Acc* acc, const T* x, int64_t n, T init) {
  using V = typename Vector<T>::type;
  constexpr int kLanes = Vector<T>::kLanes;
  int64_t i = 0;
  if (n >= 4 * kLanes) {
    V a, b, c, d;
    for (int lane = 0; lane < kLanes; ++lane) a[lane] = init;
    b = c = d = a;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
      V xa, xb, xc, xd;
      __builtin_memcpy(&xa, x + i, kVectorBytes);
      __builtin_memcpy(&xb, x + i + kLanes, kVectorBytes);
      __builtin_memcpy(&xc, x + i + 2 * kLanes, kVectorBytes);
      __builtin_memcpy(&xd, x + i + 3 * kLanes, kVectorBytes);
      Op::step(a, xa);
      Op::step(b, xb);
      Op::step(c, xc);
      Op::step(d, xd);
    }
    Op::step(a, b);
    Op::step(c, d);
    Op::step(a, c);
    for (int lane = 0; lane < kLanes; ++lane) {
      Op::step(*acc, static_cast<typename Op::Acc>(a[lane]));
    }
  }
  for (; i < n; ++i) Op::step(*acc, static_cast<typename Op::Acc>(x[i]));
}

/// Elements that are summed in lanes of their own type before the lanes go into the accumulator:
/// 16 additions a lane keep rounding errors of float sums near one unit in the last place.
constexpr int64_t kStretch = 512;

template <class Op, class T>
void reduce_row(void* acc_out, const void* data, int64_t n) {
  typename Op::Acc* acc = static_cast<typename Op::Acc*>(acc_out);
  const T* x = static_cast<const T*>(data);
  if constexpr (std::is_same_v<Op, ProdOp<float>>) {  // float products over- and underflow
    double lanes[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
      for (int lane = 0; lane < 8; ++lane) lanes[lane] *= static_cast<double>(x[i + lane]);
    }
    for (; i < n; ++i) lanes[0] *= static_cast<double>(x[i]);
    for (double lane : lanes) *acc *= lane;
  } else if constexpr (std::is_integral_v<T>) {  // any order gives the same: compilers know how
    T a = *acc;
    for (int64_t i = 0; i < n; ++i) Op::step(a, x[i]);
    *acc = a;
  } else {
    for (int64_t i = 0; i < n; i += kStretch) {
      const int64_t count = n - i < kStretch ? n - i : kStretch;
      row_lanes<Op, T>(acc, x + i, count, static_cast<T>(Op::kInit));
    }
  }
}

/// Rows of a column sum that are added in float before they go into the accumulators.
constexpr int64_t kRowStretch = 16;

template <class Op, class T>
void reduce_columns(void* acc_out, const void* data, int64_t rows, int64_t stride,
                    int64_t width) {
  using Acc = typename Op::Acc;
  Acc* acc = static_cast<Acc*>(acc_out);
  const T* x = static_cast<const T*>(data);
  if constexpr (std::is_same_v<Op, SumOp<float>>) {
    alignas(64) float sums[kColumnBlock];
    for (int64_t first = 0; first < rows; first += kRowStretch) {
      const int64_t end = first + kRowStretch < rows ? first + kRowStretch : rows;
      const float* row = x + first * stride;
      for (int64_t j = 0; j < width; ++j) sums[j] = row[j];
      for (int64_t r = first + 1; r < end; ++r) {
        row = x + r * stride;
        for (int64_t j = 0; j < width; ++j) sums[j] += row[j];
      }
      for (int64_t j = 0; j < width; ++j) acc[j] += static_cast<double>(sums[j]);
    }
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = x + r * stride;
      TF_IVDEP
      for (int64_t j = 0; j < width; ++j) Op::step(acc[j], static_cast<Acc>(row[j]));
    }
  }
}

template <class Op>
void reduce_init(void* acc, int64_t n) {
  typename Op::Acc* a = static_cast<typename Op::Acc*>(acc);
  for (int64_t i = 0; i < n; ++i) a[i] = Op::kInit;
}

template <class Op>
void reduce_merge(void* acc, const void* other, int64_t n) {
  typename Op::Acc* a = static_cast<typename Op::Acc*>(acc);
  const typename Op::Acc* b = static_cast<const typename Op::Acc*>(other);
  for (int64_t i = 0; i < n; ++i) Op::step(a[i], b[i]);
}

template <class Op, class T>
void reduce_finish(void* out, const void* acc, int64_t n, double count) {
  T* o = static_cast<T*>(out);
  const typename Op::Acc* a = static_cast<const typename Op::Acc*>(acc);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      o[i] = static_cast<T>(count == 1 ? static_cast<double>(a[i])
                                       : static_cast<double>(a[i]) / count);
    } else {
      o[i] = static_cast<T>(a[i]);
    }
  }
}

template <class Op, class T>
void set_reduce(ReduceTable* table, ReduceOp op, RegType type) {
  ReduceFunctions& entry = table->entries[static_cast<size_t>(op)][static_cast<size_t>(type)];
  entry.acc_size = sizeof(typename Op::Acc);
  entry.init = reduce_init<Op>;
  entry.row = reduce_row<Op, T>;
  entry.columns = reduce_columns<Op, T>;
  entry.merge = reduce_merge<Op>;
  entry.finish = reduce_finish<Op, T>;
}

/// T and, for sums and products of integers, the unsigned word of its size.
template <class T, class W>
void fill_reductions(ReduceTable* table, RegType type) {
  set_reduce<SumOp<W>, W>(table, ReduceOp::kSum, type);
  set_reduce<ProdOp<W>, W>(table, ReduceOp::kProd, type);
  set_reduce<MaxOp<T>, T>(table, ReduceOp::kMax, type);
  set_reduce<MinOp<T>, T>(table, ReduceOp::kMin, type);
}

void fill_all_reductions(ReduceTable* table) {
  fill_reductions<float, float>(table, RegType::kF32);
  fill_reductions<double, double>(table, RegType::kF64);
  fill_reductions<int8_t, uint8_t>(table, RegType::kI8);
  fill_reductions<int16_t, uint16_t>(table, RegType::kI16);
  fill_reductions<int32_t, uint32_t>(table, RegType::kI32);
  fill_reductions<int64_t, uint64_t>(table, RegType::kI64);
  fill_reductions<uint8_t, uint8_t>(table, RegType::kU8);
  fill_reductions<uint16_t, uint16_t>(table, RegType::kU16);
  fill_reductions<uint32_t, uint32_t>(table, RegType::kU32);
  fill_reductions<uint64_t, uint64_t>(table, RegType::kU64);
  set_reduce<MaxOp<uint8_t>, uint8_t>(table, ReduceOp::kMax, RegType::kBool);
  set_reduce<AllOp, uint8_t>(table, ReduceOp::kMin, RegType::kBool);
}

}  // namespace
}  // namespace tracefire::cpu
