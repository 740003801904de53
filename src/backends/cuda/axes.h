// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace tracefire::cuda {

inline constexpr size_t kMaxRank = 8;

/// As `struct Axes` of kernels/common.cuh: sizes and strides, outermost first.
struct Axes {
  int32_t rank = 0;
  int64_t sizes[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};
};

/// One index space walked by two sets of strides, as few axes as possible: axes of size 1 are left
/// out and neighbours that both walk alike are merged. False where more than kMaxRank remain.
bool make_axes(const std::vector<int64_t>& sizes, const std::vector<int64_t>& a,
               const std::vector<int64_t>& b, Axes* first, Axes* second);

}  // namespace tracefire::cuda
