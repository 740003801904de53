// SPDX-License-Identifier: Apache-2.0
// Places of extremes, sorting, and what is made of sorted elements: the k largest, the different
// ones. Equal elements are told apart by their index, so every order is total and the same on every
// run.
#include "backends/cuda/kernels/common.cuh"

TF_DEVICE void store_index(void* out, int64_t i, int64_t value, int bytes) {
  switch (bytes) {
    case 1: ((int8_t*)out)[i] = (int8_t)value; break;
    case 2: ((int16_t*)out)[i] = (int16_t)value; break;
    case 4: ((int32_t*)out)[i] = (int32_t)value; break;
    default: ((int64_t*)out)[i] = value;
  }
}

// ---- index of the largest or smallest element along one axis ----

struct ArgReduction {
  int64_t outer, size, inner;
  int32_t lanes, smallest, index_bytes;
};
// True where (a, i) comes before (b, k): NaN first, then the better value, then the lower index.
template <class A>
TF_DEVICE bool better(A a, int64_t i, A b, int64_t k, bool smallest) {
  const bool a_nan = a != a, b_nan = b != b;
  if (a_nan || b_nan) return a_nan && b_nan ? i < k : a_nan;
  if (a == b) return i < k;
  return smallest ? a < b : a > b;
}

template <class A>
struct Best {
  A value;
  int64_t place;
};
// The best of elements first, first + step, …
template <class T>
TF_DEVICE Best<typename Wide<T>::type> best_of(const T* row, const ArgReduction& r, int64_t first,
                                               int64_t step) {
  typedef typename Wide<T>::type A;
  Best<A> best = {A(widen(row[0])), 0};
#pragma unroll 4
  for (int64_t i = first; i < r.size; i += step) {
    const A value = widen(row[i * r.inner]);
    if (better(value, i, best.value, best.place, r.smallest != 0)) best = {value, i};
  }
  return best;
}
template <class A>
TF_DEVICE Best<A> best_lane(Best<A> best, int lanes, bool smallest) {
  for (int step = lanes / 2; step > 0; step /= 2) {
    const A value = __shfl_xor_sync(0xffffffffu, best.value, step);
    const int64_t place = __shfl_xor_sync(0xffffffffu, best.place, step);
    if (better(value, place, best.value, best.place, smallest)) best = {value, place};
  }
  return best;
}

// Up to 32 threads of a warp a result.
template <class T>
TF_DEVICE void arg_lanes(const T* in, void* out, const ArgReduction& r) {
  const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t results = r.outer * r.inner, lane = thread % r.lanes;
  const int64_t own = thread / r.lanes, result = own < results ? own : results - 1;
  const T* row = in + result / r.inner * r.size * r.inner + result % r.inner;
  const auto best = best_lane(best_of(row, r, lane, r.lanes), r.lanes, r.smallest != 0);
  if (own < results && lane == 0) store_index(out, result, best.place, r.index_bytes);
}
// A block a result.
template <class T>
TF_DEVICE void arg_rows(const T* in, void* out, const ArgReduction& r) {
  typedef typename Wide<T>::type A;
  __shared__ A values[32];
  __shared__ int64_t places[32];
  const int64_t result = blockIdx.x;
  const T* row = in + result / r.inner * r.size * r.inner + result % r.inner;
  const bool smallest = r.smallest != 0;
  Best<A> best = best_lane(best_of(row, r, threadIdx.x, blockDim.x), 32, smallest);
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) {
    values[warp] = best.value;
    places[warp] = best.place;
  }
  __syncthreads();
  if (warp != 0) return;
  const int from = lane < warps ? lane : 0;
  best = best_lane(Best<A>{values[from], places[from]}, 32, smallest);
  if (lane == 0) store_index(out, result, best.place, r.index_bytes);
}

// ---- sorting ----

// A number with the order of x: NaN above all, -0 as 0.
TF_DEVICE uint64_t order_of(float x) {
  if (x != x) return 0xffffffffu;
  const uint32_t bits = __float_as_uint(x + 0.f);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
TF_DEVICE uint64_t order_of(double x) {
  if (x != x) return 0xffffffffffffffffull;
  const uint64_t bits = (uint64_t)__double_as_longlong(x + 0.);
  return bits >> 63 ? ~bits : bits | 0x8000000000000000ull;
}
TF_DEVICE uint64_t order_of(int32_t x) { return (uint64_t)(int64_t)x ^ 0x8000000000000000ull; }
TF_DEVICE uint64_t order_of(int64_t x) { return (uint64_t)x ^ 0x8000000000000000ull; }
TF_DEVICE uint64_t order_of(uint32_t x) { return x; }
TF_DEVICE uint64_t order_of(uint64_t x) { return x; }

// Rows lie along the middle axis of x [outer, size, inner]. A row's items stand in runs of `run`
// places, each sorted; only the first `keep` of a run are still wanted.
struct Sort {
  int64_t outer, size, inner, run, keep;
  int32_t descending, index_bytes;
};
TF_DEVICE bool before(uint64_t a, uint32_t i, uint64_t b, uint32_t k) {
  return a < b || (a == b && i < k);
}

// A block sorts one run (bitonic network, K. Batcher 1968); it has run / 2 threads.
template <class T>
TF_DEVICE void sort_tiles(const T* x, uint64_t* keys, uint32_t* places, const Sort& s) {
  __shared__ uint64_t key[2048];
  __shared__ uint32_t place[2048];
  const int64_t tiles = (s.size + s.run - 1) / s.run, row = blockIdx.x / tiles;
  const int64_t first = blockIdx.x % tiles * s.run;
  const T* from = x + row / s.inner * s.size * s.inner + row % s.inner;
  const int n = (int)s.run, t = threadIdx.x;
  for (int k = t; k < n; k += blockDim.x) {
    const int64_t i = first + k;
    const bool inside = i < s.size;
    const uint64_t order = inside ? order_of(widen(from[i * s.inner])) : 0;
    // What pads the last run comes behind everything: no index is as high.
    key[k] = inside ? (s.descending ? ~order : order) : 0xffffffffffffffffull;
    place[k] = inside ? (uint32_t)i : 0xffffffffu;
  }
  __syncthreads();
  for (int size = 2; size <= n; size *= 2) {
    for (int step = size / 2; step > 0; step /= 2) {
      for (int pair = t; pair < n / 2; pair += blockDim.x) {
        const int low = 2 * pair - (pair & (step - 1)), high = low + step;
        const bool up = (low & size) == 0;
        if (before(key[high], place[high], key[low], place[low]) == up) {
          const uint64_t k = key[low];
          const uint32_t p = place[low];
          key[low] = key[high];
          place[low] = place[high];
          key[high] = k;
          place[high] = p;
        }
      }
      __syncthreads();
    }
  }
  for (int k = t; k < n; k += blockDim.x) {
    if (first + k >= s.size || k >= s.keep) continue;
    keys[row * s.size + first + k] = key[k];
    places[row * s.size + first + k] = place[k];
  }
}

// Merges runs two by two: each item finds its place by counting those of the other run before it.
TF_KERNEL tf_sort_merge(const uint64_t* keys, const uint32_t* places, uint64_t* new_keys,
                        uint32_t* new_places, Sort s) {
  TF_WAIT;
  const int64_t n = s.outer * s.inner * s.size, stride = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    const int64_t at = i % s.size, row = i - at, first = at / (2 * s.run) * 2 * s.run;
    const bool upper = at - first >= s.run;
    const int64_t own = first + (upper ? s.run : 0), other = first + (upper ? 0 : s.run);
    if (at - own >= s.keep) continue;
    const uint64_t key = keys[i];
    const uint32_t place = places[i];
    int64_t most = s.size - other;
    most = most < 0 ? 0 : most > s.run ? s.run : most;
    most = most > s.keep ? s.keep : most;
    int64_t low = 0, high = most;
    while (low < high) {
      const int64_t middle = (low + high) / 2, k = row + other + middle;
      if (before(keys[k], places[k], key, place)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const int64_t rank = at - own + low;
    if (rank >= s.keep) continue;
    new_keys[row + first + rank] = key;
    new_places[row + first + rank] = place;
  }
}

// The first `keep` sorted items of each row: their elements and indices, each where wanted.
template <class T>
TF_DEVICE void take_sorted(const T* x, const uint32_t* places, T* values, void* indices,
                           const Sort& s) {
  const int64_t n = s.outer * s.inner * s.keep, stride = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    const int64_t inner = i % s.inner, rank = i / s.inner % s.keep, outer = i / s.inner / s.keep;
    const int64_t at = places[(outer * s.inner + inner) * s.size + rank];
    if (values != nullptr) values[i] = x[(outer * s.size + at) * s.inner + inner];
    if (indices != nullptr) store_index(indices, i, at, s.index_bytes);
  }
}
TF_KERNEL tf_take_sorted_1(const uint8_t* x, const uint32_t* p, uint8_t* v, void* i, Sort s) {
  TF_WAIT;
  take_sorted(x, p, v, i, s);
}
TF_KERNEL tf_take_sorted_2(const uint16_t* x, const uint32_t* p, uint16_t* v, void* i, Sort s) {
  TF_WAIT;
  take_sorted(x, p, v, i, s);
}
TF_KERNEL tf_take_sorted_4(const uint32_t* x, const uint32_t* p, uint32_t* v, void* i, Sort s) {
  TF_WAIT;
  take_sorted(x, p, v, i, s);
}
TF_KERNEL tf_take_sorted_8(const uint64_t* x, const uint32_t* p, uint64_t* v, void* i, Sort s) {
  TF_WAIT;
  take_sorted(x, p, v, i, s);
}

// ---- the different elements of one sorted row ----

constexpr int kUniqueChunk = 4096;  // items of one block of 256 threads

// How many items of the chunk differ from the one before them.
TF_DEVICE int heads_of(const uint64_t* keys, int64_t first, int64_t last) {
  int heads = 0;
  for (int64_t i = first; i < last; ++i) heads += i == 0 || keys[i] != keys[i - 1];
  return heads;
}
// Sums over the threads of a block: those before this one, and all.
TF_DEVICE int sum_before(int value, int* all) {
  __shared__ int shared[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  int sum = value;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) shared[warp] = sum;
  __syncthreads();
  int base = 0;
  *all = 0;
  for (int w = 0; w < warps; ++w) {
    if (w < warp) base += shared[w];
    *all += shared[w];
  }
  __syncthreads();
  return base + sum - value;
}

TF_KERNEL tf_unique_count(const uint64_t* keys, int32_t* counts, int64_t n) {
  TF_WAIT;
  const int64_t own = kUniqueChunk / 256;
  const int64_t first = (int64_t)blockIdx.x * kUniqueChunk + threadIdx.x * own;
  int all;
  sum_before(heads_of(keys, first, first + own < n ? first + own : n), &all);
  if (threadIdx.x == 0) counts[blockIdx.x] = all;
}
// One block: counts become the numbers of heads before each chunk; *count their sum.
TF_KERNEL tf_unique_scan(int32_t* counts, int64_t chunks, void* count, int32_t index_bytes) {
  TF_WAIT;
  int64_t base = 0;
  for (int64_t first = 0; first < chunks; first += blockDim.x) {
    const int64_t i = first + threadIdx.x;
    const int value = i < chunks ? counts[i] : 0;
    int all;
    const int before_this = sum_before(value, &all);
    if (i < chunks) counts[i] = (int32_t)(base + before_this);
    base += all;
  }
  if (threadIdx.x == 0) store_index(count, 0, base, index_bytes);
}
template <class T>
TF_DEVICE void unique_write(const T* x, const uint64_t* keys, const uint32_t* places,
                            const int32_t* counts, T* values, void* inverse, int64_t n,
                            int64_t size, int32_t index_bytes) {
  const int64_t own = kUniqueChunk / 256;
  const int64_t first = (int64_t)blockIdx.x * kUniqueChunk + threadIdx.x * own;
  const int64_t last = first + own < n ? first + own : n;
  int all;
  int64_t number = counts[blockIdx.x] + sum_before(heads_of(keys, first, last), &all) - 1;
  for (int64_t i = first; i < last; ++i) {
    const bool head = i == 0 || keys[i] != keys[i - 1];
    number += head;
    store_index(inverse, places[i], number, index_bytes);
    if (head && number < size) values[number] = x[places[i]];
  }
}
// Places beyond the count of different elements are filled with the first.
template <class T>
TF_DEVICE void unique_fill(const T* x, const uint32_t* places, const void* count, T* values,
                           int64_t size, int32_t index_bytes) {
  int64_t have;
  switch (index_bytes) {
    case 1: have = *(const uint8_t*)count; break;
    case 2: have = *(const uint16_t*)count; break;
    case 4: have = *(const int32_t*)count; break;
    default: have = *(const int64_t*)count;
  }
  const int64_t stride = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = have + (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += stride) {
    values[i] = x[places[0]];
  }
}
#define UNIQUE(bytes, T)                                                                          \
  TF_KERNEL tf_unique_write_##bytes(const T* x, const uint64_t* keys, const uint32_t* places,     \
                                    const int32_t* counts, T* values, void* inverse, int64_t n,   \
                                    int64_t size, int32_t index_bytes) {                          \
    TF_WAIT;                                                                                      \
    unique_write(x, keys, places, counts, values, inverse, n, size, index_bytes);                 \
  }                                                                                               \
  TF_KERNEL tf_unique_fill_##bytes(const T* x, const uint32_t* places, const void* count,         \
                                   T* values, int64_t size, int32_t index_bytes) {                \
    TF_WAIT;                                                                                      \
    unique_fill(x, places, count, values, size, index_bytes);                                     \
  }
UNIQUE(1, uint8_t)
UNIQUE(2, uint16_t)
UNIQUE(4, uint32_t)
UNIQUE(8, uint64_t)

#define SEARCH(suffix, T)                                                                  \
  TF_KERNEL tf_arg_##suffix##_lanes(const T* in, void* out, ArgReduction r) {              \
    TF_WAIT;                                                                               \
    arg_lanes(in, out, r);                                                                 \
  }                                                                                        \
  TF_KERNEL tf_arg_##suffix##_rows(const T* in, void* out, ArgReduction r) {               \
    TF_WAIT;                                                                               \
    arg_rows(in, out, r);                                                                  \
  }                                                                                        \
  TF_LARGE_KERNEL tf_sort_tiles_##suffix(const T* x, uint64_t* keys, uint32_t* places, Sort s) { \
    TF_WAIT;                                                                               \
    sort_tiles(x, keys, places, s);                                                        \
  }
SEARCH(float32, float)
SEARCH(float64, double)
SEARCH(float16, f16)
SEARCH(bfloat16, bf16)
SEARCH(int8, int8_t)
SEARCH(int16, int16_t)
SEARCH(int32, int32_t)
SEARCH(int64, int64_t)
SEARCH(uint8, uint8_t)
SEARCH(uint16, uint16_t)
SEARCH(uint32, uint32_t)
SEARCH(uint64, uint64_t)
SEARCH(bool, bool)

// ---- whether a class is among the k largest of its row ----

// A warp a row. `signed_bytes`: width of a target, negative where it has no sign.
template <class T>
TF_DEVICE void in_top_k(const T* x, const void* targets, uint8_t* out, int64_t rows,
                        int64_t classes, int64_t k, int32_t signed_bytes) {
  typedef typename Wide<T>::type A;
  const int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const int64_t target = load_index(targets, row, signed_bytes);
  bool fits = target >= 0 && target < classes;
  const A own = fits ? A(widen(x[row * classes + target])) : A(0);
  fits = fits && (own - own) == A(0);
  int64_t larger = 0;
  for (int64_t i = lane; i < classes; i += 32) {
    const A value = widen(x[row * classes + i]);
    larger += value > own;
    fits = fits && value == value;
  }
  for (int step = 16; step > 0; step /= 2) {
    larger += __shfl_xor_sync(0xffffffffu, larger, step);
    fits = (__shfl_xor_sync(0xffffffffu, (int)fits, step) != 0) & fits;
  }
  if (lane == 0) out[row] = fits && larger < k ? 1 : 0;
}
#define IN_TOP_K(suffix, T)                                                              \
  TF_KERNEL tf_in_top_k_##suffix(const T* x, const void* targets, uint8_t* out,          \
                                 int64_t rows, int64_t classes, int64_t k, int32_t bytes) { \
    TF_WAIT;                                                                             \
    in_top_k(x, targets, out, rows, classes, k, bytes);                                  \
  }
IN_TOP_K(float32, float)
IN_TOP_K(float64, double)
IN_TOP_K(float16, f16)
IN_TOP_K(bfloat16, bf16)
