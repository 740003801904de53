// SPDX-License-Identifier: Apache-2.0
// The ready kernels, built for the host, against the oracle: every case of tests/ops that one of
// them accepts. Loops compiled at run time have tests of their own (loop_test.cpp).
#include <cmath>
#include <limits>
#include <set>

#include "core/compile/compile.h"
#include "core/compile/passes/placement.h"
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

/// Every case of a family, without a compiler: an operation by itself never waits for one.
void check_family(std::vector<OpCase> (*family)(Scale), size_t least_ops) {
  if (skip_without_kernels()) return;
  EmulatedGpu gpu;
  std::set<std::string> checked;
  const int64_t compiles = gpu.counts().compiles;
  for (const OpCase& op_case : family(Scale::kSmall)) {
    if (check_case(op_case, gpu.device()) > 0) checked.insert(op_case.op);
    INFO(op_case.label());
    CHECK(gpu.counts().compiles == compiles);
  }
  CHECK(checked.size() >= least_ops);
  CHECK(gpu.counts().launches > 0);
}

TEST_CASE("cuda ready kernels: unary operations agree with the oracle") {
  check_family(unary_cases, 20);
}
TEST_CASE("cuda ready kernels: binary operations agree with the oracle") {
  check_family(binary_cases, 20);
}
TEST_CASE("cuda ready kernels: random words agree with the oracle") {
  check_family(random_cases, 1);
}
TEST_CASE("cuda ready kernels: products agree with the oracle") { check_family(product_cases, 1); }
TEST_CASE("cuda ready kernels: movement agrees with the oracle") {
  check_family(movement_cases, 6);
}
TEST_CASE("cuda ready kernels: indexing agrees with the oracle") {
  check_family(indexing_cases, 7);
}
TEST_CASE("cuda ready kernels: reductions agree with the oracle [slow]") {
  check_family(reduction_cases, 16);
}

TEST_CASE("cuda ready kernels: composites agree with the oracle") {
  check_family(composite_cases, 5);
}

TEST_CASE("cuda ready kernels: long rows of logits, and corners") {
  if (skip_without_kernels()) return;
  EmulatedGpu gpu;
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (DType dtype : kFloats) {
    for (int64_t classes : {int64_t{65}, int64_t{1500}, int64_t{70001}}) {
      const InputSpec logits{dtype, {2, classes}, -9, 9, {}};
      const InputSpec labels{DType::kI64, {2}, 0, static_cast<double>(classes - 1), {}};
      for (OpCase op_case :
           {OpCase{"softmax", {logits}, {}, {}}, OpCase{"log_softmax", {logits}, {}, {}},
            OpCase{"softmax_cross_entropy", {logits, labels}, {}, {}},
            OpCase{
                "softmax_cross_entropy_grad", {logits, labels, {dtype, {2}, 1, 2, {}}}, {}, {}}}) {
        op_case.slack = 20;
        op_case.whole_scale = true;
        CHECK(check_case(op_case, gpu.device()) == 1);
      }
    }
    for (double corner : {inf, -inf, nan}) {
      for (const char* op : {"softmax", "log_softmax"}) {
        const OpCase row{op, {{dtype, {3, 3}, 0, 1, {corner, corner, corner, corner}}}, {}, {}};
        CHECK(check_case(row, gpu.device()) == 1);
        const OpCase column{op, {{dtype, {70, 2}, 0, 1, {corner}}}, {{"axis", int64_t{0}}}, {}};
        CHECK(check_case(column, gpu.device()) == 1);
      }
    }
  }
}

/// Sizes at which work is split over blocks and launches.
TEST_CASE("cuda ready kernels: reductions that take every path agree with the oracle [slow]") {
  if (skip_without_kernels()) return;
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
  if (skip_without_kernels()) return;
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
    for (const char* op : {"sort", "argsort"}) {
      CHECK(check_case({op, {row}, {{"descending", true}}, {}}, gpu.device()) == 1);
      const InputSpec column{dtype, {3001, 2}, -40, 40, {}};
      CHECK(check_case({op, {column}, {{"axis", int64_t{0}}}, {}}, gpu.device()) == 1);
    }
    OpCase scatter{"scatter",
                   {{dtype, {100, 3}, 1, 2, {}},
                    {DType::kI32, {3000, 1}, 0, 99, {}},
                    {dtype, {3000, 3}, 0, 2, {}}},
                   {{"reduction", std::string("add")}},
                   {}};
    scatter.slack = 100;
    scatter.whole_scale = true;
    CHECK(check_case(scatter, gpu.device()) == 1);
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

/// Bits of a kernel's results with all arrays `shift` elements off their alignment.
std::vector<std::vector<float>> run_shifted(EmulatedGpu& gpu, const OpCase& op_case, size_t shift) {
  const BoundNode bound(one_node_graph(op_case), gpu.device());
  std::vector<BufferPtr> buffers;
  std::vector<void*> in, out;
  for (const Array& array : make_inputs(op_case, 3)) {
    const std::string bytes = ref::bytes_of(array);
    const size_t offset = shift * dtype_size(array.dtype);
    buffers.push_back(gpu.device().allocate(bytes.size() + offset, "input").value());
    in.push_back(static_cast<char*>(buffers.back()->data()) + offset);
    const Status copied = gpu.device().copy_in(gpu.stream(), in.back(), bytes.data(), bytes.size());
    REQUIRE(copied.ok());
  }
  std::vector<size_t> counts;
  for (const ValueType& type : bound.node().outputs) {
    counts.push_back(static_cast<size_t>(type.shape.elements().value()));
    buffers.push_back(gpu.device().allocate((counts.back() + shift) * 4, "output").value());
    out.push_back(static_cast<float*>(buffers.back()->data()) + shift);
  }
  const Kernel* const kernel = gpu.device().kernels(bound.node().op).front();
  const auto launch = kernel->bind(bound.view(), gpu.device());
  REQUIRE(launch.ok());
  const BufferPtr workspace =
      gpu.device().allocate(std::max<size_t>(1, (*launch)->workspace_bytes()), "work").value();
  REQUIRE((*launch)->run({gpu.stream(), in, out, workspace->data(), nullptr, 0}).ok());
  std::vector<std::vector<float>> results;
  for (size_t i = 0; i < out.size(); ++i) {
    results.emplace_back(counts[i]);
    REQUIRE(gpu.device().copy_out(gpu.stream(), results[i].data(), out[i], counts[i] * 4).ok());
  }
  return results;
}

TEST_CASE("cuda ready kernels: the bits do not depend on the addresses") {
  if (skip_without_kernels()) return;
  EmulatedGpu gpu;
  const InputSpec x{DType::kF32, {37, 1003}, -1, 1, {}}, v{DType::kF32, {37, 1003}, 0.1, 1, {}};
  const InputSpec step{DType::kI64, {}, 3, 3, {}}, rate{DType::kF32, {}, 0.01, 0.01, {}};
  for (const OpCase& op_case :
       {OpCase{"reduce_sum", {x}, {{"axes", std::vector<int64_t>{1}}}, {}},
        OpCase{"reduce_sum", {x}, {{"axes", std::vector<int64_t>{0, 1}}}, {}},
        OpCase{"softmax", {x}, {}, {}}, OpCase{"adam_update", {x, x, x, v, step, rate}, {}, {}}}) {
    INFO(op_case.label());
    CHECK(run_shifted(gpu, op_case, 0) == run_shifted(gpu, op_case, 1));
  }
}

/// Whatever its types are, a node of this runs without a kernel: the same bytes, a copy between
/// devices, programs of its regions, the start of a chain of effects.
bool takes_no_kernel(const OpRow& row) {
  const KnownOps& known = KnownOps::get();
  const OpId op = OpTable::instance().id(row.name);
  return known.is_alias(op) || op == known.copy || op == known.token ||
         (row.op_class == OpClass::kControl && op != known.fused);
}

/// On purpose, no row falls back. A row that has to is listed here with its reason.
const std::set<std::string> kFallBacks = {};

TEST_CASE("cuda ready kernels: a row without a kernel belongs on the host or is made of others") {
  EmulatedGpu gpu;
  const OpTable& table = OpTable::instance();
  std::set<std::string> without;
  for (const OpRow& row : table.rows()) {
    const bool runs = !gpu.device().kernels(table.id(row.name)).empty() || row.decompose;
    // The host is the place of these by design: they count as such, never as fallen back.
    if (row.op_class == OpClass::kHost) {
      CHECK_MESSAGE(!runs, row.name, " runs on a GPU but is placed on the host");
    } else if (!runs && !takes_no_kernel(row)) {
      without.insert(row.name);
    }
  }
  CHECK(without == kFallBacks);
}

TEST_CASE("cuda ready kernels: what no kernel takes is of strings, whose place is the host") {
  EmulatedGpu gpu;
  std::set<std::string> refused;
  for (const auto family : {unary_cases, binary_cases, movement_cases, indexing_cases,
                            reduction_cases, product_cases, random_cases, composite_cases}) {
    for (const OpCase& op_case : family(Scale::kSmall)) {
      const GraphPtr graph = one_node_graph(op_case);
      const Node& node = graph->nodes[0];
      const OpRow& row = OpTable::instance().row(node.op);
      if (takes_no_kernel(row)) continue;
      const std::shared_ptr<const LoopProgram> loop = emit_loop(*graph, node);
      std::vector<ValueType> inputs;
      for (const Param& param : graph->params) inputs.push_back(param.type);
      NodeView view;
      view.node = &node;
      view.inputs = inputs;
      view.outputs = node.outputs;
      view.loop = loop.get();
      bool runs = row.decompose != nullptr;
      for (const Kernel* kernel : gpu.device().kernels(node.op)) {
        const Answer answer = kernel->accept(view);
        runs = runs || answer.accepted;
        CHECK((answer.accepted || !answer.refusal.empty()));
      }
      INFO(op_case.label());
      CHECK(runs == !belongs_on_host(*graph, node));
      if (!runs) refused.insert(op_case.op);
    }
  }
  CHECK(refused == std::set<std::string>{"broadcast_to", "concat", "constant", "gather", "reverse",
                                         "slice", "transpose"});
}

}  // namespace
}  // namespace tracefire::test
