// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes. Which elements meet in which order depends on sizes alone, so the bits
// are the same each time. Three forms:
//   lanes    up to 32 threads of a warp a result: short rows, many of them
//   rows     a block a result, or a block for one chunk of it
//   columns  neighbouring threads have neighbouring results; a block takes one chunk of the rows
// Where a result is made of several chunks, a second launch reduces theirs.
#include "backends/cuda/kernels/common.cuh"

struct Reduction {
  Axes kept, reduced;
  int64_t results, elements;  // how many results; elements reduced into each
  int64_t units, chunk;       // what threads take by turns: 16-byte groups or single elements
  int32_t lanes, grouped;
  double scale;  // mean: 1 / elements; else 1
};

struct Sum {
  template <class T> static __device__ typename Wide<T>::type start() { return 0; }
  template <class A> static __device__ A join(A a, A b) { return a + b; }
};
struct Prod {
  template <class T> static __device__ typename Wide<T>::type start() { return 1; }
  template <class A> static __device__ A join(A a, A b) { return a * b; }
};
// NaN wins, as in NumPy.
struct Max {
  template <class T> static __device__ typename Wide<T>::type start() { return Limits<T>::low(); }
  template <class A> static __device__ A join(A a, A b) { return (a != a || a > b) ? a : b; }
};
struct Min {
  template <class T> static __device__ typename Wide<T>::type start() { return Limits<T>::high(); }
  template <class A> static __device__ A join(A a, A b) { return (a != a || a < b) ? a : b; }
};
struct Any {
  template <class T> static __device__ typename Wide<T>::type start() { return 0; }
  template <class A> static __device__ A join(A a, A b) { return A(a | b); }
};
struct All {
  template <class T> static __device__ typename Wide<T>::type start() { return 1; }
  template <class A> static __device__ A join(A a, A b) { return A(a & b); }
};

template <class A> TF_DEVICE A scaled(A value, double) { return value; }
TF_DEVICE float scaled(float value, double scale) {
  return scale == 1.0 ? value : value * (float)scale;
}
TF_DEVICE double scaled(double value, double scale) { return value * scale; }

// What one thread makes of the elements of its result: those it takes by turns with `step` others,
// four loads at a time, so that they overlap.

// Elements `stride` apart.
template <class Op, class T>
TF_DEVICE typename Wide<T>::type strided_part(const T* in, int64_t stride, int64_t first,
                                              int64_t last, int64_t step) {
  typedef typename Wide<T>::type A;
  const A start = Op::template start<T>();
  A value = start;
#pragma unroll 1
  for (int64_t i = first; i < last; i += 4 * step) {
    A at[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      at[k] = i + k * step < last ? A(widen(in[(i + k * step) * stride])) : start;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) value = Op::join(value, at[k]);
  }
  return value;
}
// Elements over several axes.
template <class Op, class T>
TF_DEVICE typename Wide<T>::type scattered_part(const T* in, const Axes& axes, int64_t first,
                                                int64_t last, int64_t step) {
  typedef typename Wide<T>::type A;
  A value = Op::template start<T>();
#pragma unroll 1
  for (int64_t i = first; i < last; i += step) {
    value = Op::join(value, A(widen(in[offset_of(axes, i)])));
  }
  return value;
}
// Neighbours in groups of 16 bytes. The order of operations does not depend on the address.
template <class Op, class T>
TF_DEVICE typename Wide<T>::type grouped_part(const T* in, int64_t elements, int64_t first,
                                              int64_t last, int64_t step) {
  typedef typename Wide<T>::type A;
  constexpr int kSize = Group<T>::kSize;
  const bool aligned = aligned16(in);
  const int64_t full = elements / kSize, most = last < full ? last : full;
  A value = Op::template start<T>();
  int64_t i = first;
#pragma unroll 1
  for (; i < most; i += 4 * step) {
    Group<T> groups[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const T* from = in + (i + k * step) * kSize;
      if (i + k * step >= most) continue;
      if (aligned) {
        groups[k] = *(const Group<T>*)from;
      } else {
#pragma unroll
        for (int e = 0; e < kSize; ++e) groups[k].at[e] = from[e];
      }
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (i + k * step >= most) continue;
      A one = widen(groups[k].at[0]);
#pragma unroll
      for (int e = 1; e < kSize; ++e) one = Op::join(one, A(widen(groups[k].at[e])));
      value = Op::join(value, one);
    }
  }
  // What is left over is less than a group, and its turn is `full`.
  if (full < last && full >= first && (full - first) % step == 0) {
#pragma unroll
    for (int e = 0; e < kSize - 1; ++e) {
      if (full * kSize + e < elements) value = Op::join(value, A(widen(in[full * kSize + e])));
    }
  }
  return value;
}

template <class Op, class T>
TF_DEVICE typename Wide<T>::type row_part(const T* in, const Reduction& r, int64_t first,
                                          int64_t last, int64_t step) {
  return r.grouped ? grouped_part<Op>(in, r.elements, first, last, step)
                   : scattered_part<Op>(in, r.reduced, first, last, step);
}

template <class Op, class A>
TF_DEVICE A join_lanes(A value, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2) {
    value = Op::join(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  return value;
}

template <class Op, class T, class Out>
TF_DEVICE void reduce_lanes(const T* in, Out* out, const Reduction& r) {
  typedef typename Wide<T>::type A;
  const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t result = thread / r.lanes, lane = thread % r.lanes;
  A value = Op::template start<T>();
  if (result < r.results) {
    value = row_part<Op>(in + offset_of(r.kept, result), r, lane, r.units, r.lanes);
  }
  value = join_lanes<Op>(value, r.lanes);
  if (result < r.results && lane == 0) narrow(scaled(value, r.scale), &out[result]);
}

// Joins one value of each thread; thread 0 has the result.
template <class Op, class T>
TF_DEVICE typename Wide<T>::type join_block(typename Wide<T>::type value) {
  __shared__ typename Wide<T>::type shared[32];
  value = join_lanes<Op>(value, 32);
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  if (threadIdx.x % 32 == 0) shared[warp] = value;
  __syncthreads();
  if (warp != 0) return value;
  value = (int)threadIdx.x < warps ? shared[threadIdx.x] : Op::template start<T>();
  return join_lanes<Op>(value, 32);
}

// The grid is results x chunks; out [results, chunks].
template <class Op, class T, class Out>
TF_DEVICE void reduce_rows(const T* in, Out* out, const Reduction& r) {
  const int64_t result = blockIdx.x, first = blockIdx.y * r.chunk;
  const int64_t last = first + r.chunk < r.units ? first + r.chunk : r.units;
  const T* from = in + offset_of(r.kept, result);
  const auto value = join_block<Op, T>(row_part<Op>(from, r, first + threadIdx.x, last, blockDim.x));
  if (threadIdx.x == 0) narrow(scaled(value, r.scale), &out[result * gridDim.y + blockIdx.y]);
}

// A block a result: for types of which little is asked.
template <class Op, class T, class Out>
TF_DEVICE void reduce_any(const T* in, Out* out, const Reduction& r) {
  const T* from = in + offset_of(r.kept, blockIdx.x);
  const auto value =
      join_block<Op, T>(scattered_part<Op>(from, r.reduced, threadIdx.x, r.elements, blockDim.x));
  if (threadIdx.x == 0) narrow(scaled(value, r.scale), &out[blockIdx.x]);
}

// Blocks of x results by y partial values; out [chunks, results].
template <class Op, class T, class Out>
TF_DEVICE void reduce_columns(const T* in, Out* out, const Reduction& r) {
  typedef typename Wide<T>::type A;
  __shared__ A shared[1024];
  const int64_t result = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t first = blockIdx.y * r.chunk;
  const int64_t last = first + r.chunk < r.units ? first + r.chunk : r.units;
  const bool inside = result < r.results;
  A value = Op::template start<T>();
  if (inside) {
    const T* from = in + offset_of(r.kept, result);
    const int64_t own = first + threadIdx.y;
    value = r.reduced.rank <= 1
                ? strided_part<Op>(from, r.reduced.strides[0], own, last, blockDim.y)
                : scattered_part<Op>(from, r.reduced, own, last, blockDim.y);
  }
  const int place = threadIdx.y * blockDim.x + threadIdx.x;
  shared[place] = value;
  __syncthreads();
  for (int half = blockDim.y / 2; half > 0; half /= 2) {
    if ((int)threadIdx.y < half) {
      shared[place] = Op::join(shared[place], shared[place + half * blockDim.x]);
    }
    __syncthreads();
  }
  if (threadIdx.y == 0 && inside) {
    narrow(scaled(shared[place], r.scale), &out[blockIdx.y * r.results + result]);
  }
}

#define FORM(form, name, Op, from, In, to, Out)                                            \
  TF_LARGE_KERNEL tf_reduce_##name##_##from##_##to##_##form(const In* in, Out* out, Reduction r) { \
    TF_WAIT;                                                                               \
    reduce_##form<Op>(in, out, r);                                                         \
  }
#define FORMS(name, Op, from, In, to, Out)      \
  FORM(lanes, name, Op, from, In, to, Out)      \
  FORM(rows, name, Op, from, In, to, Out)       \
  FORM(columns, name, Op, from, In, to, Out)
// Chunks of half types are kept in float until they are joined.
#define HALF(name, Op, half, T)                 \
  FORMS(name, Op, half, T, half, T)             \
  FORM(rows, name, Op, half, T, float32, float) \
  FORM(columns, name, Op, half, T, float32, float) \
  FORM(rows, name, Op, float32, float, half, T) \
  FORM(columns, name, Op, float32, float, half, T)
// Rare types: one form.
#define RARE(name, Op, type, T) FORM(any, name, Op, type, T, type, T)
#define NUMBERS(name, Op)                              \
  FORMS(name, Op, float32, float, float32, float)      \
  FORMS(name, Op, float64, double, float64, double)    \
  HALF(name, Op, float16, f16)                         \
  HALF(name, Op, bfloat16, bf16)                       \
  FORMS(name, Op, int32, int32_t, int32, int32_t)      \
  FORMS(name, Op, int64, int64_t, int64, int64_t)      \
  RARE(name, Op, int8, int8_t)                         \
  RARE(name, Op, int16, int16_t)                       \
  RARE(name, Op, uint8, uint8_t)                       \
  RARE(name, Op, uint16, uint16_t)                     \
  RARE(name, Op, uint32, uint32_t)                     \
  RARE(name, Op, uint64, uint64_t)
NUMBERS(sum, Sum)
NUMBERS(prod, Prod)
NUMBERS(max, Max)
NUMBERS(min, Min)
FORMS(any, Any, bool, uint8_t, bool, uint8_t)
FORMS(all, All, bool, uint8_t, bool, uint8_t)
