// SPDX-License-Identifier: Apache-2.0
//
// A 5000x5000 product in each framework, run by the environment's own Python.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tools/doctor/live/child.h"
#include "tools/doctor/live/trial.h"
#include "tools/doctor/text.h"
#include "tools/text/redact.h"

namespace tracefire::doctor {

namespace {

constexpr int kFrameworkSeconds = 120;
constexpr size_t kMaxFrameworks = 4;

// Each prints one JSON object in its last line.
constexpr const char* kCommon =
    "import json,time\n"
    "def say(device,seconds):\n"
    "  print(json.dumps({'device':str(device),'tflops':2*5000**3/seconds/1e12}))\n";
constexpr const char* kTensorflow =
    "import tensorflow as tf\n"
    "gpus=tf.config.list_physical_devices('GPU')\n"
    "with tf.device('/GPU:0' if gpus else '/CPU:0'):\n"
    "  a=tf.random.uniform((5000,5000));b=tf.random.uniform((5000,5000))\n"
    "  float(tf.matmul(a,b)[0,0])\n"
    "  t=time.perf_counter();c=tf.matmul(a,b);float(c[0,0]);say(c.device,time.perf_counter()-t)\n";
constexpr const char* kTorch =
    "import torch\n"
    "d='cuda:0' if torch.cuda.is_available() else 'cpu'\n"
    "a=torch.rand(5000,5000,device=d);b=torch.rand(5000,5000,device=d)\n"
    "(a@b)[0,0].item()\n"
    "t=time.perf_counter();c=a@b;c[0,0].item();say(c.device,time.perf_counter()-t)\n";
constexpr const char* kJax =
    "import jax,jax.numpy as jnp\n"
    "a=jnp.ones((5000,5000));b=jnp.ones((5000,5000))\n"
    "(a@b).block_until_ready()\n"
    "t=time.perf_counter();c=(a@b).block_until_ready();say(c.devices() if "
    "callable(getattr(c,'devices',None)) else c.device,time.perf_counter()-t)\n";

const char* program_of(const std::string& id) {
  return id == "tensorflow" ? kTensorflow : id == "torch" ? kTorch : id == "jax" ? kJax : nullptr;
}

/// Only what decides about devices and libraries goes on to the child.
std::vector<std::string> variables(const Machine& m) {
  std::vector<std::string> out = {"HOME=" + m.variable("HOME"),
                                  "PATH=/usr/bin:/bin",
                                  "PYTHONDONTWRITEBYTECODE=1",
                                  "PYTHONNOUSERSITE=1",
                                  "TF_CPP_MIN_LOG_LEVEL=2",
                                  "TF_FORCE_GPU_ALLOW_GROWTH=true",
                                  "XLA_PYTHON_CLIENT_PREALLOCATE=false",
                                  "CUDA_CACHE_DISABLE=1"};
  for (const char* name : {"LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "JAX_PLATFORMS",
                           "JAX_PLATFORM_NAME", "XLA_FLAGS", "CUDA_HOME", "TF_USE_LEGACY_KERAS"})
    if (auto it = m.env.find(name); it != m.env.end())
      out.push_back(std::string(name) + "=" + it->second);
  return out;
}

/// A failure that no rule explains; where one does, this is its consequence.
void add_finding(const Survey& survey, const Surveyed& surveyed, const Framework& fw,
                 const std::string& words, LiveResults* out) {
  Finding finding;
  finding.kind = "live-test";
  finding.severity = "error";
  finding.confidence = 0.8;
  finding.verdict = contains(words, "CPU") ? "cpu-only" : "gpu-broken";
  finding.order = 129;
  finding.environment = surveyed.env.prefix;
  finding.framework = fw.id;
  finding.evidence = {words};
  finding.fix = "Install " + fw.product + " anew in its environment: " + surveyed.env.pip() +
                " install --force-reinstall \"" + install_words(fw.id) + "\"";
  finding.drop_if = {"numpy-abi",
                     "keras-tensorflow-mismatch",
                     "cudnn-minor",
                     "cudnn-major",
                     "cudnn-clobber",
                     "ldpath-shadow",
                     "pip-cuda-libs-missing",
                     "lib-wrong-major",
                     "lib-not-on-path",
                     "cc-too-new",
                     "cc-too-old",
                     "jax-plugin-mismatch",
                     "jax-lib-outdated",
                     "jax-backend-error",
                     "libdevice-missing",
                     "driver-too-old",
                     "gpu-memory-held",
                     "compute-mode-exclusive",
                     "cuda-visible-devices",
                     "jax-cpu-platform-forced",
                     "cpu-only-wheel",
                     "cudnn-not-initialized"};
  out->findings.push_back(std::move(finding));
  (void)survey;
}

void try_one(const Survey& survey, const Surveyed& surveyed, const Framework& fw,
             LiveResults* out) {
  std::string python = surveyed.env.interpreter;
  if (python.empty() || python[0] != '/') python = "/usr/bin/" + python;
  ProductTrial trial;
  trial.framework = fw.product + " " + fw.version + " (" + surveyed.env.prefix + ")";
  const std::string name = "Product of 5000x5000 in " + trial.framework;
  auto told = [&](const std::string& problem) {
    trial.problem = printable(text::redacted(problem));
    out->lines.push_back(name + ": " + problem + ".");
    out->products.push_back(trial);
  };
  if (::access(python.c_str(), X_OK) != 0)
    return told("left out, because " + python + " is not there");
  if (::geteuid() == 0 && (!trusted_file(python) || !trusted_file(fw.site))) {
    return told("left out, because another user could have changed " + surveyed.env.prefix +
                " and the doctor runs as root");
  }
  ChildResult child = run_program({python, "-I", "-c", std::string(kCommon) + program_of(fw.id)},
                                  variables(survey.machine), kFrameworkSeconds);
  size_t at = child.output.rfind("{\"device\"");
  Json result =
      at == std::string::npos
          ? Json()
          : Json::parse(child.output.substr(at, child.output.find('\n', at) - at), nullptr, false);
  if (child.ok() && result.is_object() && result.contains("tflops") &&
      result["tflops"].is_number()) {
    char rate[32];
    std::snprintf(rate, sizeof rate, "%.2f", result["tflops"].get<double>());
    trial.flops_per_second = result["tflops"].get<double>() * 1e12;
    trial.device = printable(text_of(result, "device"), 200);
    out->products.push_back(trial);
    out->lines.push_back(name + ": " + rate + " TFLOP/s on " + text_of(result, "device") + ".");
    if (fw.build == Build::kGpu && contains_word(text_of(result, "device"), "cpu"))
      add_finding(survey, surveyed, fw, name + " ran on the CPU.", out);
    return;
  }
  std::string last;
  for (std::string_view line : lines_of(child.output))
    if (!trim(line).empty()) last = std::string(trim(line));
  std::string trouble = child.trouble(kFrameworkSeconds);
  told("failed, " + (trouble.empty() ? (last.empty() ? "its process failed" : last) : trouble));
  add_finding(survey, surveyed, fw, out->lines.back(), out);
  out->errors +=
      child.output.substr(child.output.size() - std::min<size_t>(child.output.size(), 65536)) +
      "\n";
}

}  // namespace

void try_frameworks(const Root& root, const Survey& survey, const std::string& framework,
                    LiveResults* out) {
  (void)root;
  bool any_active = false;
  for (const Surveyed& surveyed : survey.environments) any_active |= surveyed.env.active;
  size_t tried = 0;
  for (const Surveyed& surveyed : survey.environments)
    for (const Framework& fw : surveyed.frameworks) {
      if (surveyed.env.kind == "user" || program_of(fw.id) == nullptr ||
          (!framework.empty() && framework != fw.id))
        continue;
      if ((any_active && !surveyed.env.active) || tried == kMaxFrameworks) continue;
      if (!surveyed.env.stray.empty() && !surveyed.env.active) continue;
      ++tried;
      try_one(survey, surveyed, fw, out);
    }
}

}  // namespace tracefire::doctor
