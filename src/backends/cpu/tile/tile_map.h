// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loops that the tile functions are made of. Each instruction set compiles its own copy: include
// this between TF_TARGET_…_BEGIN and TF_TARGET_END.

namespace tracefire::cpu {
namespace {

template <class Op, class T, class R>
void map1(void* out, const void* a, const void*, const void*, int64_t n) {
  R* o = static_cast<R*>(out);
  const T* x = static_cast<const T*>(a);
  TF_IVDEP
  for (int64_t i = 0; i < n; ++i) o[i] = Op::f(x[i]);
}

template <class Op, class T, class R>
void map2(void* out, const void* a, const void* b, const void*, int64_t n) {
  R* o = static_cast<R*>(out);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  TF_IVDEP
  for (int64_t i = 0; i < n; ++i) o[i] = Op::f(x[i], y[i]);
}

template <class Op, class T>
void map3(void* out, const void* a, const void* b, const void* c, int64_t n) {
  T* o = static_cast<T*>(out);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  const T* z = static_cast<const T*>(c);
  TF_IVDEP
  for (int64_t i = 0; i < n; ++i) o[i] = Op::f(x[i], y[i], z[i]);
}

/// a (bool) ? b : c.
template <class T>
void map_select(void* out, const void* a, const void* b, const void* c, int64_t n) {
  T* o = static_cast<T*>(out);
  const uint8_t* cond = static_cast<const uint8_t*>(a);
  const T* x = static_cast<const T*>(b);
  const T* y = static_cast<const T*>(c);
  TF_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    // Both are read first, so that the choice is a blend and not a branch.
    const T yes = x[i], no = y[i];
    o[i] = cond[i] ? yes : no;
  }
}

struct Equal {
  template <class T>
  static uint8_t f(T x, T y) { return x == y; }
};
struct NotEqual {
  template <class T>
  static uint8_t f(T x, T y) { return x != y; }
};
struct Less {
  template <class T>
  static uint8_t f(T x, T y) { return x < y; }
};
struct LessEqual {
  template <class T>
  static uint8_t f(T x, T y) { return x <= y; }
};
struct Greater {
  template <class T>
  static uint8_t f(T x, T y) { return x > y; }
};
struct GreaterEqual {
  template <class T>
  static uint8_t f(T x, T y) { return x >= y; }
};

template <class Op, class T, class R = T>
void set1(TileTable* table, LoopOp op, RegType type) {
  table->ops[static_cast<size_t>(op)][static_cast<size_t>(type)] = map1<Op, T, R>;
}
template <class Op, class T>
void set3(TileTable* table, LoopOp op, RegType type) {
  table->ops[static_cast<size_t>(op)][static_cast<size_t>(type)] = map3<Op, T>;
}
template <class Op, class T, class R = T>
void set2(TileTable* table, LoopOp op, RegType type) {
  table->ops[static_cast<size_t>(op)][static_cast<size_t>(type)] = map2<Op, T, R>;
}

template <class T>
void fill_compares(TileTable* table, RegType type) {
  set2<Equal, T, uint8_t>(table, LoopOp::kEqual, type);
  set2<NotEqual, T, uint8_t>(table, LoopOp::kNotEqual, type);
  set2<Less, T, uint8_t>(table, LoopOp::kLess, type);
  set2<LessEqual, T, uint8_t>(table, LoopOp::kLessEqual, type);
  set2<Greater, T, uint8_t>(table, LoopOp::kGreater, type);
  set2<GreaterEqual, T, uint8_t>(table, LoopOp::kGreaterEqual, type);
  table->ops[static_cast<size_t>(LoopOp::kSelect)][static_cast<size_t>(type)] = map_select<T>;
}

}  // namespace
}  // namespace tracefire::cpu
