// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "cpu/node_runner.h"

namespace tracefire::test {
namespace {

constexpr DType kF32 = DType::kF32;

/// 0, 1, 2, …: an element tells where it came from.
HostTensor counting(DType dtype, std::vector<int64_t> sizes) {
  HostTensor shape{dtype, sizes, {}, {}};
  std::vector<double> values;
  for (int64_t i = 0; i < shape.elements(); ++i) values.push_back(static_cast<double>(i));
  if (values.empty()) values.push_back(0);
  return tensor(dtype, std::move(sizes), values);
}

TEST_CASE("cpu: transpose in every order, rank 1 to 5, every size of element") {
  const std::vector<int64_t> all = {3, 5, 2, 4, 33};
  for (size_t rank = 1; rank <= all.size(); ++rank) {
    const std::vector<int64_t> sizes(all.end() - static_cast<std::ptrdiff_t>(rank), all.end());
    std::vector<int64_t> perm(rank);
    for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(i);
    do {
      const HostTensor x = counting(rank % 2 ? kF32 : DType::kI64, sizes);
      const HostTensor y = run_node("transpose", {x}, {{"perm", perm}})[0];
      int wrong = 0;
      for (int64_t i = 0; i < y.elements(); ++i) {
        int64_t rest = i;
        std::vector<int64_t> index(rank);
        for (size_t axis = rank; axis-- > 0;) {
          index[static_cast<size_t>(perm[axis])] = rest % y.sizes[axis];
          rest /= y.sizes[axis];
        }
        int64_t from = 0;
        for (size_t axis = 0; axis < rank; ++axis) from = from * sizes[axis] + index[axis];
        wrong += y.at(i) != static_cast<double>(from);
      }
      CHECK(wrong == 0);
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
  const HostTensor words = string_tensor({2, 2}, {"a", "b", "c", std::string(100, 'd')});
  const HostTensor other = run_node("transpose", {words}, {{"perm", std::vector<int64_t>{1, 0}}})[0];
  CHECK(other.strings == std::vector<std::string>{"a", "c", "b", std::string(100, 'd')});
}

/// True where `y` is x [rows, columns] turned, for whole numbers that tell where they came from.
bool is_turned(const HostTensor& x, const HostTensor& y) {
  const int64_t rows = x.sizes[0], columns = x.sizes[1];
  int64_t wrong = 0;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) wrong += y.at(j * rows + i) != x.at(i * columns + j);
  }
  return wrong == 0;
}

TEST_CASE("cpu: transposes over several blocks, with edges, of every width") {
  const std::vector<int64_t> sizes[] = {{700, 300}, {1, 999}, {1050, 3}, {3, 1050}, {64, 128},
                                        {1111, 130}};
  for (DType dtype : {DType::kU8, DType::kI16, kF32, DType::kF64, DType::kC128}) {
    for (const std::vector<int64_t>& shape : sizes) {
      HostTensor x = counting(dtype == DType::kC128 ? DType::kF64 : dtype, shape);
      if (dtype == DType::kC128) {  // pairs of doubles
        x = counting(DType::kF64, {shape[0], 2 * shape[1]});
        x = {DType::kC128, shape, x.bytes, {}};
      }
      const Attrs turn = {{"perm", std::vector<int64_t>{1, 0}}};
      HostTensor y = run_node("transpose", {x}, turn)[0];
      CAPTURE(dtype_name(dtype));
      CAPTURE(shape[0]);
      REQUIRE(y.sizes == std::vector<int64_t>{shape[1], shape[0]});
      RunOptions alone;
      alone.one_thread = true;
      CHECK(run_node("transpose", {x}, turn, alone)[0].bytes == y.bytes);
      if (dtype != DType::kC128) {
        CHECK(is_turned(x, y));
      } else {
        CHECK(run_node("transpose", {y}, turn)[0].bytes == x.bytes);
        if (shape[0] == 1) continue;
        CHECK(std::memcmp(y.bytes.data() + 16, x.bytes.data() + 16 * shape[1], 16) == 0);
      }
    }
  }
}

TEST_CASE("cpu: transposes that are written past the caches") {
  const Attrs turn = {{"perm", std::vector<int64_t>{1, 0}}};
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{1600, 1411}, std::vector<int64_t>{1601, 1400}}) {
    const HostTensor x = counting(kF32, shape);
    CHECK(is_turned(x, run_node("transpose", {x}, turn)[0]));
  }
}

TEST_CASE("cpu: slices with starts, limits and steps") {
  const HostTensor x = counting(kF32, {4, 6, 5});
  const HostTensor y = run_node("slice", {x}, {{"starts", Shape{1, 0, 2}},
                                               {"limits", Shape{3, 6, 99}},
                                               {"strides", std::vector<int64_t>{1, 4, 2}}})[0];
  REQUIRE(y.sizes == std::vector<int64_t>{2, 2, 2});
  std::vector<double> wanted;
  for (int i : {1, 2}) {
    for (int j : {0, 4}) {
      for (int k : {2, 4}) wanted.push_back(i * 30 + j * 5 + k);
    }
  }
  CHECK(first_difference(y, wanted, 0) == -1);
  CHECK(run_node("slice", {x}, {{"starts", Shape{2, 0, 0}}, {"limits", Shape{2, 6, 5}}})[0]
            .elements() == 0);
}

TEST_CASE("cpu: padding outside, inside and negative") {
  const HostTensor x = counting(kF32, {3}), nine = tensor(kF32, {}, {9});
  const auto pad = [&](Dim low, Dim high, int64_t interior) {
    return run_node("pad", {x, nine},
                    {{"low", Shape{low}},
                     {"high", Shape{high}},
                     {"interior", std::vector<int64_t>{interior}}})[0]
        .numbers();
  };
  CHECK(pad(1, 2, 0) == std::vector<double>{9, 0, 1, 2, 9, 9});
  CHECK(pad(0, 0, 1) == std::vector<double>{0, 9, 1, 9, 2});
  CHECK(pad(-1, 1, 0) == std::vector<double>{1, 2, 9});
  CHECK(pad(-1, -1, 1) == std::vector<double>{9, 1, 9});
  CHECK(pad(-3, 0, 0).empty());
  CHECK(pad(-3, 2, 0) == std::vector<double>{9, 9});
  const HostTensor square = counting(kF32, {2, 2});
  const HostTensor framed = run_node("pad", {square, nine}, {{"low", Shape{1, 0}}, {"high", Shape{0, 1}}})[0];
  CHECK(framed.numbers() == std::vector<double>{9, 9, 9, 0, 1, 9, 2, 3, 9});
}

TEST_CASE("cpu: concat, reverse, broadcast, constant, copies") {
  const HostTensor a = counting(kF32, {2, 1}), b = counting(kF32, {2, 2});
  CHECK(run_node("concat", {a, b}, {{"axis", int64_t{1}}})[0].numbers() ==
        std::vector<double>{0, 0, 1, 1, 2, 3});
  CHECK(run_node("concat", {b, b}, {{"axis", int64_t{0}}})[0].numbers() ==
        std::vector<double>{0, 1, 2, 3, 0, 1, 2, 3});
  CHECK(run_node("reverse", {counting(kF32, {2, 3})}, {{"axes", std::vector<int64_t>{0, 1}}})[0].numbers() ==
        std::vector<double>{5, 4, 3, 2, 1, 0});
  CHECK(run_node("broadcast_to", {a}, {{"shape", Shape{2, 2, 3}}})[0].numbers() ==
        std::vector<double>{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1});
  const HostTensor words = run_node("broadcast_to", {string_tensor({}, {"x"})}, {{"shape", Shape{3}}})[0];
  CHECK(words.strings == std::vector<std::string>{"x", "x", "x"});
  const float half = 0.5f;
  const std::string bytes(reinterpret_cast<const char*>(&half), sizeof half);
  const HostTensor filled = run_node("constant", {}, {{"dtype", kF32}, {"shape", Shape{100, 3}}, {"bytes", bytes}})[0];
  CHECK(first_difference(filled, std::vector<double>(300, 0.5), 0) == -1);
  CHECK(run_node("copy", {b})[0].bytes == b.bytes);
  CHECK(run_node("extent", {}, {{"shape", Shape{3, 4}}, {"dtype", kF32}})[0].at(0) == 12);
}

TEST_CASE("cpu: gather along any axis, and indices outside") {
  const HostTensor x = counting(kF32, {2, 4, 3});
  const HostTensor indices = tensor(DType::kI32, {2, 2}, {3, 0, 1, 3});
  const HostTensor y = run_node("gather", {x, indices}, {{"axis", int64_t{1}}})[0];
  REQUIRE(y.sizes == std::vector<int64_t>{2, 2, 2, 3});
  std::vector<double> wanted;
  for (int o = 0; o < 2; ++o) {
    for (int i : {3, 0, 1, 3}) {
      for (int k = 0; k < 3; ++k) wanted.push_back(o * 12 + i * 3 + k);
    }
  }
  CHECK(first_difference(y, wanted, 0) == -1);
  ErrorWord word;
  RunOptions options;
  options.error = &word;
  for (double bad : {4.0, -1.0}) {
    run_node("gather", {x, tensor(DType::kI64, {3}, {0, bad, 99})}, {{"axis", int64_t{1}}}, options);
    CHECK(word.code == static_cast<uint32_t>(ErrorCode::kIndexOutOfRange));
    CHECK(word.detail == static_cast<int64_t>(bad));
  }
}

TEST_CASE("cpu: scatter_add adds in a fixed order, the same bits with one thread") {
  const int64_t n = 30000;
  for (int64_t inner : {1, 3, 64}) {
    for (DType dtype : {kF32, DType::kBF16, DType::kI32}) {
      const HostTensor updates = random_tensor(dtype, {n, inner}, -4, 4, 5);
      const HostTensor indices = random_tensor(DType::kI64, {n}, 0, 50, 7);
      const Attrs attrs = {{"shape", Shape{50, inner}}, {"axis", int64_t{0}}};
      const HostTensor got = run_node("scatter_add", {updates, indices}, attrs)[0];
      std::vector<float> sums(static_cast<size_t>(50 * inner), 0);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t k = 0; k < inner; ++k) {
          sums[static_cast<size_t>(static_cast<int64_t>(indices.at(i)) * inner + k)] +=
              static_cast<float>(updates.at(i * inner + k));
        }
      }
      const HostTensor wanted = tensor(dtype, {50, inner}, {sums.begin(), sums.end()});
      // Many times more updates than elements are summed in chunks, all others in their order.
      if (inner < 64 || !is_floating(dtype)) {
        CHECK(got.bytes == wanted.bytes);
      } else {
        CHECK(first_difference(got, wanted.numbers(), dtype == kF32 ? 2e-4 : 1e-2) == -1);
      }
      RunOptions options;
      options.one_thread = true;
      CHECK(run_node("scatter_add", {updates, indices}, attrs, options)[0].bytes == got.bytes);
    }
  }
  // Wide rows over several columns, narrow ones in the middle of a tensor, more rows than updates.
  const std::vector<int64_t> sizes[] = {{2000, 500, 700, 1}, {40, 3000, 2, 7}, {90000, 2000, 70, 1}};
  for (const auto& size : sizes) {
    const int64_t rows = size[0], count = size[1], inner = size[2], outer = size[3];
    const HostTensor updates = random_tensor(kF32, {outer, count, inner}, -4, 4, 5);
    const HostTensor indices = random_tensor(DType::kI32, {count}, 0, static_cast<double>(rows), 7);
    const Attrs attrs = {{"shape", Shape{outer, rows, inner}}, {"axis", int64_t{1}}};
    const HostTensor got = run_node("scatter_add", {updates, indices}, attrs)[0];
    std::vector<float> sums(static_cast<size_t>(outer * rows * inner), 0);
    for (int64_t i = 0; i < updates.elements(); ++i) {
      const int64_t row = static_cast<int64_t>(indices.at(i / inner % count));
      sums[static_cast<size_t>((i / inner / count * rows + row) * inner + i % inner)] +=
          static_cast<float>(updates.at(i));
    }
    CHECK(got.bytes == tensor(kF32, got.sizes, {sums.begin(), sums.end()}).bytes);
    RunOptions alone;
    alone.one_thread = true;
    CHECK(run_node("scatter_add", {updates, indices}, attrs, alone)[0].bytes == got.bytes);
  }
  ErrorWord word;
  RunOptions options;
  options.error = &word;
  run_node("scatter_add", {tensor(kF32, {1}, {1}), tensor(DType::kI8, {1}, {-3})},
           {{"shape", Shape{4}}, {"axis", int64_t{0}}}, options);
  CHECK(word.detail == -3);
}

TEST_CASE("cpu: one_hot, slices at a computed place, check_range") {
  const HostTensor labels = tensor(DType::kU8, {3}, {1, 0, 7});
  CHECK(run_node("one_hot", {labels}, {{"depth", int64_t{3}}, {"dtype", DType::kF16}})[0].numbers() ==
        std::vector<double>{0, 1, 0, 1, 0, 0, 0, 0, 0});
  const HostTensor x = counting(kF32, {2, 5}), two = tensor(DType::kI32, {}, {2});
  const Attrs attrs = {{"axis", int64_t{1}}, {"size", Shape{3}}};
  CHECK(run_node("dynamic_slice", {x, two}, attrs)[0].numbers() ==
        std::vector<double>{2, 3, 4, 7, 8, 9});
  const HostTensor update = tensor(kF32, {2, 2}, {-1});
  CHECK(run_node("dynamic_update_slice", {x, update, two}, {{"axis", int64_t{1}}})[0].numbers() ==
        std::vector<double>{0, 1, -1, -1, 4, 5, 6, -1, -1, 9});
  ErrorWord word;
  RunOptions options;
  options.error = &word;
  run_node("dynamic_slice", {x, tensor(DType::kI32, {}, {3})}, attrs, options);
  CHECK(word.code == static_cast<uint32_t>(ErrorCode::kIndexOutOfRange));
  CHECK(word.detail == 3);
  run_node("check_range", {tensor(DType::kI32, {4}, {0, 9, 10, -1})}, {{"limit", Shape{10}}}, options);
  CHECK(word.detail == 10);
  run_node("check_range", {tensor(DType::kI32, {2}, {0, 9})}, {{"limit", Shape{10}}}, options);
  CHECK(word.step_plus_one == 0);
}

}  // namespace
}  // namespace tracefire::test
