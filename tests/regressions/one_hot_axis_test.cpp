// SPDX-License-Identifier: Apache-2.0
// one_hot always put the classes on the last axis once it was expanded into a fused loop.
#include <doctest/doctest.h>

#include "tracefire/ops.h"

namespace tracefire::test {

TEST_CASE("one_hot puts the classes on the axis that is asked for") {
  const std::vector<int32_t> labels = {0, 2, 1, 1, 2, 0};
  const std::vector<int64_t> sizes = {2, 3};
  const int64_t depth = 4;
  for (int axis = -3; axis < 3; ++axis) {
    CAPTURE(axis);
    const size_t at = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
    std::vector<int64_t> full = sizes;
    full.insert(full.begin() + static_cast<int64_t>(at), depth);
    std::vector<float> expected;
    for (int64_t i = 0; i < full[0]; ++i) {
      for (int64_t j = 0; j < full[1]; ++j) {
        for (int64_t k = 0; k < full[2]; ++k) {
          std::vector<int64_t> place = {i, j, k};
          const int64_t kind = place[at];
          place.erase(place.begin() + static_cast<int64_t>(at));
          const bool hit = labels[static_cast<size_t>(place[0] * 3 + place[1])] == kind;
          expected.push_back(hit ? 1.0f : 0.0f);
        }
      }
    }
    const Tensor y = one_hot(Tensor::of(labels, sizes), depth, axis);
    CHECK(y.sizes() == full);
    CHECK(y.values<float>() == expected);
    const Tensor in_a_loop = add(one_hot(Tensor::of(labels, sizes), depth, axis), y);
    for (float& value : expected) value *= 2;
    CHECK(in_a_loop.values<float>() == expected);
  }
}

}  // namespace tracefire::test
