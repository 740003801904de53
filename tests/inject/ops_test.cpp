// SPDX-License-Identifier: Apache-2.0
// The executor's records joined with the driver's, and ranks by what launchers set.
#include "tools/inject/ops.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "core/base/recorder.h"

using namespace tracefire;
using namespace tracefire::inject;

namespace {

OpRow row(const std::string& op, const std::string& layer, double flops,
          std::vector<std::string> symbols, uint64_t runs = 10) {
  OpRow r;
  r.op = op;
  r.layer = layer;
  r.device = "/GPU:0";
  r.kernel = op + "_kernel";
  r.placement = "on device";
  r.flops = flops;
  r.runs = runs;
  r.symbols = std::move(symbols);
  return r;
}

NameRow kernel(const std::string& name, uint64_t count, uint64_t total) {
  NameRow n;
  n.name = name;
  n.count = count;
  n.total = total;
  return n;
}

ProcessRecord process(std::vector<OpRow> rows, std::vector<NameRow> names) {
  ProcessRecord r;
  r.state = TraceState::kTracing;
  r.names = std::move(names);
  OpRecords ops;
  ops.verdict = "on-gpu";
  ops.clean_end = true;
  for (const OpRow& one : rows) ops.gpu_flops += one.flops;
  ops.rows = std::move(rows);
  r.ops = std::make_shared<const OpRecords>(std::move(ops));
  return r;
}

const OpFigure& find(const OpReport& report, const std::string& layer) {
  for (const OpFigure& f : report.ops) {
    if (f.layer == layer) return f;
  }
  FAIL("no operation of layer ", layer);
  return report.ops.front();
}

}  // namespace

TEST_CASE("a kernel's time goes to the operation that launched it") {
  const OpReport report =
      join_ops({process({row("relu", "a", 100, {"tf_relu"}), row("tanh", "b", 300, {"tf_tanh"})},
                        {kernel("tf_relu", 10, 5000), kernel("tf_tanh", 10, 7000),
                         kernel("somebody_elses", 3, 1000)})});
  CHECK(find(report, "a").kernel_ns == 5000);
  CHECK(!find(report, "a").estimated);
  CHECK(find(report, "b").kernel_ns == 7000);
  CHECK(find(report, "b").work_share == 0.75);
  CHECK(report.ops[0].layer == "b");
  CHECK(report.joined_ns == 12000);
  CHECK(report.kernels_compared == 2);
  CHECK(report.kernels_agreeing == 2);
}

TEST_CASE("a smaller last batch has kernels of its own, which are compared with their own runs") {
  OpRow both = row("relu", "a", 100, {"tf_relu_128", "tf_relu_7"}, 10);
  both.launches = {9, 1};
  const OpReport report =
      join_ops({process({both}, {kernel("tf_relu_128", 9, 900), kernel("tf_relu_7", 1, 10)})});
  CHECK(find(report, "a").kernel_ns == 910);
  CHECK(report.kernels_compared == 2);
  CHECK(report.kernels_agreeing == 2);
}

TEST_CASE("shared kernels are divided by work and marked so") {
  const OpReport report =
      join_ops({process({row("relu", "a", 100, {"tf_loop"}), row("relu", "b", 300, {"tf_loop"})},
                        {kernel("tf_loop", 20, 8000)})});
  CHECK(find(report, "a").kernel_ns == 2000);
  CHECK(find(report, "b").kernel_ns == 6000);
  CHECK(find(report, "b").estimated);
}

TEST_CASE("kernels that cuBLASLt chose belong to the products") {
  const OpReport report = join_ops({process(
      {row("matmul", "dense", 1000, {"cublasLtMatmul"}), row("matmul", "own", 10, {"tf_gemm"})},
      {kernel("sm90_xmma_gemm_f32f32_tf32f32", 10, 9000), kernel("tf_gemm", 10, 400),
       kernel("nvjet_tst_128x64", 2, 100), kernel("vectorized_elementwise", 5, 50)})});
  CHECK(find(report, "dense").kernel_ns == 9100);
  CHECK(find(report, "own").kernel_ns == 400);
  CHECK(report.joined_ns == 9500);
}

TEST_CASE("records that disagree are told") {
  OpRow ten = row("relu", "a", 100, {"tf_relu"}, 10);
  ten.launches = {10};
  const OpReport fewer = join_ops({process({ten}, {kernel("tf_relu", 9, 10)})});
  CHECK(fewer.kernels_compared == 1);
  CHECK(fewer.kernels_agreeing == 0);
  CHECK(fewer.fewer == "tf_relu (9 of 10)");
  const OpReport none = join_ops({process({row("relu", "a", 100, {"tf_relu"}, 10)}, {})});
  REQUIRE(none.notes.size() == 1);
  CHECK(none.notes[0].find("disagree") != std::string::npos);
  CHECK(find(none, "a").kernel_ns < 0);
}

TEST_CASE("work of several processes is added up; CPU rows have no kernel time") {
  OpRow on_cpu = row("relu", "a", 100, {"cpu_loop"});
  on_cpu.device = "/CPU:0";
  const OpReport report = join_ops({process({on_cpu}, {}), process({on_cpu}, {})});
  REQUIRE(report.ops.size() == 1);
  CHECK(report.ops[0].runs == 20);
  CHECK(report.ops[0].flops == 200);
  CHECK(report.ops[0].kernel_ns < 0);
}

TEST_CASE("rank by TF_CONFIG") {
  const char* worker =
      R"({"cluster": {"chief": ["h0:1"], "worker": ["h1:1", "h2:1"]}, "task": {"type": "worker", "index": 1}})";
  recorder::Rank r = recorder::rank_of_tf_config(worker);
  CHECK(r.rank == 2);
  CHECK(r.ranks == 3);
  r = recorder::rank_of_tf_config(
      R"({"task":{"index":0,"type":"chief"},"cluster":{"worker":["h1:1"],"chief":["h0:1"]}})");
  CHECK(r.rank == 0);
  CHECK(r.ranks == 2);
  r = recorder::rank_of_tf_config(
      R"({"cluster":{"worker":["a:1","b:1"]},"task":{"type":"worker","index":"1"}})");
  CHECK(r.rank == 1);
  CHECK(r.ranks == 2);
  for (const char* none :
       {"", "{", "\"", R"({"task":{}})", R"({"task":{"type":"ps","index":0}})",
        R"({"task":{"type":"worker","index":-1}})", R"("task":)", R"("task":{"index")"}) {
    CHECK(recorder::rank_of_tf_config(none).rank == -1);
  }
}

TEST_CASE("the launcher nearest to the program decides its rank") {
  setenv("SLURM_PROCID", "3", 1);
  setenv("SLURM_NTASKS", "4", 1);
  CHECK(recorder::rank_of_process().rank == 3);
  CHECK(recorder::rank_of_process().ranks == 4);
  setenv("RANK", "7", 1);
  setenv("WORLD_SIZE", "8", 1);
  CHECK(recorder::rank_of_process().rank == 7);
  CHECK(recorder::rank_of_process().ranks == 8);
  for (const char* name : {"SLURM_PROCID", "SLURM_NTASKS", "RANK", "WORLD_SIZE"}) unsetenv(name);
}

TEST_CASE("operations that make no sense are refused") {
  for (const char* text :
       {"", "{}", "[]", "null", R"({"schema":"tracefire.ops/1"})",
        R"({"schema":"tracefire.ops/1","programs":[],"parts":[],"rows":[{}],"verdict":"on-gpu"})",
        R"({"schema":"tracefire.ops/1","programs":[],"parts":[],"rows":[],"verdict":"x"})",
        R"({"schema":"tracefire.ops/1","programs":7,"parts":[],"rows":[],"verdict":"on-gpu"})"}) {
    CHECK(!parse_op_records(text).ok());
  }
  const auto least = parse_op_records(
      R"({"schema":"tracefire.ops/1","programs":[],"parts":[-5],"rows":[],"verdict":"on-gpu","gpu_flops":-1,"rank":99999999999})");
  REQUIRE(least.ok());
  CHECK(least->gpu_flops == 0);
  CHECK(least->rank == -1);
  CHECK(least->parts[0] == 0);
}
