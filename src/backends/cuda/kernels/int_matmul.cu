// SPDX-License-Identifier: Apache-2.0
// Products of whole numbers, which no library has: they wrap around. A block makes 16 x 16 results.
#include "backends/cuda/kernels/common.cuh"

struct Product {
  int64_t m, n, k, batch;
  int64_t a_row, a_column, b_row, b_column;  // strides of the operands as they are multiplied
  Axes a_batch, b_batch;                     // where each product of the batch begins
};

template <class T>
TF_DEVICE void product(const T* a, const T* b, T* c, const Product& p) {
  typedef typename Wide<T>::type A;
  __shared__ A left[16][17], right[16][17];
  const int x = threadIdx.x, y = threadIdx.y;
  const int64_t column = (int64_t)blockIdx.x * 16 + x, tiles = (p.m + 15) / 16;
  for (int64_t tile = blockIdx.y; tile < tiles * p.batch; tile += gridDim.y) {
    const int64_t row = tile % tiles * 16 + y, batch = tile / tiles;
    const T* from_a = a + offset_of(p.a_batch, batch);
    const T* from_b = b + offset_of(p.b_batch, batch);
    A sum = 0;
    for (int64_t first = 0; first < p.k; first += 16) {
      const int64_t ka = first + x, kb = first + y;
      left[y][x] = row < p.m && ka < p.k ? A(widen(from_a[row * p.a_row + ka * p.a_column])) : A(0);
      right[y][x] =
          kb < p.k && column < p.n ? A(widen(from_b[kb * p.b_row + column * p.b_column])) : A(0);
      __syncthreads();
      for (int k = 0; k < 16; ++k) sum += left[y][k] * right[k][x];
      __syncthreads();
    }
    if (row < p.m && column < p.n) narrow(sum, &c[(batch * p.m + row) * p.n + column]);
  }
}

#define PRODUCT(suffix, T)                                                   \
  TF_KERNEL tf_product_##suffix(const T* a, const T* b, T* c, Product p) {   \
    TF_WAIT;                                                                 \
    product(a, b, c, p);                                                     \
  }
PRODUCT(int8, int8_t)
PRODUCT(int16, int16_t)
PRODUCT(int32, int32_t)
PRODUCT(int64, int64_t)
PRODUCT(uint8, uint8_t)
PRODUCT(uint16, uint16_t)
PRODUCT(uint32, uint32_t)
PRODUCT(uint64, uint64_t)
