// SPDX-License-Identifier: Apache-2.0
// Running sums and products along one axis of x [outer, size, inner], forwards or backwards. Long
// axes are cut into chunks, whose lengths depend on sizes alone: what each of them gives comes
// first, what stands before each chunk next, the elements last.
#include "backends/cuda/kernels/common.cuh"

struct Scan {
  int64_t outer, size, inner, chunk;
  int32_t exclusive, reverse;
};
struct Sum {
  template <class A> static __device__ A start() { return A(0); }
  template <class A> static __device__ A join(A a, A b) { return a + b; }
};
struct Prod {
  template <class A> static __device__ A start() { return A(1); }
  template <class A> static __device__ A join(A a, A b) { return a * b; }
};

// Where element i in the order of summation lies; row points to element 0 of the axis.
TF_DEVICE int64_t place(const Scan& s, int64_t i) {
  return (s.reverse ? s.size - 1 - i : i) * s.inner;
}

// A thread a row and chunk, neighbours along `inner`.
template <class Op, class T>
TF_DEVICE void part_columns(const T* x, typename Wide<T>::type* parts, const Scan& s) {
  typedef typename Wide<T>::type A;
  const int64_t chunks = (s.size + s.chunk - 1) / s.chunk;
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= s.outer * chunks * s.inner) return;
  const int64_t inner = i % s.inner, chunk = i / s.inner % chunks, outer = i / s.inner / chunks;
  const T* row = x + outer * s.size * s.inner + inner;
  A value = Op::template start<A>();
  const int64_t last = (chunk + 1) * s.chunk < s.size ? (chunk + 1) * s.chunk : s.size;
#pragma unroll 4
  for (int64_t k = chunk * s.chunk; k < last; ++k) value = Op::join(value, A(widen(row[place(s, k)])));
  parts[i] = value;
}
// Parts [outer, chunks, inner] become what stands before each chunk; a thread a row.
template <class Op, class A>
TF_DEVICE void parts_before(A* parts, int64_t rows, int64_t chunks, int64_t inner) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  A* row = parts + i / inner * chunks * inner + i % inner;
  A value = Op::template start<A>();
  for (int64_t k = 0; k < chunks; ++k) {
    const A own = row[k * inner];
    row[k * inner] = value;
    value = Op::join(value, own);
  }
}
template <class Op, class T>
TF_DEVICE void scan_columns(const T* x, const typename Wide<T>::type* parts, T* out,
                            const Scan& s) {
  typedef typename Wide<T>::type A;
  const int64_t chunks = (s.size + s.chunk - 1) / s.chunk;
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= s.outer * chunks * s.inner) return;
  const int64_t inner = i % s.inner, chunk = i / s.inner % chunks, outer = i / s.inner / chunks;
  const int64_t base = outer * s.size * s.inner + inner;
  A value = parts != nullptr ? parts[i] : Op::template start<A>();
  const int64_t last = (chunk + 1) * s.chunk < s.size ? (chunk + 1) * s.chunk : s.size;
#pragma unroll 4
  for (int64_t k = chunk * s.chunk; k < last; ++k) {
    const int64_t at = base + place(s, k);
    const A next = Op::join(value, A(widen(x[at])));
    narrow(s.exclusive ? value : next, &out[at]);
    value = next;
  }
}

// Over the threads of a block: what those before this one give, and all.
template <class Op, class A>
TF_DEVICE A before_thread(A value, A* all, A* shared) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  A running = value;
  for (int step = 1; step < 32; step *= 2) {
    const A other = __shfl_up_sync(0xffffffffu, running, step);
    if (lane >= step) running = Op::join(other, running);
  }
  if (lane == 31) shared[warp] = running;
  // What stands before a lane comes from its neighbour: taking its own away is not exact.
  const A below = __shfl_up_sync(0xffffffffu, running, 1);
  __syncthreads();
  A base = Op::template start<A>();
  *all = base;
  for (int w = 0; w < warps; ++w) {
    if (w < warp) base = Op::join(base, shared[w]);
    *all = Op::join(*all, shared[w]);
  }
  __syncthreads();
  return lane == 0 ? base : Op::join(base, below);
}

constexpr int kOwn = 4;  // neighbouring elements of one thread

// Rows with inner = 1. A block takes one chunk of one row, four elements a thread at a time.
template <class Op, class T>
TF_DEVICE void scan_rows(const T* x, const typename Wide<T>::type* parts, T* out, const Scan& s) {
  typedef typename Wide<T>::type A;
  __shared__ A shared[32];
  const int64_t chunks = gridDim.y, base = blockIdx.x * s.size, first = blockIdx.y * s.chunk;
  const int64_t last = first + s.chunk < s.size ? first + s.chunk : s.size;
  const A start = Op::template start<A>();
  A carry = parts != nullptr ? parts[blockIdx.x * chunks + blockIdx.y] : start;
  for (int64_t tile = first; tile < last; tile += kOwn * blockDim.x) {
    const int64_t own = tile + kOwn * threadIdx.x;
    A values[kOwn];
    A sum = start;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      values[k] = own + k < last ? A(widen(x[base + place(s, own + k)])) : start;
      sum = Op::join(sum, values[k]);
    }
    A all;
    A running = Op::join(carry, before_thread<Op>(sum, &all, shared));
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const A next = Op::join(running, values[k]);
      if (own + k < last) narrow(s.exclusive ? running : next, &out[base + place(s, own + k)]);
      running = next;
    }
    carry = Op::join(carry, all);
  }
}
template <class Op, class T>
TF_DEVICE void part_rows(const T* x, typename Wide<T>::type* parts, const Scan& s) {
  typedef typename Wide<T>::type A;
  __shared__ A shared[32];
  const int64_t chunks = gridDim.y, base = blockIdx.x * s.size, first = blockIdx.y * s.chunk;
  const int64_t last = first + s.chunk < s.size ? first + s.chunk : s.size;
  A value = Op::template start<A>();
#pragma unroll 4
  for (int64_t k = first + threadIdx.x; k < last; k += blockDim.x) {
    value = Op::join(value, A(widen(x[base + place(s, k)])));
  }
  A all;
  before_thread<Op>(value, &all, shared);
  if (threadIdx.x == 0) parts[blockIdx.x * chunks + blockIdx.y] = all;
}

#define SCAN_OP(name, Op, suffix, T)                                                              \
  TF_KERNEL tf_scan_part_columns_##name##_##suffix(const T* x, Wide<T>::type* parts, Scan s) {    \
    TF_WAIT;                                                                                      \
    part_columns<Op>(x, parts, s);                                                                \
  }                                                                                               \
  TF_KERNEL tf_scan_part_rows_##name##_##suffix(const T* x, Wide<T>::type* parts, Scan s) {       \
    TF_WAIT;                                                                                      \
    part_rows<Op>(x, parts, s);                                                                   \
  }                                                                                               \
  TF_KERNEL tf_scan_before_##name##_##suffix(Wide<T>::type* parts, int64_t rows, int64_t chunks,  \
                                             int64_t inner) {                                     \
    TF_WAIT;                                                                                      \
    parts_before<Op>(parts, rows, chunks, inner);                                                 \
  }                                                                                               \
  TF_KERNEL tf_scan_columns_##name##_##suffix(const T* x, const Wide<T>::type* parts, T* out,     \
                                              Scan s) {                                           \
    TF_WAIT;                                                                                      \
    scan_columns<Op>(x, parts, out, s);                                                           \
  }                                                                                               \
  TF_KERNEL tf_scan_rows_##name##_##suffix(const T* x, const Wide<T>::type* parts, T* out,        \
                                           Scan s) {                                              \
    TF_WAIT;                                                                                      \
    scan_rows<Op>(x, parts, out, s);                                                              \
  }
#define SCAN(suffix, T)         \
  SCAN_OP(sum, Sum, suffix, T)  \
  SCAN_OP(prod, Prod, suffix, T)
SCAN(float32, float)
SCAN(float64, double)
SCAN(float16, f16)
SCAN(bfloat16, bf16)
SCAN(int8, int8_t)
SCAN(int16, int16_t)
SCAN(int32, int32_t)
SCAN(int64, int64_t)
SCAN(uint8, uint8_t)
SCAN(uint16, uint16_t)
SCAN(uint32, uint32_t)
SCAN(uint64, uint64_t)
