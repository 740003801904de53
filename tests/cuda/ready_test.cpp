// SPDX-License-Identifier: Apache-2.0
// The ready kernels, built for the host, against the oracle: every case of tests/ops that one of
// them accepts. Loops compiled at run time have tests of their own (loop_test.cpp).
#include <cstdio>
#include <set>

#include "cuda/emulated_gpu.h"
#include "ops/device_run.h"
#include "ops/op_case.h"

namespace tracefire::test {
namespace {

/// Runs the case on every kernel of the device that accepts it; returns how many there were.
int check_case(const OpCase& op_case, DeviceBackend& device) {
  const BoundNode bound(one_node_graph(op_case), device);
  const std::vector<Array> inputs = make_inputs(op_case, 7);
  std::optional<ref::Failure> failure;
  const std::vector<Array> expected = ref::evaluate(bound.node(), inputs, &failure).value();
  REQUIRE(failure.has_value() == op_case.fails.has_value());
  int kernels = 0;
  for (const Kernel* kernel : device.kernels(bound.node().op)) {
    if (!kernel->accept(bound.view()).accepted) continue;
    ++kernels;
    INFO(kernel->name() << ": " << op_case.label());
    const Result<DeviceResult> got = run_kernel(device, *kernel, bound.view(), inputs, expected);
    REQUIRE_MESSAGE(got.ok(), got.status().str());
    CHECK(got->failure.has_value() == failure.has_value());
    if (failure && got->failure) {
      CHECK(got->failure->code == failure->code);
      CHECK(got->failure->detail == failure->detail);
    }
    for (size_t i = 0; !failure && i < expected.size(); ++i) {
      CHECK(difference(op_case, got->outputs[i], expected[i]) == "");
    }
  }
  return kernels;
}

/// True where the op's kernels are made ready while building, so that nothing is compiled here.
bool ready_made(const OpCase& op_case, DeviceBackend& device) {
  for (const Kernel* kernel : device.kernels(OpTable::instance().id(op_case.op))) {
    if (kernel->name() != "cuda_loop") return true;
  }
  return false;
}

void check_family(std::vector<OpCase> (*family)(Scale), size_t least_ops) {
  EmulatedGpu gpu;
  std::set<std::string> checked;
  const int64_t compiles = gpu.counts().compiles;
  for (const OpCase& op_case : family(Scale::kSmall)) {
    if (op_case.op == "broadcast_to" || !ready_made(op_case, gpu.device())) continue;
    if (check_case(op_case, gpu.device()) > 0) checked.insert(op_case.op);
  }
  CHECK(checked.size() >= least_ops);
  CHECK(gpu.counts().compiles == compiles);
  CHECK(gpu.counts().launches > 0);
}

TEST_CASE("cuda ready kernels: movement agrees with the oracle") {
  check_family(movement_cases, 6);
}
TEST_CASE("cuda ready kernels: indexing agrees with the oracle") {
  check_family(indexing_cases, 5);
}
TEST_CASE("cuda ready kernels: reductions agree with the oracle") {
  check_family(reduction_cases, 13);
}

/// Sizes at which work is split over blocks and launches.
TEST_CASE("cuda ready kernels: reductions that take every path agree with the oracle") {
  EmulatedGpu gpu;
  using Ints = std::vector<int64_t>;
  struct Path {
    Ints sizes, axes;
    size_t launches;
  };
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kI32, DType::kU8}) {
    const size_t two = dtype == DType::kU8 ? 1 : 2;
    for (const Path& path :
         {Path{{128, 512}, {0}, 1}, Path{{128, 10}, {0}, 1}, Path{{128, 10}, {1}, 1},
          Path{{3000, 40}, {0}, two}, Path{{2, 40001}, {1}, two}, Path{{50000}, {0}, two},
          Path{{4, 5, 6, 7}, {0, 2}, 1}, Path{{4, 5, 6, 7}, {1, 3}, 1},
          Path{{700, 3, 5}, {0, 2}, 1}, Path{{4100, 131}, {1}, 1}, Path{{7, 601}, {1}, 1},
          Path{{1, 1}, {0}, 1}}) {
      for (const char* op : {"reduce_sum", "reduce_max"}) {
        OpCase op_case{op, {{dtype, path.sizes, 0, 3, {}}}, {{"axes", path.axes}}, {}};
        op_case.slack = 20;
        op_case.whole_scale = true;
        const int64_t before = gpu.counts().launches;
        CHECK(check_case(op_case, gpu.device()) == 1);
        INFO(op_case.label());
        CHECK(gpu.counts().launches - before == static_cast<int64_t>(path.launches));
      }
    }
  }
}

TEST_CASE("cuda ready kernels: long rows are sorted, searched and summed") {
  EmulatedGpu gpu;
  for (DType dtype : {DType::kF32, DType::kF16, DType::kI64}) {
    const InputSpec row{dtype, {2, 5001}, -9000, 9000, {1, 1, 1}};
    for (int64_t k : {int64_t{1}, int64_t{100}, int64_t{5001}}) {
      CHECK(check_case({"top_k", {row}, {{"k", k}}, {}}, gpu.device()) == 1);
    }
    CHECK(check_case({"argmax", {row}, {{"axis", int64_t{1}}}, {}}, gpu.device()) == 1);
    CHECK(check_case({"argmin", {row}, {{"axis", int64_t{0}}}, {}}, gpu.device()) == 1);
    CHECK(check_case({"unique", {{dtype, {9001}, -40, 40, {}}}, {}, {}}, gpu.device()) == 1);
    CHECK(check_case({"unique", {{dtype, {5000}, 0, 9, {}}}, {{"size", int64_t{6000}}}, {}},
                     gpu.device()) == 1);
    for (int mode = 0; mode < 4; ++mode) {
      for (const auto& [sizes, axis] : {std::pair<std::vector<int64_t>, int64_t>{{3, 9001}, 1},
                                        {{700, 3}, 0},
                                        {{1, 4000}, 1}}) {
        OpCase op_case{"cumsum",
                       {{dtype, sizes, -1, 2, {}}},
                       {{"axis", axis}, {"exclusive", mode % 2 == 1}, {"reverse", mode > 1}},
                       {}};
        op_case.slack = 100;
        op_case.whole_scale = true;
        CHECK(check_case(op_case, gpu.device()) == 1);
      }
    }
  }
}

}  // namespace
}  // namespace tracefire::test
