// SPDX-License-Identifier: Apache-2.0
// Softmax, its logarithm, and the cross-entropy of whole-number labels with its gradient, along the
// middle axis of x [outer, size, inner]. One pass finds a row's maximum and its sum of exponentials
// (M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax", 2018), the next one
// writes. Two forms: up to 32 threads of a warp a row, and a block a row.
#include "backends/cuda/kernels/common.cuh"

enum { kSoftmax, kLogSoftmax, kLoss, kLossGrad };

struct Softmax {
  int64_t outer, size, inner;
  int32_t lanes, mode;
  int32_t label_bytes;  // negative: labels have no sign
};

TF_DEVICE float exp_of(float x) { return expf(x); }
TF_DEVICE double exp_of(double x) { return exp(x); }
TF_DEVICE float log_of(float x) { return logf(x); }
TF_DEVICE double log_of(double x) { return log(x); }

// The largest element and the sum of exp(x - top).
template <class A>
struct Stats {
  A top, sum;
};
// NaN stays. Where x is top, the difference is 0 also for infinities.
template <class A>
TF_DEVICE A larger(A a, A b) { return (b > a) | (b != b) ? b : a; }
template <class A>
TF_DEVICE A weight(A x, A top) { return x == top ? A(1) : exp_of(x - top); }
template <class A>
TF_DEVICE Stats<A> join(Stats<A> a, Stats<A> b) {
  const A top = larger(a.top, b.top);
  return {top, a.sum * weight(a.top, top) + b.sum * weight(b.top, top)};
}

// Elements first, first + step, … of a row, four at a time.
template <class T>
TF_DEVICE Stats<typename Wide<T>::type> stats_of(const T* row, int64_t stride, int64_t size,
                                                 int64_t first, int64_t step) {
  typedef typename Wide<T>::type A;
  Stats<A> stats = {-INFINITY, 0};
#pragma unroll 1
  for (int64_t i = first; i < size; i += 4 * step) {
    A x[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      x[k] = i + k * step < size ? A(widen(row[(i + k * step) * stride])) : A(-INFINITY);
    }
    const A top = larger(stats.top, larger(larger(x[0], x[1]), larger(x[2], x[3])));
    A sum = stats.sum * weight(stats.top, top);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (i + k * step < size) sum += weight(x[k], top);
    }
    stats = {top, sum};
  }
  return stats;
}
template <class A>
TF_DEVICE Stats<A> join_lanes(Stats<A> stats, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2) {
    const Stats<A> other = {__shfl_xor_sync(0xffffffffu, stats.top, step),
                            __shfl_xor_sync(0xffffffffu, stats.sum, step)};
    stats = join(stats, other);
  }
  return stats;
}

template <class T>
TF_DEVICE void write_row(const T* x, const void* labels, const T* dloss, T* y, const Softmax& s,
                         int64_t row, Stats<typename Wide<T>::type> stats, int64_t first,
                         int64_t step, ErrorWord* error, uint32_t number) {
  typedef typename Wide<T>::type A;
  const int64_t base = row / s.inner * s.size * s.inner + row % s.inner;
  // Infinite maxima give NaN, as exp(x - top) / sum does.
  const A sum = stats.sum + (stats.top - stats.top);
  int64_t label = 0;
  if (s.mode >= kLoss) {
    label = load_index(labels, row, s.label_bytes);
    if (label < 0 || label >= s.size) {
      if (first == 0) report(error, number, kIndexOutOfRange, label);
      return;
    }
  }
  if (s.mode == kLoss) {
    if (first == 0) narrow(log_of(sum) - (A(widen(x[base + label])) - stats.top), &y[row]);
    return;
  }
  const A log_sum = log_of(sum);
  const A scale = s.mode == kLossGrad ? A(widen(dloss[row])) : A(1);
#pragma unroll 4
  for (int64_t i = first; i < s.size; i += step) {
    const A low = A(widen(x[base + i * s.inner])) - stats.top;
    A value;
    if (s.mode == kLogSoftmax) {
      value = low - log_sum;
    } else {
      value = exp_of(low) / sum;
      if (s.mode == kLossGrad) value = (value - (i == label ? A(1) : A(0))) * scale;
    }
    narrow(value, &y[base + i * s.inner]);
  }
}

template <class T>
TF_DEVICE void softmax_lanes(const T* x, const void* labels, const T* dloss, T* y, const Softmax& s,
                             ErrorWord* error, uint32_t number) {
  const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t rows = s.outer * s.inner, lane = thread % s.lanes;
  const int64_t own = thread / s.lanes, row = own < rows ? own : rows - 1;
  const T* from = x + row / s.inner * s.size * s.inner + row % s.inner;
  const auto stats = join_lanes(stats_of(from, s.inner, s.size, lane, s.lanes), s.lanes);
  if (own < rows) write_row(x, labels, dloss, y, s, row, stats, lane, s.lanes, error, number);
}

template <class T>
TF_DEVICE void softmax_rows(const T* x, const void* labels, const T* dloss, T* y, const Softmax& s,
                            ErrorWord* error, uint32_t number) {
  typedef typename Wide<T>::type A;
  __shared__ A tops[32], sums[32];
  const int64_t row = blockIdx.x;
  const T* from = x + row / s.inner * s.size * s.inner + row % s.inner;
  Stats<A> stats = join_lanes(stats_of(from, s.inner, s.size, threadIdx.x, blockDim.x), 32);
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) {
    tops[warp] = stats.top;
    sums[warp] = stats.sum;
  }
  __syncthreads();
  stats = lane < warps ? Stats<A>{tops[lane], sums[lane]} : Stats<A>{-INFINITY, 0};
  stats = join_lanes(stats, 32);
  write_row(x, labels, dloss, y, s, row, stats, threadIdx.x, blockDim.x, error, number);
}

#define SOFTMAX(suffix, T)                                                                        \
  TF_KERNEL tf_softmax_##suffix##_lanes(const T* x, const void* labels, const T* dloss, T* y,     \
                                        Softmax s, ErrorWord* error, uint32_t step) {             \
    TF_WAIT;                                                                                      \
    softmax_lanes(x, labels, dloss, y, s, error, step);                                           \
  }                                                                                               \
  TF_LARGE_KERNEL tf_softmax_##suffix##_rows(const T* x, const void* labels, const T* dloss,      \
                                             T* y, Softmax s, ErrorWord* error, uint32_t step) {              \
    TF_WAIT;                                                                                      \
    softmax_rows(x, labels, dloss, y, s, error, step);                                            \
  }
SOFTMAX(float32, float)
SOFTMAX(float64, double)
SOFTMAX(float16, f16)
SOFTMAX(bfloat16, bf16)
