// SPDX-License-Identifier: Apache-2.0
// The verdict and the causes of gaps, on runs made by hand of which the right answer is plain.
#include "tools/inject/analyse.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "inject/record_maker.h"
#include "tools/inject/report.h"

namespace tracefire::inject {

using test::RecordMaker;

namespace {

constexpr int64_t kUs = 1000;
constexpr int64_t kMs = 1000 * kUs;
constexpr const char* kGemm = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8";
constexpr const char* kRelu = "_ZN2at6native29vectorized_elementwise_kernelIfEEvi";

struct Run {
  Session session;
  std::vector<ProcessRecord> records;
  Report report() const { return analyse(session, records, {}); }
};

/// A program of one process that makes `steps` steps; step(maker, begin) returns where the next
/// begins.
template <class Step>
Run run_of(int steps, double cores, Step step) {
  RecordMaker maker(8 << 20);
  int64_t at = 0;
  for (int i = 0; i < steps; ++i) {
    at = step(maker, at, static_cast<uint32_t>(i) * 10);
    maker.deliver(at, static_cast<int64_t>(cores * static_cast<double>(at)));
  }
  maker.finish(at, static_cast<int64_t>(cores * static_cast<double>(at)));
  Run run;
  run.records.push_back(maker.read());
  run.session.tracing = "on";
  run.session.command = {"python", "train.py"};
  run.session.wall_ns = at;
  return run;
}

double share_of(const Report& r, Cause cause) {
  for (const CauseFigure& c : r.causes) {
    if (c.cause == cause) return c.share;
  }
  return 0;
}

Cause main_cause(const Report& r) { return r.causes.empty() ? Cause::kUnknown : r.causes[0].cause; }

bool advises(const Report& r, const char* words) {
  for (const Advice& a : r.advice) {
    if (a.finding.find(words) != std::string::npos) return true;
    for (const std::string& text : a.actions) {
      if (text.find(words) != std::string::npos) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("inject: kernels back to back are healthy and on the GPU") {
  const Run run = run_of(100, 1.0, [](RecordMaker& m, int64_t t, uint32_t c) {
    m.call(211, t, t + 5 * kUs, c);
    m.kernel(kGemm, t + 10 * kUs, t + 9900 * kUs, c);
    return t + 10 * kMs;
  });
  const Report r = run.report();
  CHECK(r.place == Place::kOnGpu);
  CHECK(r.evidence == Evidence::kTraced);
  CHECK(r.grade == health::Grade::kHealthy);
  CHECK(r.busy_share == doctest::Approx(0.989).epsilon(0.005));
  CHECK(r.causes.empty());
  CHECK(r.kernel_count == 100);
  REQUIRE(r.classes.size() == 1);
  CHECK(r.classes[0].work == KernelClass::kMatmul);
  // All of it is float32 without tensor cores.
  CHECK(advises(r, "mixed precision"));
}

TEST_CASE("inject: no CUDA at all is on-cpu; without tracing nothing is claimed") {
  Run run;
  run.session.tracing = "on";
  CHECK(run.report().place == Place::kOnCpu);
  run.session.tracing = "another tool is injected already";
  CHECK(run.report().place == Place::kUnknown);
  CHECK(run.report().evidence == Evidence::kNone);
}

TEST_CASE("inject: copies alone do not put a program on the GPU") {
  const Run run = run_of(100, 8.0, [](RecordMaker& m, int64_t t, uint32_t c) {
    m.call(41, t, t + 5 * kUs, c);
    m.copy(1, 1, 3, 100 << 20, t + 10 * kUs, t + 9000 * kUs, c);
    return t + 10 * kMs;
  });
  CHECK(run.report().place == Place::kOnCpu);
  CHECK(run.report().copies[0].way == "host to device, pageable");
}

TEST_CASE("inject: long waits for input before a copy to the device") {
  const Run run = run_of(60, 1.0, [](RecordMaker& m, int64_t t, uint32_t c) {
    m.call(41, t, t + 5 * kUs, c);
    m.copy(1, 1, 3, 12 << 20, t + 10 * kUs, t + 1000 * kUs, c);
    m.call(211, t + 6 * kUs, t + 10 * kUs, c + 1);
    m.kernel(kGemm, t + 1001 * kUs, t + 4 * kMs, c + 1);
    return t + 40 * kMs;  // 36 ms in the data loader
  });
  const Report r = run.report();
  CHECK(r.place == Place::kOnGpu);
  CHECK(r.grade == health::Grade::kLow);
  CHECK(main_cause(r) == Cause::kInput);
  CHECK(share_of(r, Cause::kInput) == doctest::Approx(0.9).epsilon(0.05));
  CHECK(advises(r, "prefetch"));
}

TEST_CASE("inject: short kernels with a launch between each") {
  const Run run = run_of(50, 1.0, [](RecordMaker& m, int64_t t, uint32_t c) {
    for (uint32_t i = 0; i < 10; ++i, t += 20 * kUs) {
      m.call(211, t, t + 4 * kUs, c + i);
      m.kernel(kRelu, t + 6 * kUs, t + 8 * kUs, c + i);
    }
    return t;
  });
  const Report r = run.report();
  CHECK(main_cause(r) == Cause::kLaunch);
  CHECK(share_of(r, Cause::kLaunch) > 0.8);
  CHECK(advises(r, "torch.compile"));
  CHECK(advises(r, "kernels are tiny"));
}

TEST_CASE("inject: the same gaps after a wait for the device are the wait's") {
  const Run run = run_of(50, 1.0, [](RecordMaker& m, int64_t t, uint32_t c) {
    for (uint32_t i = 0; i < 10; ++i, t += 60 * kUs) {
      m.call(211, t, t + 4 * kUs, c + i);
      m.kernel(kGemm, t + 6 * kUs, t + 36 * kUs, c + i);
      m.call(131, t + 5 * kUs, t + 40 * kUs, 0);  // until 4 us after the kernel's end
    }
    return t;
  });
  const Report r = run.report();
  CHECK(main_cause(r) == Cause::kSynchronisation);
  CHECK(advises(r, ".item()"));
}

TEST_CASE("inject: copies without kernels beside them") {
  const Run run = run_of(50, 0.5, [](RecordMaker& m, int64_t t, uint32_t c) {
    m.call(41, t, t + 9 * kMs, c);
    m.copy(1, 1, 3, 100 << 20, t + 10 * kUs, t + 9 * kMs, c);
    m.call(211, t + 9010 * kUs, t + 9015 * kUs, c + 1);
    m.kernel(kGemm, t + 9020 * kUs, t + 9900 * kUs, c + 1);
    return t + 10 * kMs;
  });
  const Report r = run.report();
  CHECK(main_cause(r) == Cause::kCopy);
  CHECK(share_of(r, Cause::kCopy) > 0.8);
  CHECK(advises(r, "pinned memory"));
}

TEST_CASE("inject: data that goes down, is worked on, and comes back") {
  const Run run = run_of(40, 1.0, [](RecordMaker& m, int64_t t, uint32_t c) {
    m.call(41, t, t + 5 * kUs, c);
    m.copy(1, 1, 3, 16 << 20, t + 10 * kUs, t + 1000 * kUs, c);
    m.call(211, t + 6 * kUs, t + 9 * kUs, c + 1);
    m.kernel(kGemm, t + 1001 * kUs, t + 3 * kMs, c + 1);
    m.call(41, t + 20 * kUs, t + 4010 * kUs, c + 2);
    m.copy(2, 3, 1, 16 << 20, t + 3 * kMs + kUs, t + 4 * kMs, c + 2);
    return t + 60 * kMs;
  });
  const Report r = run.report();
  CHECK(main_cause(r) == Cause::kCpuFallback);
  CHECK(r.place == Place::kPartlyOnGpu);
  CHECK(advises(r, "NumPy"));
}

TEST_CASE("inject: other gaps: own work, loading, allocation, queued work") {
  const auto gap = [](int64_t gap_ns, auto before_launch, int64_t launch_ns) {
    return run_of(40, 1.0, [=](RecordMaker& m, int64_t t, uint32_t c) {
      before_launch(m, t, c);
      m.call(211, t + gap_ns, t + gap_ns + launch_ns, c + 1);
      const int64_t start = t + gap_ns + launch_ns + kUs;
      m.kernel(kGemm, start, start + kMs, c + 1);
      return start + kMs;
    });
  };
  const auto nothing = [](RecordMaker&, int64_t, uint32_t) {};
  CHECK(main_cause(gap(5 * kMs, nothing, 5 * kUs).report()) == Cause::kHost);
  CHECK(main_cause(gap(100 * kUs, nothing, 20 * kMs).report()) == Cause::kLoading);
  const auto allocates = [](RecordMaker& m, int64_t t, uint32_t c) {
    m.call(20, t + 10 * kUs, t + 4900 * kUs, c);
  };
  CHECK(main_cause(gap(5 * kMs, allocates, 5 * kUs).report()) == Cause::kAllocation);
  // Launched long before, yet begun late.
  const Run queued = run_of(60, 0.1, [](RecordMaker& m, int64_t t, uint32_t c) {
    for (uint32_t i = 0; i < 10; ++i) {
      m.call(211, t + i * kUs, t + i * kUs + 900, c + i);
      m.kernel(kRelu, t + 100 * kUs + i * 20 * kUs, t + 105 * kUs + i * 20 * kUs, c + i);
    }
    return t + 300 * kUs;
  });
  CHECK(main_cause(queued.report()) == Cause::kDevice);
}

TEST_CASE("inject: two processes on one GPU are added up, their ranks told") {
  Run run = run_of(100, 1.0, [](RecordMaker& m, int64_t t, uint32_t c) {
    m.call(211, t, t + 5 * kUs, c);
    m.kernel(kGemm, t + 10 * kUs, t + 4 * kMs, c);
    return t + 10 * kMs;
  });
  run.records.push_back(run.records[0]);
  run.records[1].rank = 2;
  const Report r = run.report();
  CHECK(r.processes.size() == 2);
  CHECK(r.processes[0].title == "rank 1 of 4, pid 42 on node1");
  CHECK(r.kernel_count == 200);
  CHECK(r.busy_share == doctest::Approx(0.8).epsilon(0.02));
}

TEST_CASE("inject: dropped records and a kill are told") {
  Run run = run_of(20, 1.0, [](RecordMaker& m, int64_t t, uint32_t c) {
    m.kernel(kGemm, t, t + 9 * kMs, c);
    return t + 10 * kMs;
  });
  run.records[0].dropped = 1000;
  run.records[0].clean_end = false;
  const Report r = run.report();
  CHECK_FALSE(r.complete());
  CHECK(r.place == Place::kOnGpu);
  const std::string text = report_text(r);
  CHECK(text.find("1000 records were dropped") != std::string::npos);
  CHECK(text.find("ended without its last records") != std::string::npos);
  CHECK(text.find("Evidence, not attestation") != std::string::npos);
}

TEST_CASE("inject: names of kernels give their class and tensor cores") {
  const struct {
    const char* name;
    KernelClass work;
    TensorCores cores;
  } kCases[] = {
      {"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", KernelClass::kMatmul, TensorCores::kYes},
      {"ampere_sgemm_128x64_tn", KernelClass::kMatmul, TensorCores::kNo},
      {"sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nchw_tilesize128x64x32",
       KernelClass::kConvolution, TensorCores::kYes},
      {"_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsEEvNS_16Flash_fwd_paramsE",
       KernelClass::kAttention, TensorCores::kYes},
      {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
       KernelClass::kCommunication, TensorCores::kNo},
      {"_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi", KernelClass::kElementwise,
       TensorCores::kNo},
      {"loop_multiply_fusion_3", KernelClass::kElementwise, TensorCores::kNo},
      {"input_reduce_fusion", KernelClass::kReduction, TensorCores::kNo},
      {"gemm_fusion_dot_12", KernelClass::kMatmul, TensorCores::kUnknown},
      {"_ZN2at6native13reduce_kernelILi512EEEvf", KernelClass::kReduction, TensorCores::kNo},
      {"my_own_thing", KernelClass::kOther, TensorCores::kNo},
  };
  for (const auto& c : kCases) {
    const KernelKind kind = classify_kernel(readable_kernel(c.name));
    INFO(c.name);
    CHECK(kind.work == c.work);
    CHECK(kind.tensor_cores == c.cores);
  }
  CHECK(short_kernel("void at::native::(anonymous namespace)::k<4, float>(int, float*)") ==
        "at::native::(anonymous namespace)::k");
}

}  // namespace tracefire::inject
