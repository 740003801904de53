// SPDX-License-Identifier: Apache-2.0
//
// Trials in processes of their own: limits, and the emulated NVIDIA libraries.
#include "tools/doctor/live/live.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "nvidia/emulator_setup.h"
#include "support/paths.h"
#include "support/skip.h"
#include "tools/doctor/live/child.h"
#include "tools/doctor/text.h"

namespace tracefire::doctor {

TEST_CASE("doctor: a trial cannot take the doctor with it") {
  CHECK(run_child([] { return std::string("fine"); }, 60).output == "fine");
  ChildResult crash = run_child(
      []() -> std::string {
        std::signal(SIGSEGV, SIG_DFL);  // sanitizers catch it
        ::raise(SIGSEGV);
        return "";
      },
      5);
  CHECK(crash.signal == SIGSEGV);
  CHECK(crash.trouble(5).find("signal") != std::string::npos);
  auto begin = std::chrono::steady_clock::now();
  ChildResult hang = run_child(
      []() -> std::string {
        for (;;) ::pause();
      },
      1);
  CHECK(hang.timed_out);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
  ChildResult thrown = run_child([]() -> std::string { throw std::runtime_error("no"); }, 5);
  CHECK(thrown.status == 1);
  CHECK(thrown.output == "no");
  CHECK(run_program({"/bin/sh", "-c", "echo $A"}, {"A=b"}, 5).output == "b\n");
}

TEST_CASE("doctor: what another user could have changed is not trusted") {
  CHECK(trusted_file("/bin/sh"));
  test::TempDir dir;
  dir.write("lib/x.so", "x");
  CHECK(trusted_file(dir.path("lib/x.so")));
  std::filesystem::permissions(dir.path("lib"), std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  CHECK_FALSE(trusted_file(dir.path("lib/x.so")));
  CHECK_FALSE(trusted_file(dir.path("none")));
}

TEST_CASE("doctor: the emulated GPU is tried out") {
  std::string emulator = test::binary_dir() + "/tests/libtf_cuda_emulator.so";
  if (!std::filesystem::exists(emulator)) return test::skip("the emulator is not built");
  test::TempDir dir;
  for (const char* name : {"libcuda.so.1", "libnvidia-ml.so.1", "libnvrtc.so.13",
                           "libcublasLt.so.13", "libcudnn.so.9"})
    std::filesystem::copy_file(emulator, dir.path(name));
  Survey survey;
  survey.machine.gpu = Presence::kPresent;
  survey.machine.libcuda.path = dir.path("libcuda.so.1");
  survey.machine.libnvml.path = dir.path("libnvidia-ml.so.1");
  survey.machine.ld_dirs = {dir.path()};
  test::ScopedEnv way("LD_LIBRARY_PATH", dir.path());
  Root root("");
  Data data;
  Machine machine = survey.machine;
  add_live_facts(root, data, &machine);
  REQUIRE(machine.smi_rows.size() == 1);
  CHECK(machine.smi_rows[0]["name"] == "Emulated GPU");
  {
    test::ScopedEnv fails("TF_EMU_NVML", "18");
    Machine broken = survey.machine;
    add_live_facts(root, data, &broken);
    CHECK(broken.smi_text.find("Driver/library version mismatch") != std::string::npos);
  }
  LiveResults good = run_live_tests(root, survey, "");
  for (const Finding& finding : good.findings) FAIL_CHECK(finding.evidence[0]);
  REQUIRE(good.lines.size() == 7);
  for (size_t i = 3; i < 6; ++i)  // kernel, product, convolution
    CHECK_MESSAGE(good.lines[i].find("agrees with the CPU") != std::string::npos, good.lines[i]);
  // A library that cannot start, and one that computes something else, are each told apart.
  for (const std::array<const char*, 3>& row : std::vector<std::array<const char*, 3>>{
           {"TF_EMU_CUDNN_CREATE", "1001", "cudnnCreate failed: CUDNN_STATUS_NOT_INITIALIZED"},
           {"TF_EMU_CUDNN_WRONG", "1", "differs from the CPU's by 1"}}) {
    const char* words = row[2];
    test::ScopedEnv fault(row[0], row[1]);
    LiveResults bad = run_live_tests(root, survey, "");
    REQUIRE(bad.findings.size() == 1);
    CHECK(bad.findings[0].kind == "live-test");
    CHECK_MESSAGE(bad.findings[0].evidence[0].find(words) != std::string::npos,
                  bad.findings[0].evidence[0]);
    CHECK(bad.lines.size() == 7);
  }
  // Products of frameworks are told as data, too.
  dir.write("venv/lib/torch", "");
  dir.write("venv/bin/python", "#!/bin/sh\necho '{\"device\": \"cuda:0\", \"tflops\": 12.5}'\n");
  std::filesystem::permissions(dir.path("venv/bin/python"), std::filesystem::perms::owner_exec,
                               std::filesystem::perm_options::add);
  Surveyed with;
  with.env.prefix = dir.path("venv");
  with.env.kind = "venv";
  with.env.interpreter = dir.path("venv/bin/python");
  Framework torch;
  torch.id = "torch";
  torch.product = "PyTorch";
  torch.version = "2.9.0";
  torch.site = dir.path("venv/lib");
  torch.build = Build::kGpu;
  with.frameworks = {torch};
  Surveyed without = with;
  without.env.prefix = dir.path("gone");
  without.env.interpreter = dir.path("gone/bin/python");
  survey.environments = {with, without};
  LiveResults both = run_live_tests(root, survey, "");
  REQUIRE(both.products.size() == 2);
  CHECK(both.products[0].framework == "PyTorch 2.9.0 (" + with.env.prefix + ")");
  CHECK(both.products[0].device == "cuda:0");
  CHECK(both.products[0].flops_per_second == doctest::Approx(12.5e12));
  CHECK(both.products[0].problem.empty());
  CHECK(both.products[1].flops_per_second == 0);
  CHECK(both.products[1].problem.find("is not there") != std::string::npos);
  survey.environments.clear();
  {
    test::ScopedEnv fails("TF_EMU_INIT", "802");
    LiveResults bad = run_live_tests(root, survey, "");
    REQUIRE(bad.findings.size() == 1);
    CHECK(bad.findings[0].kind == "live-test");
    CHECK(bad.lines.size() == 1);
  }
}

}  // namespace tracefire::doctor
