// SPDX-License-Identifier: Apache-2.0
// Kernels that the executor's records name against those that CUPTI saw.
#include "tools/cli_engine/kernel_check.h"

#include <doctest/doctest.h>

using namespace tracefire;
using cli::KernelCheck;
using profiler::Profile;

namespace {

Profile::Row row(const std::string& kernel, std::vector<std::string> symbols, uint64_t runs) {
  Profile::Row r;
  r.device = "/GPU:0";
  r.kernel = kernel;
  r.symbols = std::move(symbols);
  r.runs = runs;
  r.source = "sampled";
  r.time = {2, 20.0 * static_cast<double>(runs), 20, 20, 20};
  return r;
}

/// A process that ran a loop, a product of cuBLASLt and a reduction of two kernels.
Profile profile() {
  Profile p;
  p.pid = 77;
  p.kernels = {row("cuda_loop", {"tf_add_1"}, 100), row("cublaslt_matmul", {"cublasLtMatmul"}, 50),
               row("cuda_reduce", {"memset", "tf_sum_1", "tf_sum_2"}, 10)};
  p.operations = p.kernels;
  return p;
}

inject::NameRow seen(const std::string& name, uint64_t count, uint64_t ns) {
  inject::NameRow n;
  n.name = name;
  n.count = count;
  n.total = count * ns;
  return n;
}

inject::ProcessRecord record() {
  inject::ProcessRecord r;
  r.pid = 77;
  r.state = inject::TraceState::kTracing;
  r.names = {seen("tf_add_1", 100, 2000), seen("sm90_xmma_gemm_f32f32_tn_n", 50, 8000),
             seen("tf_sum_1", 10, 3000), seen("tf_sum_2", 10, 1000)};
  return r;
}

}  // namespace

TEST_CASE("kernels that CUPTI saw are confirmed and get its times") {
  Profile p = profile();
  const KernelCheck check = cli::check_kernels({}, {record()}, &p);
  CHECK(check.state == "confirmed");
  CHECK(check.str() == "confirmed by CUPTI: 4 of 4 kernels");
  REQUIRE(p.kernels.size() == 3);
  // Most time first: 50 x 8 us, 100 x 2 us, 10 x (3 + 1) us.
  CHECK(p.kernels[0].kernel == "cublaslt_matmul");
  CHECK(p.kernels[0].time.total_us == doctest::Approx(400));
  CHECK(p.kernels[1].time.mean_us == doctest::Approx(2));
  CHECK(p.kernels[2].time.total_us == doctest::Approx(40));
  CHECK(p.kernels[0].share == doctest::Approx(400.0 / 640));
  for (const Profile::Row& r : p.kernels) CHECK(r.source == "CUPTI");
  CHECK(!p.notes.empty());
}

TEST_CASE("a kernel that CUPTI did not see is named, and its row keeps its sampled time") {
  Profile p = profile();
  inject::ProcessRecord seen_less = record();
  seen_less.names.pop_back();
  const KernelCheck check = cli::check_kernels({}, {seen_less}, &p);
  CHECK(check.state == "differs");
  CHECK(check.str() == "not all confirmed by CUPTI: 3 of 4 kernels; not seen: tf_sum_2");
  for (const Profile::Row& r : p.kernels) {
    CHECK(r.source == (r.kernel == "cuda_reduce" ? "sampled" : "CUPTI"));
  }
}

TEST_CASE("why kernels could not be compared is said") {
  SUBCASE("nothing ran on a GPU") {
    Profile p = profile();
    for (Profile::Row& r : p.kernels) r.device = "/CPU:0";
    CHECK(cli::check_kernels({}, {record()}, &p).state == "not applicable");
  }
  SUBCASE("another process was traced") {
    Profile p = profile();
    p.pid = 78;
    inject::Session session;
    session.tracing = "on";
    const KernelCheck check = cli::check_kernels(session, {record()}, &p);
    CHECK(check.state == "unavailable");
    CHECK(check.str().find("CUPTI left no record of the process") != std::string::npos);
  }
  SUBCASE("CUPTI was not found") {
    Profile p = profile();
    inject::ProcessRecord r = record();
    r.state = inject::TraceState::kNoCupti;
    r.names.clear();
    r.detail = "libcupti.so.13 was not found";
    const KernelCheck check = cli::check_kernels({}, {r}, &p);
    CHECK(check.state == "unavailable");
    CHECK(check.reason == "libcupti.so.13 was not found");
    CHECK(p.kernels[0].source == "sampled");
  }
}
