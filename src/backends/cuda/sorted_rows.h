// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/kernel_table.h"

namespace tracefire::cuda {

/// As `struct Sort` of kernels/search.cu.
struct Sort {
  int64_t outer = 1, size = 1, inner = 1, run = 1, keep = 1;
  int32_t descending = 0, index_bytes = 8;
};

/// Launches that leave each row's first `keep` items, sorted, in a workspace: keys and places,
/// twice, because runs are merged from one half into the other.
class SortedRows {
 public:
  /// `sort.run` is chosen here. Errors: kNoKernel where rows are too long for 32-bit places.
  static Result<SortedRows> make(const Sort& sort, DType dtype, CudaDevice& device);

  std::vector<std::string> symbols() const;
  /// A multiple of 16.
  size_t workspace_bytes() const { return 2 * half_bytes(); }

  struct Sorted {
    uint64_t* keys;    ///< numbers with the order of the elements
    uint32_t* places;  ///< where in its row each element was
  };
  /// Sorts `input`; the result lies in the workspace.
  Result<Sorted> run(Lane& lane, const void* input, void* workspace) const;

 private:
  size_t half_bytes() const { return items_ * 8 + (items_ * 4 + 15) / 16 * 16; }
  Sorted half(void* workspace, size_t number) const;

  Sort sort_;
  size_t items_ = 0;
  Function tiles_, merge_;
  LaunchShape tile_shape_, merge_shape_;
};

}  // namespace tracefire::cuda
