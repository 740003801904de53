// SPDX-License-Identifier: Apache-2.0
// Running sums along one axis of x [outer, size, inner], forwards or backwards. Long axes are cut
// into chunks, whose lengths depend on sizes alone: their sums come first, the sums before each
// chunk next, the elements last.
#include "backends/cuda/kernels/common.cuh"

struct Scan {
  int64_t outer, size, inner, chunk;
  int32_t exclusive, reverse;
};
// Where element i in the order of summation lies; row points to element 0 of the axis.
TF_DEVICE int64_t place(const Scan& s, int64_t i) {
  return (s.reverse ? s.size - 1 - i : i) * s.inner;
}

// A thread a row and chunk, neighbours along `inner`.
template <class T>
TF_DEVICE void sum_columns(const T* x, typename Wide<T>::type* sums, const Scan& s) {
  const int64_t chunks = (s.size + s.chunk - 1) / s.chunk;
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= s.outer * chunks * s.inner) return;
  const int64_t inner = i % s.inner, chunk = i / s.inner % chunks, outer = i / s.inner / chunks;
  const T* row = x + outer * s.size * s.inner + inner;
  typename Wide<T>::type sum = 0;
  const int64_t last = (chunk + 1) * s.chunk < s.size ? (chunk + 1) * s.chunk : s.size;
#pragma unroll 4
  for (int64_t k = chunk * s.chunk; k < last; ++k) sum += widen(row[place(s, k)]);
  sums[i] = sum;
}
// Sums [outer, chunks, inner] become those before each chunk; a thread a row.
template <class A>
TF_DEVICE void sums_before(A* sums, int64_t rows, int64_t chunks, int64_t inner) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  A* row = sums + i / inner * chunks * inner + i % inner;
  A sum = 0;
  for (int64_t k = 0; k < chunks; ++k) {
    const A own = row[k * inner];
    row[k * inner] = sum;
    sum += own;
  }
}
template <class T>
TF_DEVICE void scan_columns(const T* x, const typename Wide<T>::type* sums, T* out, const Scan& s) {
  const int64_t chunks = (s.size + s.chunk - 1) / s.chunk;
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= s.outer * chunks * s.inner) return;
  const int64_t inner = i % s.inner, chunk = i / s.inner % chunks, outer = i / s.inner / chunks;
  const int64_t base = outer * s.size * s.inner + inner;
  typename Wide<T>::type sum = sums != nullptr ? sums[i] : 0;
  const int64_t last = (chunk + 1) * s.chunk < s.size ? (chunk + 1) * s.chunk : s.size;
#pragma unroll 4
  for (int64_t k = chunk * s.chunk; k < last; ++k) {
    const int64_t at = base + place(s, k);
    const typename Wide<T>::type next = sum + widen(x[at]);
    narrow(s.exclusive ? sum : next, &out[at]);
    sum = next;
  }
}

// Sums over the threads of a block: those before this one, and all.
template <class A>
TF_DEVICE A sum_before(A value, A* all, A* shared) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  A sum = value;
  for (int step = 1; step < 32; step *= 2) {
    const A other = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) shared[warp] = sum;
  // The sum before a lane comes from its neighbour: subtracting would turn infinity into NaN.
  const A below = __shfl_up_sync(0xffffffffu, sum, 1);
  __syncthreads();
  A base = 0;
  *all = 0;
  for (int w = 0; w < warps; ++w) {
    if (w < warp) base += shared[w];
    *all += shared[w];
  }
  __syncthreads();
  return lane == 0 ? base : base + below;
}

constexpr int kOwn = 4;  // neighbouring elements of one thread

// Rows with inner = 1. A block takes one chunk of one row, 1,024 elements at a time.
template <class T>
TF_DEVICE void scan_rows(const T* x, const typename Wide<T>::type* sums, T* out, const Scan& s) {
  typedef typename Wide<T>::type A;
  __shared__ A shared[32];
  const int64_t chunks = gridDim.y, base = blockIdx.x * s.size, first = blockIdx.y * s.chunk;
  const int64_t last = first + s.chunk < s.size ? first + s.chunk : s.size;
  A carry = sums != nullptr ? sums[blockIdx.x * chunks + blockIdx.y] : A(0);
  for (int64_t tile = first; tile < last; tile += kOwn * blockDim.x) {
    const int64_t own = tile + kOwn * threadIdx.x;
    A values[kOwn];
    A sum = 0;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      values[k] = own + k < last ? A(widen(x[base + place(s, own + k)])) : A(0);
      sum += values[k];
    }
    A all;
    A running = carry + sum_before(sum, &all, shared);
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const A next = running + values[k];
      if (own + k < last) narrow(s.exclusive ? running : next, &out[base + place(s, own + k)]);
      running = next;
    }
    carry += all;
  }
}
template <class T>
TF_DEVICE void sum_rows(const T* x, typename Wide<T>::type* sums, const Scan& s) {
  typedef typename Wide<T>::type A;
  __shared__ A shared[32];
  const int64_t chunks = gridDim.y, base = blockIdx.x * s.size, first = blockIdx.y * s.chunk;
  const int64_t last = first + s.chunk < s.size ? first + s.chunk : s.size;
  A sum = 0;
#pragma unroll 4
  for (int64_t k = first + threadIdx.x; k < last; k += blockDim.x) {
    sum += widen(x[base + place(s, k)]);
  }
  A all;
  sum_before(sum, &all, shared);
  if (threadIdx.x == 0) sums[blockIdx.x * chunks + blockIdx.y] = all;
}

#define SCAN(suffix, T)                                                                           \
  TF_KERNEL tf_scan_sum_columns_##suffix(const T* x, Wide<T>::type* sums, Scan s) {               \
    TF_WAIT;                                                                                      \
    sum_columns(x, sums, s);                                                                      \
  }                                                                                               \
  TF_KERNEL tf_scan_sum_rows_##suffix(const T* x, Wide<T>::type* sums, Scan s) {                  \
    TF_WAIT;                                                                                      \
    sum_rows(x, sums, s);                                                                         \
  }                                                                                               \
  TF_KERNEL tf_scan_before_##suffix(Wide<T>::type* sums, int64_t rows, int64_t chunks,            \
                                    int64_t inner) {                                              \
    TF_WAIT;                                                                                      \
    sums_before(sums, rows, chunks, inner);                                                       \
  }                                                                                               \
  TF_KERNEL tf_scan_columns_##suffix(const T* x, const Wide<T>::type* sums, T* out, Scan s) {     \
    TF_WAIT;                                                                                      \
    scan_columns(x, sums, out, s);                                                                \
  }                                                                                               \
  TF_KERNEL tf_scan_rows_##suffix(const T* x, const Wide<T>::type* sums, T* out, Scan s) {        \
    TF_WAIT;                                                                                      \
    scan_rows(x, sums, out, s);                                                                   \
  }
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
