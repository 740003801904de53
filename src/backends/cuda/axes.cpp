// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/axes.h"

namespace tracefire::cuda {

bool make_axes(const std::vector<int64_t>& sizes, const std::vector<int64_t>& a,
               const std::vector<int64_t>& b, Axes* first, Axes* second) {
  std::vector<int64_t> kept, by_a, by_b;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const int64_t size = sizes[axis];
    if (size == 1) continue;
    const bool joins =
        !kept.empty() && by_a.back() == a[axis] * size && by_b.back() == b[axis] * size;
    if (joins) {
      kept.back() *= size;
      by_a.back() = a[axis];
      by_b.back() = b[axis];
    } else {
      kept.push_back(size);
      by_a.push_back(a[axis]);
      by_b.push_back(b[axis]);
    }
  }
  if (kept.size() > kMaxRank) return false;
  *first = *second = Axes{};
  first->rank = second->rank = static_cast<int32_t>(kept.size());
  for (size_t axis = 0; axis < kept.size(); ++axis) {
    first->sizes[axis] = second->sizes[axis] = kept[axis];
    first->strides[axis] = by_a[axis];
    second->strides[axis] = by_b[axis];
  }
  return true;
}

}  // namespace tracefire::cuda
