// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tracefire/dtype.h"

namespace tracefire::cpu {

/// Copies elements between two strided arrays: what transpose, slice, pad, concat, reverse and
/// broadcast_to have in common. Strides are in elements and may be 0 or negative on the source's
/// side; no two places of the target may be the same.
class StridedCopy {
 public:
  StridedCopy() = default;
  StridedCopy(DType dtype, const std::vector<int64_t>& sizes,
              const std::vector<int64_t>& target_strides,
              const std::vector<int64_t>& source_strides);

  /// `target` and `source` are the arrays; the copy starts at these elements of them.
  void run(void* target, int64_t target_start, const void* source, int64_t source_start) const;

 private:
  enum class Inner : uint8_t { kRun, kFill, kStrided, kTranspose };
  template <class T>
  void run_as(T* target, const T* source) const;
  template <class T>
  void copy_rows(T* target, const T* source, int64_t begin, int64_t end) const;
  template <class T>
  void copy_matrices(T* target, const T* source) const;

  DType dtype_ = DType::kInvalid;
  int64_t elements_ = 0;
  Inner inner_ = Inner::kRun;
  // Merged axes, outermost first. kTranspose: the last two are a matrix and its transpose, the
  // source's stride of the last but one is 1.
  std::vector<int64_t> sizes_, target_strides_, source_strides_;
};

}  // namespace tracefire::cpu
