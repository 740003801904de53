// SPDX-License-Identifier: Apache-2.0
// Updates brought to indexed places. The updates are sorted by their places first (search.cu); then
// a thread takes all updates of one place and one column, in their order, so that the result is the
// same every time. out [outer, size, inner], updates [outer, count, inner].
#include "backends/cuda/kernels/common.cuh"

struct Scatter {
  int64_t outer, size, inner, count;
  int64_t sizes[kMaxRank];  // of the axes that an index names
  int32_t depth, index_bytes;
  int32_t reduction;
};
enum { kAdd, kMul, kMax, kMin, kUpdate };
constexpr uint64_t kNowhere = 0xffffffffffffffffull;  // the place of an index outside its axis

TF_KERNEL tf_scatter_places(const void* indices, uint64_t* places, Scatter s, ErrorWord* error,
                            uint32_t step) {
  TF_WAIT;
  const int64_t stride = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < s.count; i += stride) {
    uint64_t place = 0;
    for (int k = 0; k < s.depth; ++k) {
      const int64_t at = load_index(indices, i * s.depth + k, s.index_bytes);
      if (at < 0 || at >= s.sizes[k]) {
        report(error, step, kIndexOutOfRange, at);
        place = kNowhere;
        break;
      }
      place = place * (uint64_t)s.sizes[k] + (uint64_t)at;
    }
    places[i] = place;
  }
}

template <class A>
TF_DEVICE A combined(A a, A b, int reduction) {
  switch (reduction) {
    case kAdd: return a + b;
    case kMul: return a * b;
    case kMax: return (a != a || a > b) ? a : b;  // NaN from either side
    case kMin: return (a != a || a < b) ? a : b;
    default: return b;
  }
}

// The first of the sorted updates of one place; false where this one is not.
TF_DEVICE bool is_first(const uint64_t* places, int64_t i) {
  return places[i] != kNowhere && (i == 0 || places[i - 1] != places[i]);
}

template <class T>
TF_DEVICE void scatter(const uint64_t* places, const uint32_t* order, const T* updates, T* out,
                       const Scatter& s) {
  typedef typename Wide<T>::type A;
  const int64_t n = s.outer * s.count * s.inner, stride = (int64_t)gridDim.x * blockDim.x;
  for (int64_t t = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; t < n; t += stride) {
    const int64_t inner = t % s.inner, i = t / s.inner % s.count, outer = t / s.inner / s.count;
    if (!is_first(places, i)) continue;
    T* at = &out[(outer * s.size + (int64_t)places[i]) * s.inner + inner];
    const T* from = updates + outer * s.count * s.inner + inner;
    A value = widen(*at);
    for (int64_t k = i; k < s.count && places[k] == places[i]; ++k) {
      value = combined(value, A(widen(from[order[k] * s.inner])), s.reduction);
    }
    narrow(value, at);
  }
}

// The last update of a place stays, whatever its bytes mean.
template <class T>
TF_DEVICE void scatter_update(const uint64_t* places, const uint32_t* order, const T* updates,
                              T* out, const Scatter& s) {
  const int64_t n = s.outer * s.count * s.inner, stride = (int64_t)gridDim.x * blockDim.x;
  for (int64_t t = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; t < n; t += stride) {
    const int64_t inner = t % s.inner, i = t / s.inner % s.count, outer = t / s.inner / s.count;
    const bool last = i + 1 == s.count || places[i + 1] != places[i];
    if (places[i] == kNowhere || !last) continue;
    out[(outer * s.size + (int64_t)places[i]) * s.inner + inner] =
        updates[(outer * s.count + order[i]) * s.inner + inner];
  }
}

#define SCATTER(suffix, T)                                                                      \
  TF_KERNEL tf_scatter_##suffix(const uint64_t* places, const uint32_t* order, const T* updates, \
                                T* out, Scatter s) {                                            \
    TF_WAIT;                                                                                    \
    scatter(places, order, updates, out, s);                                                    \
  }
SCATTER(float32, float)
SCATTER(float64, double)
SCATTER(float16, f16)
SCATTER(bfloat16, bf16)
SCATTER(int8, int8_t)
SCATTER(int16, int16_t)
SCATTER(int32, int32_t)
SCATTER(int64, int64_t)
SCATTER(uint8, uint8_t)
SCATTER(uint16, uint16_t)
SCATTER(uint32, uint32_t)
SCATTER(uint64, uint64_t)
#define UPDATE(bytes, T)                                                                      \
  TF_KERNEL tf_scatter_update_##bytes(const uint64_t* places, const uint32_t* order,          \
                                      const T* updates, T* out, Scatter s) {                  \
    TF_WAIT;                                                                                  \
    scatter_update(places, order, updates, out, s);                                           \
  }
UPDATE(1, uint8_t)
UPDATE(2, uint16_t)
UPDATE(4, uint32_t)
UPDATE(8, uint64_t)
UPDATE(16, Bytes16)
