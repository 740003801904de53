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
  check_family(reduction_cases, 9);
}

}  // namespace
}  // namespace tracefire::test
