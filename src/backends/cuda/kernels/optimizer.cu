// SPDX-License-Identifier: Apache-2.0
// Optimizer steps, one launch a variable. A thread takes 16 bytes of each array and has read all it
// needs before it writes, so results may be written over operands.
#include "backends/cuda/kernels/common.cuh"

TF_DEVICE float expm1_of(float x) { return expm1f(x); }
TF_DEVICE double expm1_of(double x) { return expm1(x); }
TF_DEVICE float sqrt_of(float x) { return sqrtf(x); }
TF_DEVICE double sqrt_of(double x) { return sqrt(x); }

// A scalar of any real type. `kind`: bytes of an integer, negative without a sign; of a floating
// type its bytes + 16, + 32 for bfloat16.
template <class A>
TF_DEVICE A load_scalar(const void* from, int kind) {
  switch (kind) {
    case 18: return (A)widen(*(const f16*)from);
    case 34: return (A)widen(*(const bf16*)from);
    case 20: return (A)*(const float*)from;
    case 24: return (A)*(const double*)from;
    case -8: return (A)*(const uint64_t*)from;
    default: return (A)load_index(from, 0, kind);
  }
}

template <class T>
TF_DEVICE Group<T> load_group(const T* from, int64_t first, int64_t n, bool whole) {
  Group<T> group;
  if (whole) return *(const Group<T>*)(from + first);
#pragma unroll
  for (int k = 0; k < Group<T>::kSize; ++k) {
    if (first + k < n) group.at[k] = from[first + k];
  }
  return group;
}
template <class T>
TF_DEVICE void store_group(T* to, const Group<T>& group, int64_t first, int64_t n, bool whole) {
  if (whole) {
    *(Group<T>*)(to + first) = group;
    return;
  }
#pragma unroll
  for (int k = 0; k < Group<T>::kSize; ++k) {
    if (first + k < n) to[first + k] = group.at[k];
  }
}

struct Adam {
  int64_t elements;
  double log_beta1, log_beta2;  // 1 - beta^step = -expm1(step log(beta)), exact near 0 too
  double left1, left2, epsilon; // 1 - beta
  int32_t step_kind, rate_kind;
};
template <class T>
TF_DEVICE void adam(const T* param, const T* grad, const T* m, const T* v, const void* step,
                    const void* rate, T* new_param, T* new_m, T* new_v, const Adam& a) {
  typedef typename Wide<T>::type A;
  const A t = load_scalar<A>(step, a.step_kind);
  const A alpha = load_scalar<A>(rate, a.rate_kind) * sqrt_of(-expm1_of(t * (A)a.log_beta2)) /
                  -expm1_of(t * (A)a.log_beta1);
  const A left1 = (A)a.left1, left2 = (A)a.left2, epsilon = (A)a.epsilon;
  const bool aligned = aligned16(param) && aligned16(grad) && aligned16(m) && aligned16(v) &&
                       aligned16(new_param) && aligned16(new_m) && aligned16(new_v);
  const int64_t stride = (int64_t)gridDim.x * blockDim.x * Group<T>::kSize;
  int64_t first = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * Group<T>::kSize;
#pragma unroll 1
  for (; first < a.elements; first += stride) {
    const bool whole = aligned && first + Group<T>::kSize <= a.elements;
    Group<T> p = load_group(param, first, a.elements, whole);
    const Group<T> g = load_group(grad, first, a.elements, whole);
    Group<T> mean = load_group(m, first, a.elements, whole);
    Group<T> square = load_group(v, first, a.elements, whole);
#pragma unroll
    for (int k = 0; k < Group<T>::kSize; ++k) {
      const A gradient = widen(g.at[k]), old_m = widen(mean.at[k]), old_v = widen(square.at[k]);
      const A now_m = old_m + (gradient - old_m) * left1;
      const A now_v = old_v + (gradient * gradient - old_v) * left2;
      narrow(A(widen(p.at[k])) - now_m * alpha / (sqrt_of(now_v) + epsilon), &p.at[k]);
      narrow(now_m, &mean.at[k]);
      narrow(now_v, &square.at[k]);
    }
    store_group(new_param, p, first, a.elements, whole);
    store_group(new_m, mean, first, a.elements, whole);
    store_group(new_v, square, first, a.elements, whole);
  }
}
#define ADAM(suffix, T)                                                                     \
  TF_KERNEL tf_adam_##suffix(const T* param, const T* grad, const T* m, const T* v,         \
                             const void* step, const void* rate, T* new_param, T* new_m,    \
                             T* new_v, Adam a) {                                            \
    TF_WAIT;                                                                                \
    adam(param, grad, m, v, step, rate, new_param, new_m, new_v, a);                        \
  }
ADAM(float32, float)
ADAM(float64, double)
ADAM(float16, f16)
ADAM(bfloat16, bf16)
