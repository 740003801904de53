// SPDX-License-Identifier: Apache-2.0
//
// From kind to rule to fixture: no kind of fault without a rule that finds it, no rule without a
// tree that shows it.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>

#include "doctor/fixture.h"
#include "support/paths.h"
#include "support/skip.h"
#include "tools/doctor/data.h"

namespace tracefire::test {

namespace {

/// The kinds that were collected from public reports of GPUs that were not used.
const std::vector<std::string> kReported = {"cpu-only-wheel",
                                            "cpu-only-conda-build",
                                            "native-windows",
                                            "python-too-new",
                                            "python-too-old",
                                            "pip-cuda-libs-missing",
                                            "lib-not-on-path",
                                            "lib-wrong-major",
                                            "ldpath-shadow",
                                            "cudnn-minor",
                                            "cudnn-major",
                                            "driver-too-old",
                                            "forward-compat-804",
                                            "libcuda-duplicate",
                                            "driver-lib-mismatch",
                                            "nouveau-loaded",
                                            "nova-loaded",
                                            "secure-boot",
                                            "kernel-module-missing",
                                            "container-no-gpu",
                                            "toolkit-missing",
                                            "cgroup-devices-lost",
                                            "wsl-wrong-driver",
                                            "wsl-no-driver",
                                            "wsl-driver-old",
                                            "wsl-docker",
                                            "mig-one-instance",
                                            "mig-bad-id",
                                            "mig-no-instance",
                                            "uvm-missing",
                                            "dev-permissions",
                                            "compute-mode-exclusive",
                                            "vgpu",
                                            "fabric-manager",
                                            "xid-79",
                                            "power-supply",
                                            "ecc-uncorrectable",
                                            "gpu-memory-held",
                                            "cc-too-old",
                                            "cc-too-new",
                                            "open-modules-needed",
                                            "bios-bar",
                                            "driver-unsupported-gpu",
                                            "jax-plugin-mismatch",
                                            "jax-lib-outdated",
                                            "jax-backend-error",
                                            "two-frameworks",
                                            "libdevice-missing",
                                            "ptxas-missing",
                                            "numpy-abi",
                                            "soft-placement",
                                            "input-bound",
                                            "profiler-permission",
                                            "optimus-off",
                                            "benign-noise",
                                            "cuda-visible-devices",
                                            "tiny-workload",
                                            "aarch64-cpu-wheel",
                                            "pcie-link",
                                            "throttle",
                                            "docker-snap",
                                            "log-says-too-little",
                                            "jax-cpu-platform-forced",
                                            "cudnn-clobber",
                                            "driver-new-gpu-old-cuda",
                                            "wrong-interpreter",
                                            "rocm",
                                            "apple",
                                            "jax-windows",
                                            "cublas-corruption-warning",
                                            "nvml-header-mismatch",
                                            "cudnn-not-initialized",
                                            "persistence-off",
                                            "ptx-jit-slow-start",
                                            "log-noise-driver-hint",
                                            "nondeterminism"};

/// Of a fixture that shows a kind: its id. Faults come before notes.
std::map<std::string, std::vector<std::string>> shown() {
  std::map<std::string, std::vector<std::string>> out;
  for (const Fixture& fixture : all_fixtures())
    for (const char* list : {"finding_kinds", "notes"})
      if (fixture.expect.contains(list))
        for (const auto& kind : fixture.expect[list])
          out[kind.get<std::string>()].push_back(fixture.id);
  return out;
}

}  // namespace

namespace {

/// What a tree is like, apart from the fault: its system, its packages and what was captured there.
std::string likeness(const Fixture& fixture) {
  std::string out;
  for (const auto& [path, content] : fixture.files) {
    const bool evidence = path.rfind("/captured/", 0) == 0;
    const bool marker = path == "/.dockerenv" || path == "/run/.containerenv";
    if (path == "/etc/os-release" && content.is_string()) out += content.get<std::string>();
    if (evidence || marker || path.ends_with(".dist-info/METADATA") ||
        path.find("/conda-meta/") != path.npos)
      out += path + "\n";
  }
  for (const auto& [name, value] : fixture.env) out += name + "\n";
  return out;
}

}  // namespace

TEST_CASE("doctor: every reported kind has two trees of our own that differ") {
  std::map<std::string, std::set<std::string>> seen;
  for (const Fixture& fixture : all_fixtures()) {
    if (fixture.id.rfind("fx", 0) == 0) continue;  // of fixtures.json, not our own
    for (const char* list : {"finding_kinds", "notes"})
      if (fixture.expect.contains(list))
        for (const auto& kind : fixture.expect[list])
          seen[kind.get<std::string>()].insert(likeness(fixture));
  }
  for (const std::string& kind : kReported)
    CHECK_MESSAGE(seen[kind].size() >= 2, kind << " has fewer than two trees that differ");
}

TEST_CASE("doctor: every kind has a rule, and every rule a tree that shows it") {
  const doctor::Data data;
  std::set<std::string> ruled;
  for (const doctor::Json& rule : data.rules()) ruled.insert(doctor::text_of(rule, "kind"));
  const auto fixtures = shown();
  CHECK(kReported.size() == 76);
  for (const std::string& kind : kReported) {
    CHECK_MESSAGE(ruled.count(kind) == 1, kind << " has no rule");
    CHECK_MESSAGE(fixtures.count(kind) == 1, kind << " has no fixture");
  }
  for (const std::string& kind : ruled)
    CHECK_MESSAGE(fixtures.count(kind) == 1, kind << " has a rule and no fixture");
  for (const auto& shows : fixtures)
    CHECK_MESSAGE(ruled.count(shows.first) == 1,
                  shows.first << " of " << shows.second[0] << " has no rule");
}

TEST_CASE("doctor: the page for authors of rules names every kind and every fact") {
  std::ifstream in(source_dir() + "/docs/doctor.md");
  if (!in) return skip("the sources are not here");
  std::stringstream page;
  page << in.rdbuf();
  const auto named = [&](const std::string& name) {
    if (name.rfind("log.", 0) == 0 || name.rfind("cmd.", 0) == 0) return true;  // "log.*", "cmd.*"
    return page.str().find("`" + name + "`") != std::string::npos;
  };
  const doctor::Data data;
  std::set<std::string> facts;
  const std::function<void(const doctor::Json&, bool)> collect = [&](const doctor::Json& value,
                                                                     bool conditions) {
    if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i) collect(value[i], conditions);
    } else if (value.is_string()) {
      const std::string text = value.get<std::string>();
      if (conditions && text.find(' ') == text.npos && !text.empty() && text != "!") {
        const size_t begin = text[0] == '!' ? 1 : 0;
        facts.insert(text.substr(begin, text.find_first_of("=!<>~", begin) - begin));
      }
      for (size_t at = 0; (at = text.find('{', at)) != text.npos; ++at)
        facts.insert(text.substr(at + 1, text.find('}', at) - at - 1));
    }
  };
  for (const doctor::Json& rule : data.rules()) {
    const std::string kind = doctor::text_of(rule, "kind");
    CHECK_MESSAGE(named(kind), kind);
    for (const char* key : {"when", "evidence"}) collect(rule.value(key, doctor::Json()), true);
    for (const char* key : {"say", "fix"}) collect(rule.value(key, doctor::Json()), false);
  }
  CHECK(facts.size() > 200);
  for (const std::string& fact : facts) CHECK_MESSAGE(named(fact), fact);
}

TEST_CASE("doctor: what runs are like is told by several sources") {
  // Kinds that show while a program runs: by samples, by a proof, by the monitor.
  const auto fixtures = shown();
  for (const char* kind : {"input-bound", "tiny-workload"})
    CHECK_MESSAGE(fixtures.at(kind).size() >= 3, kind);
}

}  // namespace tracefire::test
