// SPDX-License-Identifier: Apache-2.0
// Movement and indexing: elements are bytes, whatever their type means.
#include "backends/cuda/kernels/common.cuh"

// out[out_base + by out strides] = in[in_base + by in strides] over one index space: transposes,
// slices, reversals, broadcasts, the parts of a concatenation, the inside of a pad.
struct Move {
  Axes in, out;  // the same sizes
  int64_t elements, in_base, out_base;
};
template <class T>
TF_DEVICE void move(const T* in, T* out, const Move& m) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < m.elements; i += step) {
    out[m.out_base + offset_of(m.out, i)] = in[m.in_base + offset_of(m.in, i)];
  }
}

template <class T>
TF_DEVICE void fill(T* out, const T* value, int64_t n) {
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  const T v = *value;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) out[i] = v;
}

// x [outer, size, inner] read at indices [count] along the middle -> [outer, count, inner].
struct Gather {
  int64_t outer, size, inner, count;
  int32_t index_bytes;  // negative: without a sign
};
template <class T>
TF_DEVICE void gather(const T* x, const void* indices, T* out, const Gather& g, ErrorWord* error,
                      uint32_t step) {
  const int64_t n = g.outer * g.count * g.inner, stride = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    const int64_t inner = i % g.inner, row = i / g.inner;
    const int64_t at = load_index(indices, row % g.count, g.index_bytes), outer = row / g.count;
    if (at < 0 || at >= g.size) {
      report(error, step, kIndexOutOfRange, at);
    } else {
      out[i] = x[(outer * g.size + at) * g.inner + inner];
    }
  }
}
// The same with an index for each element: indices [outer, count, inner].
template <class T>
TF_DEVICE void gather_along(const T* x, const void* indices, T* out, const Gather& g,
                            ErrorWord* error, uint32_t step) {
  const int64_t n = g.outer * g.count * g.inner, stride = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    const int64_t inner = i % g.inner, outer = i / g.inner / g.count;
    const int64_t at = load_index(indices, i, g.index_bytes);
    if (at < 0 || at >= g.size) {
      report(error, step, kIndexOutOfRange, at);
    } else {
      out[i] = x[(outer * g.size + at) * g.inner + inner];
    }
  }
}
// x [outer, size, inner] from *start on -> [outer, count, inner].
template <class T>
TF_DEVICE void slice_at(const T* x, const void* start, T* out, const Gather& g, ErrorWord* error,
                        uint32_t step) {
  const int64_t n = g.outer * g.count * g.inner, stride = (int64_t)gridDim.x * blockDim.x;
  const int64_t first = load_index(start, 0, g.index_bytes);
  if (first < 0 || first > g.size - g.count) {
    report(error, step, kIndexOutOfRange, first);
    return;
  }
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    const int64_t inner = i % g.inner, row = i / g.inner;
    const int64_t at = first + row % g.count, outer = row / g.count;
    out[i] = x[(outer * g.size + at) * g.inner + inner];
  }
}
// out already holds x [outer, size, inner]; update [outer, count, inner] goes in from *start on.
template <class T>
TF_DEVICE void update_at(const T* update, const void* start, T* out, const Gather& g,
                         ErrorWord* error, uint32_t step) {
  const int64_t n = g.outer * g.count * g.inner, stride = (int64_t)gridDim.x * blockDim.x;
  const int64_t first = load_index(start, 0, g.index_bytes);
  if (first < 0 || first > g.size - g.count) {
    report(error, step, kIndexOutOfRange, first);
    return;
  }
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    const int64_t inner = i % g.inner, row = i / g.inner;
    const int64_t at = first + row % g.count, outer = row / g.count;
    out[(outer * g.size + at) * g.inner + inner] = update[i];
  }
}

// A constant travels as an argument of its kernel: at most 64 bytes, all its elements or one that
// is repeated.
struct Literal {
  uint8_t bytes[64];
};
TF_KERNEL tf_constant(uint8_t* out, Literal literal, int32_t period, int64_t n) {
  TF_WAIT;
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    out[i] = literal.bytes[i % period];
  }
}

#define MOVE_TYPE(bytes, T)                                                                  \
  TF_KERNEL tf_move_##bytes(const T* in, T* out, Move m) { TF_WAIT; move(in, out, m); }      \
  TF_KERNEL tf_fill_##bytes(T* out, const T* value, int64_t n) { TF_WAIT; fill(out, value, n); }
#define INDEX_TYPE(bytes, T)                                                                     \
  TF_KERNEL tf_gather_##bytes(const T* x, const void* i, T* out, Gather g, ErrorWord* e,         \
                              uint32_t s) {                                                      \
    TF_WAIT; gather(x, i, out, g, e, s); }                                                       \
  TF_KERNEL tf_gather_along_##bytes(const T* x, const void* i, T* out, Gather g, ErrorWord* e,   \
                                    uint32_t s) {                                                \
    TF_WAIT; gather_along(x, i, out, g, e, s); }                                                 \
  TF_KERNEL tf_slice_at_##bytes(const T* x, const void* start, T* out, Gather g, ErrorWord* e,   \
                                uint32_t s) {                                                    \
    TF_WAIT; slice_at(x, start, out, g, e, s); }                                                 \
  TF_KERNEL tf_update_at_##bytes(const T* u, const void* start, T* out, Gather g, ErrorWord* e,  \
                                 uint32_t s) {                                                   \
    TF_WAIT; update_at(u, start, out, g, e, s); }
#define EVERY(bytes, T) \
  MOVE_TYPE(bytes, T)   \
  INDEX_TYPE(bytes, T)
EVERY(1, uint8_t)
EVERY(2, uint16_t)
EVERY(4, uint32_t)
EVERY(8, uint64_t)
EVERY(16, Bytes16)

// y = x where every element lies in 0 … limit - 1; reports the first that does not.
template <class T>
TF_DEVICE void check_range(const T* x, T* out, int64_t n, int64_t limit, ErrorWord* error,
                           uint32_t step) {
  const int64_t stride = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    const int64_t value = (int64_t)x[i];
    if (value < 0 || value >= limit) report(error, step, kIndexOutOfRange, value);
    if (x != out) out[i] = x[i];
  }
}
#define CHECK(suffix, T)                                                                    \
  TF_KERNEL tf_check_range_##suffix(const T* x, T* out, int64_t n, int64_t limit,           \
                                    ErrorWord* e, uint32_t s) {                             \
    TF_WAIT; check_range(x, out, n, limit, e, s); }
CHECK(int8, int8_t)
CHECK(uint8, uint8_t)
CHECK(int16, int16_t)
CHECK(uint16, uint16_t)
CHECK(int32, int32_t)
CHECK(uint32, uint32_t)
CHECK(int64, int64_t)
CHECK(uint64, uint64_t)
