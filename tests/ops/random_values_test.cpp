// SPDX-License-Identifier: Apache-2.0
// Random numbers that others publish: JAX's partitionable Threefry, Random123's known answers.
#include <doctest/doctest.h>

#include "ops/op_case.h"

namespace tracefire::test {
namespace {

Array draw(const char* op, std::vector<int64_t> key, Shape shape, DType dtype,
           const char* algorithm) {
  OpCase op_case{op,
                 {{DType::kU32, {2}, 0, 0, {}}},
                 {{"shape", shape}, {"dtype", dtype}, {"algorithm", std::string(algorithm)}},
                 {}};
  std::vector<Array> inputs = make_inputs(op_case, 1);
  inputs[0].whole = {key[0], key[1]};
  return ref::run_graph(*one_node_graph(op_case), inputs).value()[0];
}

std::vector<uint64_t> words(DType dtype, Shape shape) {
  const Array array = draw("random_bits", {7, 42}, shape, dtype, "threefry2x32");
  return std::vector<uint64_t>(array.whole.begin(), array.whole.end());
}

// jax.random.bits(wrap_key_data([7, 42]), (2, 3), dtype), jax 0.12.
TEST_CASE("threefry2x32 gives JAX's numbers") {
  CHECK(words(DType::kU32, {2, 3}) == std::vector<uint64_t>{0x5fdaac6a, 0x8c2fb2ec, 0xe1bb5b24,
                                                            0xe88e45bb, 0xbfc3493c, 0x3ea827a1});
  CHECK(words(DType::kU64, {3}) ==
        std::vector<uint64_t>{0x8e1adabfd1c076d5, 0xf1137cab7d3cce47, 0x8140e95360fbb277});
  CHECK(words(DType::kU8, {3}) == std::vector<uint64_t>{0x6a, 0xec, 0x24});
  CHECK(words(DType::kU16, {3}) == std::vector<uint64_t>{0xac6a, 0xb2ec, 0x5b24});
}

TEST_CASE("random_uniform gives JAX's numbers") {
  const auto uniform = [](DType dtype) {
    return draw("random_uniform", {7, 42}, {3}, dtype, "threefry2x32").real;
  };
  CHECK(uniform(DType::kF32) ==
        std::vector<double>{0.37443041801452637, 0.5476027727127075, 0.8817650079727173});
  CHECK(uniform(DType::kF64) ==
        std::vector<double>{0.555097266989607, 0.9417035978960824, 0.5048967197953818});
  CHECK(uniform(DType::kF16) == std::vector<double>{0.6728515625, 0.6982421875, 0.35546875});
  CHECK(uniform(DType::kBF16) == std::vector<double>{0.4140625, 0.921875, 0.140625});
}

// philox4x32 10 in Random123's kat_vectors: counter and key all zeros.
TEST_CASE("philox4x32 gives Random123's known answer") {
  const Array array = draw("random_bits", {0, 0}, {4}, DType::kU32, "philox4x32");
  CHECK(std::vector<uint64_t>(array.whole.begin(), array.whole.end()) ==
        std::vector<uint64_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
}

}  // namespace
}  // namespace tracefire::test
