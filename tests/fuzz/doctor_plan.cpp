// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/doctor
//
// libFuzzer entry: any text as what `doctor plan --framework` is asked. What is no condition is
// said to be none; what is one gets a plan with a sentence, on machines of all kinds.
#include <unistd.h>

#include <cstdlib>

#include "tools/doctor/plan.h"
#include "tools/doctor/version.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire::doctor;
  static const Data kData;
  static const std::string kFolder = [] {
    char name[] = "/tmp/tracefire_fuzz_XXXXXX";  // stays empty
    return std::string(::mkdtemp(name) == nullptr ? "/nonexistent" : name);
  }();
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const PlanSpec spec = parse_plan_spec(text);
  is_pep440(text);
  for (const char* version : {"2.20.0", "0.12.0.1"}) meets(version, spec.conditions);
  if (!spec.error.empty()) return 0;
  static const char* const kIds[] = {"tensorflow", "torch", "jax", "keras"};
  static const char* const kCapabilities[] = {"12.0", "9.0", "8.6", "7.0", "3.7", "99.9", "x"};
  Machine machine;
  machine.module_version = (data[0] & 4) != 0 ? "580.65.06" : (data[0] & 8) != 0 ? "470.1" : "";
  machine.nvidia_loaded = true;
  machine.platform = (data[0] & 16) != 0 ? "windows" : (data[0] & 32) != 0 ? "darwin" : "linux";
  machine.gpu = Presence::kPresent;
  machine.gpus.emplace_back();
  machine.gpus[0].name = "GPU";
  machine.gpus[0].capability = kCapabilities[data[1] % 7];
  Root root(kFolder);
  const Report report = make_plan(root, kData, std::move(machine), kIds[data[0] % 4], spec, "");
  if (report.findings.empty() || report.summary.empty()) std::abort();
  for (const Finding& finding : report.findings)
    if (finding.evidence.empty() || finding.evidence[0].empty()) std::abort();
  return 0;
}
