// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backends/cpu/tile/tile_table.h"
#include "tracefire/dtype.h"

namespace tracefire::cpu {

/// C [m, n] = A [m, k] B [k, n] on one thread. Strides are in elements, so transposed operands are
/// operands with other strides; C's columns are adjacent.
struct GemmShape {
  int64_t m, n, k;
  int64_t a_row, a_column;
  int64_t b_row, b_column;
  int64_t c_row;
};

/// A product bound to sizes. run() may be called from several threads at once.
class Gemm {
 public:
  virtual ~Gemm() = default;
  virtual void run(const void* a, const void* b, void* c) const = 0;
  virtual std::string name() const = 0;
};

/// Element types of A, B and C.
struct GemmTypes {
  DType a, b, c;
};

/// oneDNN's product of f32, bf16 or f16 in itself, or of 8-bit integers as int32; null (and why in
/// `refusal`) where it has none for this machine. The only use of oneDNN is behind this function.
std::shared_ptr<const Gemm> make_onednn_gemm(const GemmTypes& types, const GemmShape& shape,
                                             std::string* refusal);
bool has_onednn();
/// True where oneDNN's products of 8-bit integers are exact: without the instruction for them it
/// adds pairs of products in 16 bits.
bool has_exact_int8();

/// Our own product of f32, f64 and integers, which wrap around. Where the machine has fused
/// multiply-adds, each term of a floating sum is rounded once.
std::shared_ptr<const Gemm> make_own_gemm(DType dtype, const GemmShape& shape);

/// Loops of the own product for each register type; null: none.
using GemmFn = void (*)(const GemmShape& shape, const void* a, const void* b, void* c);
struct GemmTable {
  GemmFn functions[kRegTypes] = {};
};
void fill_gemm_baseline(GemmTable* table);
void fill_gemm_avx2(GemmTable* table);
void fill_gemm_avx512(GemmTable* table);
/// This thread's memory for packed operands, on a boundary of 64 bytes; the next call reuses it.
void* packing_buffer(size_t bytes);

}  // namespace tracefire::cpu
