// SPDX-License-Identifier: Apache-2.0
// The typed functions of tracefire/ops.h, as a user calls them.
#include <doctest/doctest.h>

#include "tracefire/ops.h"

namespace tracefire {
namespace {

TEST_CASE("typed functions record what they say") {
  const Tensor x = Tensor::of<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor y = Tensor::of<float>({10, 20, 30}, {3});
  CHECK(add(x, y).values<float>() == std::vector<float>{11, 22, 33, 14, 25, 36});
  CHECK(reduce_sum(x, {0}).values<float>() == std::vector<float>{5, 7, 9});
  CHECK(reduce_sum(x).item<float>() == 21);
  CHECK(reduce_max(x, {1}, true).sizes() == std::vector<int64_t>{2, 1});
  CHECK(reshape(x, {-1}).shape() == Shape{6});
  const std::vector<Tensor> parts = {x, x};
  CHECK(concat(parts, 1).shape() == Shape{2, 6});
  const TopKResult top = top_k(x, 2);
  CHECK(top.values.values<float>() == std::vector<float>{3, 2, 6, 5});
  CHECK(top.indices.values<int32_t>() == std::vector<int32_t>{2, 1, 2, 1});
  CHECK(matmul(x, x, false, true).values<float>() == std::vector<float>{14, 32, 32, 77});
}

TEST_CASE("typed functions throw coded errors") {
  const Tensor x = Tensor::of<float>({1, 2}, {2}), y = Tensor::of<float>({1, 2, 3}, {3});
  try {
    add(x, y);
    FAIL("shapes that do not fit went through");
  } catch (const Error& error) {
    CHECK(error.code() == "TF-E0101");
  }
}

}  // namespace
}  // namespace tracefire
