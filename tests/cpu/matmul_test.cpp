// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "cpu/node_runner.h"

namespace tracefire::test {
namespace {

std::vector<int64_t> matrix(std::vector<int64_t> batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

/// Start of the matrix that belongs to matrix `index` of the result, by NumPy's broadcasting.
int64_t start_of(const std::vector<int64_t>& own, const std::vector<int64_t>& result,
                 int64_t index) {
  int64_t offset = 0, stride = own[own.size() - 1] * own[own.size() - 2];
  for (size_t i = 3; i <= result.size(); ++i) {
    const int64_t size = result[result.size() - i], at = index % size;
    index /= size;
    if (i > own.size()) continue;
    if (own[own.size() - i] != 1) offset += at * stride;
    stride *= own[own.size() - i];
  }
  return offset;
}

/// The product in double, element by element.
std::vector<double> product(const HostTensor& a, const HostTensor& b, bool ta, bool tb,
                            const std::vector<int64_t>& sizes) {
  const int64_t m = sizes[sizes.size() - 2], n = sizes[sizes.size() - 1];
  const int64_t ac = a.sizes.back(), bc = b.sizes.back();
  const int64_t k = ta ? a.sizes[a.sizes.size() - 2] : ac;
  const std::vector<double> x = a.numbers(), y = b.numbers();
  int64_t count = 1;
  for (size_t i = 0; i + 2 < sizes.size(); ++i) count *= sizes[i];
  std::vector<double> result;
  for (int64_t matrix = 0; matrix < count; ++matrix) {
    const int64_t from_a = start_of(a.sizes, sizes, matrix);
    const int64_t from_b = start_of(b.sizes, sizes, matrix);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          const int64_t at_a = from_a + (ta ? l * ac + i : i * ac + l);
          const int64_t at_b = from_b + (tb ? j * bc + l : l * bc + j);
          sum += x[static_cast<size_t>(at_a)] * y[static_cast<size_t>(at_b)];
        }
        result.push_back(sum);
      }
    }
  }
  return result;
}

struct Sizes {
  std::vector<int64_t> a_batch, b_batch;
  int64_t m, n, k;
};

void check(DType dtype, const Sizes& s, bool ta, bool tb, const char* kernel, double tolerance) {
  const double range = is_floating(dtype) ? 1 : 9;
  const HostTensor a = random_tensor(
      dtype, ta ? matrix(s.a_batch, s.k, s.m) : matrix(s.a_batch, s.m, s.k), -range, range, 1);
  const HostTensor b = random_tensor(
      dtype, tb ? matrix(s.b_batch, s.n, s.k) : matrix(s.b_batch, s.k, s.n), -range, range, 2);
  RunOptions options;
  options.kernel = kernel;
  const HostTensor c = run_node("matmul", {a, b}, {{"transpose_a", ta}, {"transpose_b", tb}}, options)[0];
  INFO(dtype_name(dtype), " ", s.m, " x ", s.k, " x ", s.n, " transposed ", ta, tb);
  CHECK(first_difference(c, product(a, b, ta, tb, c.sizes), tolerance) == -1);
  // Blocks are fixed: one thread gives the same bits as all.
  options.one_thread = true;
  CHECK(run_node("matmul", {a, b}, {{"transpose_a", ta}, {"transpose_b", tb}}, options)[0].bytes ==
        c.bytes);
}

TEST_CASE("cpu: products of all shapes and transposes") {
  const Sizes sizes[] = {{{}, {}, 1, 1, 1},   {{}, {}, 7, 5, 3},         {{}, {}, 130, 10, 64},
                         {{}, {}, 200, 65, 33}, {{}, {}, 3, 700, 40},      {{3}, {3}, 5, 6, 7},
                         {{2, 3}, {3}, 4, 9, 8}, {{2, 1}, {1, 3}, 6, 2, 5}, {{}, {4}, 5, 5, 5}};
  for (const Sizes& s : sizes) {
    for (int transposed = 0; transposed < 4; ++transposed) {
      const bool ta = transposed & 1, tb = transposed & 2;
      check(DType::kF32, s, ta, tb, nullptr, 2e-6 * std::sqrt(static_cast<double>(s.k)) + 1e-6);
      check(DType::kF32, s, ta, tb, "cpu_matmul", 1e-5);
      check(DType::kF64, s, ta, tb, nullptr, 1e-13);
      check(DType::kBF16, s, ta, tb, nullptr, 2e-2);
    }
  }
}

TEST_CASE("cpu: products large enough for several blocks") {
  check(DType::kF32, {{}, {}, 520, 300, 65}, false, false, nullptr, 1e-4);
  check(DType::kF32, {{}, {}, 20, 1100, 130}, true, true, nullptr, 1e-4);
  check(DType::kF64, {{}, {}, 260, 300, 150}, false, true, nullptr, 1e-12);
  check(DType::kF32, {{}, {}, 1100, 1060, 9}, false, true, nullptr, 1e-5);
  check(DType::kF32, {{}, {}, 2070, 33, 17}, true, false, nullptr, 1e-5);
  check(DType::kF32, {{3}, {}, 300, 270, 20}, false, false, nullptr, 1e-5);
}

TEST_CASE("cpu: products of every real type") {
  for (DType dtype : {DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kU32,
                      DType::kI64, DType::kU64}) {
    const Sizes s{{}, {}, 4, 5, 3};
    const bool is_signed = is_signed_integer(dtype);
    const HostTensor a = random_tensor(dtype, {4, 3}, is_signed ? -5 : 0, 5, 1);
    const HostTensor b = random_tensor(dtype, {3, 5}, is_signed ? -5 : 0, 5, 2);
    const HostTensor c = run_node("matmul", {a, b})[0];
    CHECK(first_difference(c, product(a, b, false, false, c.sizes), 0) == -1);
  }
  check(DType::kF16, {{}, {}, 9, 8, 7}, false, false, nullptr, 3e-3);
  check(DType::kF8E5M2, {{}, {}, 3, 3, 3}, false, false, nullptr, 0.5);
  // 200 * 200 * 2 = 80000 wraps around in 16 bits.
  const HostTensor big = tensor(DType::kU16, {1, 2}, {200.0});
  const HostTensor c = run_node("matmul", {big, big}, {{"transpose_b", true}})[0];
  CHECK(c.at(0) == 80000 - 65536);
}

TEST_CASE("cpu: products of nothing are zeros") {
  const HostTensor c = run_node("matmul", {tensor(DType::kF32, {3, 0}, {0.0}),
                                           tensor(DType::kF32, {0, 2}, {0.0})})[0];
  CHECK(first_difference(c, std::vector<double>(6, 0.0), 0) == -1);
  CHECK(run_node("matmul", {tensor(DType::kF32, {0, 4}, {0.0}),
                            tensor(DType::kF32, {4, 2}, {1.0})})[0].elements() == 0);
}

TEST_CASE("cpu: NaN and infinity go through products") {
  const HostTensor a = tensor(DType::kF32, {2, 2}, {NAN, 1, INFINITY, 1});
  const HostTensor b = tensor(DType::kF32, {2, 2}, {1, 0, 1, 1});
  const HostTensor c = run_node("matmul", {a, b})[0];
  CHECK(std::isnan(c.at(0)));
  CHECK(std::isnan(c.at(1)));
  CHECK(c.at(2) == INFINITY);
  CHECK(std::isnan(c.at(3)));  // inf * 0
}

}  // namespace
}  // namespace tracefire::test
