// SPDX-License-Identifier: Apache-2.0
// Random words of every width, counted from an offset: number i depends on the key and i alone
// (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
#include "backends/cuda/kernels/common.cuh"

TF_DEVICE uint32_t rotate(uint32_t x, int by) { return (x << by) | (x >> (32 - by)); }

// Threefry-2x32 with 20 rounds: x0 << 32 | x1.
TF_DEVICE uint64_t threefry(uint32_t k0, uint32_t k1, uint64_t counter) {
  const int turns[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const uint32_t keys[3] = {k0, k1, k0 ^ k1 ^ 0x1bd11bdau};
  uint32_t x0 = (uint32_t)(counter >> 32) + k0, x1 = (uint32_t)counter + k1;
#pragma unroll
  for (int group = 0; group < 5; ++group) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      x0 += x1;
      x1 = rotate(x1, turns[group % 2 * 4 + k]) ^ x0;
    }
    x0 += keys[(group + 1) % 3];
    x1 += keys[(group + 2) % 3] + group + 1;
  }
  return (uint64_t)x0 << 32 | x1;
}

// Philox-4x32 with 10 rounds: words `first` and first + 1 of a block, the second one above.
TF_DEVICE uint64_t philox(uint32_t k0, uint32_t k1, uint64_t block, int first) {
  uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = 0, c3 = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = 0xd2511f53ull * c0, p1 = 0xcd9e8d57ull * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  const uint32_t low = first == 0 ? c0 : first == 1 ? c1 : first == 2 ? c2 : c3;
  const uint32_t high = first == 0 ? c1 : c3;
  return (uint64_t)high << 32 | low;
}

// `offset`: a scalar whose width is offset_bytes, negative without a sign; 0: there is none.
template <class T, bool kPhilox>
TF_DEVICE void random_bits(const uint32_t* key, const void* offset, int offset_bytes, T* out,
                           int64_t n) {
  const uint32_t k0 = key[0], k1 = key[1];
  const uint64_t base = offset_bytes == 0 ? 0 : (uint64_t)load_index(offset, 0, offset_bytes);
  const int64_t stride = (int64_t)gridDim.x * blockDim.x;
  for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < n; k += stride) {
    const uint64_t i = base + (uint64_t)k;
    uint64_t word;
    if (kPhilox) {
      word = sizeof(T) == 8 ? philox(k0, k1, i / 2, 2 * (int)(i % 2))
                            : philox(k0, k1, i / 4, (int)(i % 4)) & 0xffffffffu;
    } else {
      const uint64_t both = threefry(k0, k1, i);
      word = sizeof(T) == 8 ? both : (both >> 32) ^ (both & 0xffffffffu);
    }
    out[k] = (T)word;
  }
}

#define RANDOM(suffix, T)                                                                       \
  TF_KERNEL tf_random_threefry_##suffix(const uint32_t* key, const void* offset, int32_t bytes, \
                                        T* out, int64_t n) {                                    \
    TF_WAIT;                                                                                    \
    random_bits<T, false>(key, offset, bytes, out, n);                                          \
  }                                                                                             \
  TF_KERNEL tf_random_philox_##suffix(const uint32_t* key, const void* offset, int32_t bytes,   \
                                      T* out, int64_t n) {                                      \
    TF_WAIT;                                                                                    \
    random_bits<T, true>(key, offset, bytes, out, n);                                           \
  }
RANDOM(uint8, uint8_t)
RANDOM(uint16, uint16_t)
RANDOM(uint32, uint32_t)
RANDOM(uint64, uint64_t)
