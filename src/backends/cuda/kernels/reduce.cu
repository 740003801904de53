// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes. Every partial result is combined in a fixed order, so that the bits are
// the same each time. Three forms:
//   rows     a block a result, threads along the reduced elements (they lie side by side)
//   columns  a thread a result and 8 partial sums (results lie side by side)
//   chunks   as rows, over one chunk of the reduced elements; a second launch joins the chunks
#include "backends/cuda/kernels/common.cuh"

struct Reduction {
  Axes kept, reduced;
  int64_t results, elements;  // how many results; elements reduced into each
  int64_t chunk;              // elements a block reduces
  double scale;               // mean: 1 / elements; else 1
};

template <class T>
struct Limits;
template <>
struct Limits<float> {
  static __device__ float low() { return -__int_as_float(0x7f800000); }
  static __device__ float high() { return __int_as_float(0x7f800000); }
};
template <>
struct Limits<double> {
  static __device__ double low() { return -__longlong_as_double(0x7ff0000000000000ll); }
  static __device__ double high() { return __longlong_as_double(0x7ff0000000000000ll); }
};
template <>
struct Limits<int32_t> {
  static __device__ int32_t low() { return (int32_t)0x80000000; }
  static __device__ int32_t high() { return 0x7fffffff; }
};
template <>
struct Limits<int64_t> {
  static __device__ int64_t low() { return (int64_t)0x8000000000000000ll; }
  static __device__ int64_t high() { return 0x7fffffffffffffffll; }
};

struct Sum {
  template <class A> static __device__ A start() { return A(0); }
  template <class A> static __device__ A join(A a, A b) { return a + b; }
};
struct Prod {
  template <class A> static __device__ A start() { return A(1); }
  template <class A> static __device__ A join(A a, A b) { return a * b; }
};
// NaN wins, as in NumPy.
struct Max {
  template <class A> static __device__ A start() { return Limits<A>::low(); }
  template <class A> static __device__ A join(A a, A b) { return (a != a || a > b) ? a : b; }
};
struct Min {
  template <class A> static __device__ A start() { return Limits<A>::high(); }
  template <class A> static __device__ A join(A a, A b) { return (a != a || a < b) ? a : b; }
};
struct Any {
  template <class A> static __device__ A start() { return A(0); }
  template <class A> static __device__ A join(A a, A b) { return A(a | b); }
};
struct All {
  template <class A> static __device__ A start() { return A(1); }
  template <class A> static __device__ A join(A a, A b) { return A(a & b); }
};

// Half types and float are summed in float.
template <class T> struct Wide { typedef T type; };
template <> struct Wide<f16> { typedef float type; };
template <> struct Wide<bf16> { typedef float type; };

template <class A> TF_DEVICE A scaled(A value, double) { return value; }
template <> __device__ __forceinline__ float scaled(float value, double scale) {
  return scale == 1.0 ? value : value * (float)scale;
}
template <> __device__ __forceinline__ double scaled(double value, double scale) {
  return value * scale;
}

constexpr int kThreads = 256;

// Joins one value of each thread, in a tree whose shape depends on the block size alone.
template <class Op, class A>
TF_DEVICE A join_block(A value, A* shared) {
  const int t = threadIdx.x;
  shared[t] = value;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) shared[t] = Op::join(shared[t], shared[t + half]);
    __syncthreads();
  }
  return shared[0];
}

template <class Op, class T, class Out>
TF_DEVICE void reduce_rows(const T* in, Out* out, const Reduction& r) {
  typedef typename Wide<T>::type A;
  __shared__ A shared[kThreads];
  const int64_t result = blockIdx.x, chunks = gridDim.y;
  const int64_t base = offset_of(r.kept, result);
  const int64_t first = blockIdx.y * r.chunk;
  const int64_t last = first + r.chunk < r.elements ? first + r.chunk : r.elements;
  A value = Op::template start<A>();
  if (r.reduced.rank == 1) {
    const int64_t stride = r.reduced.strides[0];
#pragma unroll 1
    for (int64_t i = first + threadIdx.x; i < last; i += blockDim.x) {
      value = Op::join(value, A(widen(in[base + i * stride])));
    }
  } else {
#pragma unroll 1
    for (int64_t i = first + threadIdx.x; i < last; i += blockDim.x) {
      value = Op::join(value, A(widen(in[base + offset_of(r.reduced, i)])));
    }
  }
  value = join_block<Op>(value, shared);
  if (threadIdx.x == 0) narrow(scaled(value, r.scale), &out[result * chunks + blockIdx.y]);
}

// Blocks of 32 results by 8 partial values.
template <class Op, class T>
TF_DEVICE void reduce_columns(const T* in, T* out, const Reduction& r) {
  typedef typename Wide<T>::type A;
  __shared__ A shared[8][33];
  const int64_t result = (int64_t)blockIdx.x * 32 + threadIdx.x;
  const bool inside = result < r.results;
  A value = Op::template start<A>();
  if (inside) {
    const int64_t base = offset_of(r.kept, result);
    if (r.reduced.rank == 1) {
      const int64_t stride = r.reduced.strides[0];
  #pragma unroll 1
    for (int64_t i = threadIdx.y; i < r.elements; i += 8) {
        value = Op::join(value, A(widen(in[base + i * stride])));
      }
    } else {
  #pragma unroll 1
    for (int64_t i = threadIdx.y; i < r.elements; i += 8) {
        value = Op::join(value, A(widen(in[base + offset_of(r.reduced, i)])));
      }
    }
  }
  shared[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  if (threadIdx.y == 0 && inside) {
    A total = shared[0][threadIdx.x];
    for (int y = 1; y < 8; ++y) total = Op::join(total, shared[y][threadIdx.x]);
    narrow(scaled(total, r.scale), &out[result]);
  }
}

#define REDUCE_ROWS(name, Op, T) \
  TF_KERNEL tf_reduce_##name##_rows(const T* in, T* out, Reduction r) { TF_WAIT; reduce_rows<Op, T, T>(in, out, r); }
#define REDUCE_COLUMNS(name, Op, T) \
  TF_KERNEL tf_reduce_##name##_columns(const T* in, T* out, Reduction r) { TF_WAIT; reduce_columns<Op, T>(in, out, r); }
#define REDUCE_CHUNKS(name, Op, T) \
  TF_KERNEL tf_reduce_##name##_chunks(const T* in, Wide<T>::type* out, Reduction r) { TF_WAIT; reduce_rows<Op, T, Wide<T>::type>(in, out, r); }
#define REDUCE_JOIN(name, Op, T) \
  TF_KERNEL tf_reduce_##name##_join(const Wide<T>::type* in, T* out, Reduction r) { \
    TF_WAIT; \
    typedef Wide<T>::type A; \
    __shared__ A shared[kThreads]; \
    A value = Op::start<A>(); \
    for (int64_t i = threadIdx.x; i < r.elements; i += blockDim.x) value = Op::join(value, in[blockIdx.x * r.elements + i]); \
    value = join_block<Op>(value, shared); \
    if (threadIdx.x == 0) narrow(scaled(value, r.scale), &out[blockIdx.x]); \
  }

#define REDUCE(name, Op, suffix, T)    \
  REDUCE_ROWS(name##_##suffix, Op, T)  \
  REDUCE_COLUMNS(name##_##suffix, Op, T)
#define REDUCE_NUMBERS(name, Op)     \
  REDUCE(name, Op, float32, float)   \
  REDUCE(name, Op, float64, double)  \
  REDUCE(name, Op, float16, f16)     \
  REDUCE(name, Op, bfloat16, bf16)   \
  REDUCE(name, Op, int32, int32_t)   \
  REDUCE(name, Op, int64, int64_t)
REDUCE_NUMBERS(sum, Sum)
REDUCE_NUMBERS(prod, Prod)
REDUCE_NUMBERS(max, Max)
REDUCE_NUMBERS(min, Min)
// Long sums are split over blocks; other reductions of one result are rare.
#define REDUCE_LONG(suffix, T)              \
  REDUCE_CHUNKS(sum_##suffix, Sum, T)       \
  REDUCE_JOIN(sum_##suffix, Sum, T)
REDUCE_LONG(float32, float)
REDUCE_LONG(float64, double)
REDUCE_LONG(float16, f16)
REDUCE_LONG(bfloat16, bf16)
REDUCE_LONG(int32, int32_t)
REDUCE_LONG(int64, int64_t)
REDUCE(any, Any, bool, uint8_t)
REDUCE(all, All, bool, uint8_t)

// ---- index of the largest or smallest element along one axis ----

struct ArgReduction {
  int64_t outer, size, inner;
};
// True where (a, i) comes before (b, k): NaN first, then the better value, then the lower index.
template <class A>
TF_DEVICE bool better(A a, int64_t i, A b, int64_t k, bool smallest) {
  const bool a_nan = a != a, b_nan = b != b;
  if (a_nan || b_nan) return a_nan && b_nan ? i < k : a_nan;
  if (a == b) return i < k;
  return smallest ? a < b : a > b;
}

// A block of 128 threads a result.
template <class T, class Index>
TF_DEVICE void arg_reduce(const T* in, Index* out, const ArgReduction& r, bool smallest) {
  typedef typename Wide<T>::type A;
  __shared__ A values[128];
  __shared__ int64_t places[128];
  const int64_t result = blockIdx.x, outer = result / r.inner, inner = result % r.inner;
  const T* row = in + outer * r.size * r.inner + inner;
  A best = widen(row[0]);
  int64_t place = 0;
  for (int64_t i = threadIdx.x; i < r.size; i += 128) {
    const A value = widen(row[i * r.inner]);
    if (better(value, i, best, place, smallest)) {
      best = value;
      place = i;
    }
  }
  values[threadIdx.x] = best;
  places[threadIdx.x] = place;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    const int t = threadIdx.x;
    if (t < half && better(values[t + half], places[t + half], values[t], places[t], smallest)) {
      values[t] = values[t + half];
      places[t] = places[t + half];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) out[result] = (Index)places[0];
}

#define ARG(suffix, T)                                                                        \
  TF_KERNEL tf_arg_##suffix##_int32(const T* in, int32_t* out, ArgReduction r, int smallest) { \
    TF_WAIT; arg_reduce(in, out, r, smallest != 0); }                                          \
  TF_KERNEL tf_arg_##suffix##_int64(const T* in, int64_t* out, ArgReduction r, int smallest) { \
    TF_WAIT; arg_reduce(in, out, r, smallest != 0); }
ARG(float32, float)
ARG(float64, double)
ARG(float16, f16)
ARG(bfloat16, bf16)
ARG(int32, int32_t)
ARG(int64, int64_t)
