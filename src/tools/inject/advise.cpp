// SPDX-License-Identifier: Apache-2.0
// What to do next. Every finding carries the figures that led to it.
#include <algorithm>
#include <cstdio>

#include "tools/inject/analyse.h"

namespace tracefire::inject {
namespace {

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[512];
  std::snprintf(text, sizeof(text), format, values...);
  return text;
}

std::string scaled(double bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return formatted("%.3g %s", bytes, kUnits[unit]);
}

std::string duration(double microseconds) {
  if (microseconds >= 1e6) return formatted("%.2f s", microseconds / 1e6);
  if (microseconds >= 1e3) return formatted("%.3g ms", microseconds / 1e3);
  return formatted("%.3g us", microseconds);
}

const ClassFigure* find_class(const Report& r, KernelClass work) {
  for (const ClassFigure& c : r.classes) {
    if (c.work == work) return &c;
  }
  return nullptr;
}

/// What a failed program shows is only how far it came.
void failure(const Report& r, std::vector<Advice>& list) {
  const Ending& e = r.session->ending;
  if (e.status == 0) return;
  Advice a{formatted("the program failed with status %d: the figures cover what it did until then",
                     e.status),
           {"Look at its own message first"}};
  if (e.signal == 9) {
    a.actions = {
        formatted("Signal 9 ended it, at a peak of %.1f GiB of one process: where nobody "
                  "sent it, the kernel did for lack of memory (dmesg, or memory.max of the "
                  "container)",
                  static_cast<double>(e.resident_peak) / (1 << 30))};
  }
  list.push_back(std::move(a));
}

void placement(const Report& r, std::vector<Advice>& list) {
  const Session& s = *r.session;
  if (r.place != Place::kOnCpu && r.place != Place::kPartlyOnGpu) return;
  if (!s.gpu_problem.empty()) {
    list.push_back({"no GPU can be used on this machine: " + s.gpu_problem,
                    {"Run `tracefire doctor`: it finds the cause and says how to fix it"}});
    return;
  }
  if (r.place == Place::kOnCpu) {
    const double cpu = static_cast<double>(s.ending.user_ns + s.ending.system_ns) / 1e9;
    Advice a{formatted("the program computed on the CPU (%.1f s of CPU time, %.3f s of kernels) "
                       "although %zu GPU%s there",
                       cpu, static_cast<double>(r.kernel_ns) / 1e9, s.gpus.size(),
                       s.gpus.size() == 1 ? " is" : "s are"),
             {"Put model and data on the GPU: model.to('cuda') in PyTorch; in JAX leave "
              "JAX_PLATFORMS unset and install jax[cuda13]; in TensorFlow see "
              "tf.config.list_physical_devices('GPU')",
              "Run `tracefire doctor`: a framework without GPU support, or a driver that does not "
              "fit, also ends like this"}};
    for (const char* name : {"CUDA_VISIBLE_DEVICES", "JAX_PLATFORMS", "JAX_PLATFORM_NAME"}) {
      const auto found = s.environment.find(name);
      if (found == s.environment.end()) continue;
      a.actions.insert(a.actions.begin(),
                       "Look at " + found->first + "='" + found->second + "' in the environment");
    }
    list.push_back(std::move(a));
  }
}

void causes(const Report& r, std::vector<Advice>& list) {
  // Of a healthy GPU only what costs much is worth a change.
  const bool healthy = r.grade == health::Grade::kHealthy;
  const double least = healthy ? table::kAdvisedHealthyShare : table::kAdvisedShare;
  for (const CauseFigure& c : r.causes) {
    const table::CauseRow& row = table::kCauses[static_cast<size_t>(c.cause)];
    if (c.share < least || row.advice[0] == nullptr) continue;
    Advice a;
    a.finding =
        formatted("%.0f %% of the steady time: %s; %s", 100 * c.share, row.text, row.explain);
    if (c.gaps > 0) {
      a.finding +=
          formatted(" (%llu such gaps in the windows, %s on average)",
                    static_cast<unsigned long long>(c.gaps), duration(c.mean_gap_us).c_str());
    }
    for (const char* const* text = row.advice; *text != nullptr; ++text) a.actions.push_back(*text);
    list.push_back(std::move(a));
  }
}

void copies(const Report& r, std::vector<Advice>& list) {
  double all = 0;
  double pageable = 0;
  double pageable_ns = 0;
  for (const CopyFigure& c : r.copies) {
    if (c.kind != 1 && c.kind != 2) continue;
    all += static_cast<double>(c.bytes);
    if (c.pageable) {
      pageable += static_cast<double>(c.bytes);
      pageable_ns += static_cast<double>(c.total);
    }
  }
  double share = 0;
  for (const CauseFigure& c : r.causes) {
    if (c.cause == Cause::kCopy || c.cause == Cause::kInput) share += c.share;
  }
  if (all <= 0 || pageable < table::kPageableShare * all || share < table::kAdvisedShare) return;
  list.push_back(
      {scaled(pageable) + " of " + scaled(all) +
           " between host and GPU came from or went to pageable memory" +
           (pageable_ns > 0 ? formatted(", at %.3g GB/s", pageable / pageable_ns) : ""),
       {"Use pinned memory (pin_memory=True in PyTorch's DataLoader, tensor.pin_memory()) "
        "with non_blocking copies"}});
}

/// Faster kernels help only where kernels take the time.
bool kernels_matter(const Report& r) { return r.has_steady && r.busy_share >= health::kBusyLow; }

void precision(const Report& r, std::vector<Advice>& list) {
  if (!kernels_matter(r)) return;
  double products = 0;
  double on = 0;
  double off = 0;
  for (const KernelClass work :
       {KernelClass::kMatmul, KernelClass::kConvolution, KernelClass::kAttention}) {
    if (const ClassFigure* c = find_class(r, work)) {
      products += static_cast<double>(c->total);
      on += static_cast<double>(c->on_tensor_cores);
      off += static_cast<double>(c->not_on_tensor_cores);
    }
  }
  const auto all = static_cast<double>(r.kernel_ns);
  if (all <= 0 || products < table::kProductShare * all || off <= 0 ||
      on >= table::kTensorCoreShare * products) {
    return;
  }
  list.push_back(
      {formatted("%.0f %% of the kernel time is products, convolutions and attention; %.0f %% of "
                 "it surely without tensor cores, %.0f %% surely with them",
                 100 * products / all, 100 * off / products, 100 * on / products),
       {"Use mixed precision (bfloat16): torch.autocast, keras.mixed_precision.set_global_policy, "
        "bfloat16 parameters in JAX",
        "Or allow TF32 for float32: torch.backends.cuda.matmul.allow_tf32 = True, "
        "jax_default_matmul_precision = 'tensorfloat32'"}});
}

void shapes(const Report& r, std::vector<Advice>& list) {
  if (r.kernel_count == 0) return;
  const double mean_us =
      static_cast<double>(r.kernel_ns) / static_cast<double>(r.kernel_count) / 1000;
  double launch = 0;
  for (const CauseFigure& c : r.causes) {
    if (c.cause == Cause::kLaunch || c.cause == Cause::kSynchronisation) launch += c.share;
  }
  if (mean_us < table::kTinyKernelUs && launch >= table::kAdvisedShare) {
    double blocks = 0;
    for (const KernelFigure& k : r.kernels) blocks += k.blocks * static_cast<double>(k.count);
    list.push_back(
        {formatted("kernels are tiny: %llu of them, %.2g us on average, %.3g blocks each",
                   static_cast<unsigned long long>(r.kernel_count), mean_us,
                   blocks / static_cast<double>(r.kernel_count)),
         {"Make the batch larger: a kernel of a few blocks leaves most of the GPU empty"}});
  }
  double small = 0;
  for (const KernelClass work :
       {KernelClass::kElementwise, KernelClass::kMovement, KernelClass::kOptimizer}) {
    if (const ClassFigure* c = find_class(r, work)) small += c->share;
  }
  if (small >= table::kElementwiseShare && kernels_matter(r)) {
    list.push_back({formatted("%.0f %% of the kernel time is element-wise work, moving data inside "
                              "the device and optimizer updates",
                              100 * small),
                    {"Compile the step (XLA: jit_compile=True; torch.compile): such kernels are "
                     "fused into one"}});
  }
}

void clocks(const Report& r, std::vector<Advice>& list) {
  for (const std::string& text : r.throttling) {
    list.push_back({"clocks were held down by " + text,
                    {"See cooling, power limit (nvidia-smi -q -d POWER,PERFORMANCE) and who else "
                     "uses the machine"}});
  }
}

}  // namespace

std::vector<Advice> advise(const Report& report) {
  std::vector<Advice> list;
  failure(report, list);
  advise_unseen(report, list);
  placement(report, list);
  if (report.place == Place::kOnCpu) {
    advise_machine(report, list);
    return list;
  }
  causes(report, list);
  copies(report, list);
  precision(report, list);
  shapes(report, list);
  clocks(report, list);
  advise_machine(report, list);
  return list;
}

}  // namespace tracefire::inject
