// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backends/cpu/reduce/reduce_table.h"

namespace tracefire::cpu {

/// A reduction over any axes of a dense array, bound to sizes. The elements of one result are cut
/// into chunks by sizes alone and the chunks' accumulators joined in order, so that the result has
/// the same bits whatever the number of threads is.
class Reduction {
 public:
  /// `mean` divides by the number of elements.
  Reduction(ReduceOp op, bool mean, DType dtype, const std::vector<int64_t>& sizes,
            const std::vector<int64_t>& axes);

  size_t workspace_bytes() const;
  void run(void* out, const void* in, void* workspace) const;

 private:
  /// Axes of one kind, outermost first, with their strides in the input.
  struct Axes {
    std::vector<int64_t> sizes, strides;
    int64_t count() const;
    int64_t offset(int64_t index) const;
  };

  void choose_chunks();
  void run_chunk(char* acc, const char* in, int64_t kept, int64_t block, int64_t chunk) const;
  void take_row(char* acc, const char* in, int64_t offset, int64_t n) const;
  void take_columns(char* acc, const char* in, int64_t offset, int64_t rows, int64_t stride,
                    int64_t width) const;
  void finish(char* out, const char* acc, int64_t kept, int64_t block) const;
  int64_t block_width(int64_t block) const;
  /// Bytes of the accumulators of one chunk of one place.
  int64_t slot_bytes() const;

  const ReduceFunctions* functions_;
  TileFn load_, store_;  // of narrow floating types
  size_t size_;          // bytes of an element
  double divisor_ = 1;
  bool columns_ = false;  // the innermost axis is kept
  int64_t inner_ = 1;     // its elements: a row to reduce, or columns kept side by side
  Axes kept_, reduced_;   // the others
  // Work on one kept place (and, with columns, one block of columns): chunks of rows, or parts of
  // the only row.
  int64_t blocks_ = 1, chunks_ = 1, chunk_rows_ = 1, chunk_part_ = 0;
};

}  // namespace tracefire::cpu
