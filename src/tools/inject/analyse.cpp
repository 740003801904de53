// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/analyse.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "tools/inject/escape.h"

namespace tracefire::inject {
namespace {

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f %%", 100 * share);
  return text;
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

const char* memory_word(int kind) {
  switch (kind) {
    case 1:
      return "pageable";
    case 2:
      return "pinned";
    case 5:
    case 7:
      return "managed";
    default:
      return "";
  }
}

std::string way_of(const CopyRow& c) {
  const char* host = memory_word(c.kind == 1 || c.kind == 3 ? c.source : c.destination);
  std::string text;
  switch (c.kind) {
    case 1:
    case 3:
      text = "host to device";
      break;
    case 2:
    case 4:
      text = "device to host";
      break;
    case 8:
    case 5:
    case 6:
    case 7:
      return "inside a device";
    case 9:
      return "inside the host";
    case 10:
      return "device to device";
    default:
      return "other";
  }
  return *host == '\0' ? text : text + ", " + host;
}

/// Parts of the time line in which the middle of the GPU's work was done.
struct Steady {
  size_t first = 0, last = 0;
  bool found = false;
};

/// Time with a kernel. Work that is delivered late can be missing in `busy` alone.
uint64_t kernels_of(const GpuPart& p) {
  return std::min(std::max({p.busy, p.compute, p.communication}), p.compute + p.communication);
}

Steady steady_part(const std::vector<GpuPart>& parts) {
  double total = 0;
  for (const GpuPart& p : parts) total += static_cast<double>(p.busy);
  Steady s;
  if (total <= 0) return s;
  double sum = 0;
  bool begun = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    sum += static_cast<double>(parts[i].busy);
    if (!begun && sum >= table::kWarmWork * total) {
      s.first = i;
      begun = true;
    }
    if (sum >= table::kTailWork * total) {
      s.last = i;
      s.found = true;
      return s;
    }
  }
  s.last = parts.size() - 1;
  s.found = begun;
  return s;
}

std::vector<CauseFigure> sorted_causes(const std::array<double, table::kCauseCount>& shares,
                                       const GapFigures& gaps) {
  std::vector<CauseFigure> list;
  for (size_t c = 0; c < shares.size(); ++c) {
    if (shares[c] < table::kNamedShare) continue;
    CauseFigure f;
    f.cause = static_cast<Cause>(c);
    f.share = shares[c];
    f.gaps = gaps.count[c];
    f.mean_gap_us = ratio(static_cast<double>(gaps.idle[c]), static_cast<double>(f.gaps)) / 1000;
    list.push_back(f);
  }
  std::sort(list.begin(), list.end(),
            [](const CauseFigure& a, const CauseFigure& b) { return a.share > b.share; });
  return list;
}

GpuUse use_of(const ProcessRecord& r, uint32_t device, const std::vector<GpuPart>& parts) {
  GpuUse use;
  use.device = device;
  use.name = "GPU " + std::to_string(device);
  for (const DeviceRow& d : r.devices) {
    if (d.id != device) continue;
    if (!d.name.empty()) use.name = printable(d.name, 128);
    static constexpr char kHex[] = "0123456789abcdef";
    for (const char c : d.uuid) {
      use.uuid += kHex[static_cast<unsigned char>(c) >> 4];
      use.uuid += kHex[static_cast<unsigned char>(c) & 15];
    }
  }
  for (const GpuPart& p : parts) {
    use.busy += p.busy;
    use.compute += p.compute;
    use.communication += p.communication;
    use.copies += p.copies;
  }
  for (const MemoryRow& m : r.memory_rows) {
    if (m.device == device && m.kind != 1 && m.kind != 2) use.memory_peak += m.peak;
  }
  const Steady steady = steady_part(parts);
  if (!steady.found) return use;
  use.steady_first = r.first.cupti + steady.first * r.part_ns;
  use.steady_last = std::min(r.first.cupti + (steady.last + 1) * r.part_ns, r.now.cupti);
  const double span = static_cast<double>(use.steady_last) - static_cast<double>(use.steady_first);
  double kernels = 0;
  double compute = 0;
  double copies = 0;
  double cpu = 0;
  double own = 0;
  for (size_t i = steady.first; i <= steady.last; ++i) {
    kernels += static_cast<double>(kernels_of(parts[i]));
    compute += static_cast<double>(parts[i].compute);
    copies += static_cast<double>(parts[i].copies);
    if (i >= r.host_parts.size()) continue;
    const HostPart& host = r.host_parts[i];
    cpu += static_cast<double>(host.cpu);
    own += std::max(0.0, static_cast<double>(host.cpu) - static_cast<double>(host.launch) -
                             static_cast<double>(host.wait) - static_cast<double>(host.copy));
  }
  use.busy_share = std::min(1.0, ratio(kernels, span));
  use.compute_share = std::min(1.0, ratio(compute, span));
  use.copy_share = std::min(1.0, ratio(copies, span));
  use.cores_busy = ratio(cpu, span);
  use.cores_own = ratio(own, span);
  use.gaps = explain_gaps(r, device, use.steady_first, use.steady_last);
  // The parts tell exactly how long no kernel ran, the windows in which proportion why.
  const double idle = 1 - use.busy_share;
  std::array<double, table::kCauseCount> shares{};
  const auto seen = static_cast<double>(use.gaps.total_idle());
  for (size_t c = 0; c < shares.size(); ++c) {
    shares[c] = seen > 0 ? idle * static_cast<double>(use.gaps.idle[c]) / seen : 0;
  }
  if (seen <= 0) shares[static_cast<size_t>(Cause::kUnknown)] = idle;
  shares[static_cast<size_t>(Cause::kCommunication)] +=
      std::max(0.0, use.busy_share - use.compute_share);
  use.causes = sorted_causes(shares, use.gaps);
  return use;
}

std::string title_of(const ProcessRecord& r) {
  std::string text;
  if (r.rank >= 0) {
    text = "rank " + std::to_string(r.rank);
    if (r.ranks > 0) text += " of " + std::to_string(r.ranks);
    text += ", ";
  }
  return text + "pid " + std::to_string(r.pid) + " on " + printable(r.host, 64);
}

ProcessFigure figure_of(const ProcessRecord& r, int64_t session_cpu) {
  ProcessFigure f;
  f.record = &r;
  f.title = title_of(r);
  f.command = redacted(printable(r.command, 512));
  f.kernels = r.kernels;
  f.cpu_ns = std::max(r.cpu, static_cast<uint64_t>(std::max<int64_t>(session_cpu, 0)));
  for (const NameRow& n : r.names) {
    f.kernel_ns += n.total;
    if (classify_kernel(readable_kernel(n.name)).work != KernelClass::kCommunication) {
      f.compute_ns += n.total;
    }
  }
  for (const auto& [device, parts] : r.gpu_parts) {
    GpuUse use = use_of(r, device, parts);
    if (use.busy > 0 || use.memory_peak > 0) f.gpus.push_back(std::move(use));
  }
  return f;
}

/// Compute-kernel time and CPU time outside CUDA of the steady parts; of the whole run where there
/// is none.
void work_of(const ProcessFigure& f, double* gpu, double* cpu, double* fallback) {
  *gpu = *cpu = *fallback = 0;
  for (const GpuUse& use : f.gpus) {
    const auto span = static_cast<double>(use.steady_last - use.steady_first);
    *gpu += use.compute_share * span;
    *cpu = std::max(*cpu, use.cores_own * span);
    for (const CauseFigure& c : use.causes) {
      if (c.cause == Cause::kCpuFallback) *fallback = std::max(*fallback, c.share);
    }
  }
  if (*gpu <= 0) {
    *gpu = static_cast<double>(f.compute_ns);
    *cpu = static_cast<double>(f.cpu_ns);
  }
}

/// The executor's own verdict, which knows what each operation was and why it ran where it did.
/// Kernels of somebody else in the same process make a CPU verdict a partial one.
Place place_by_ops(const ProcessFigure& f) {
  const std::string& verdict = f.record->ops->verdict;
  if (verdict == "on-gpu") return Place::kOnGpu;
  const bool kernels = static_cast<double>(f.compute_ns) >= table::kLeastComputeMs * 1e6;
  return verdict == "partly-on-gpu" || kernels ? Place::kPartlyOnGpu : Place::kOnCpu;
}

void judge(ProcessFigure& f) {
  if (f.record->ops) {
    f.place = place_by_ops(f);
    return;
  }
  if (f.record->state != TraceState::kTracing) {
    f.place = Place::kUnknown;
    return;
  }
  double gpu = 0;
  double cpu = 0;
  double fallback = 0;
  work_of(f, &gpu, &cpu, &fallback);
  const double part = ratio(gpu, gpu + cpu);
  if (static_cast<double>(f.compute_ns) < table::kLeastComputeMs * 1e6 ||
      part < table::kOnCpuRatio) {
    f.place = Place::kOnCpu;
  } else if (part < table::kPartlyRatio || fallback >= table::kFallbackShare) {
    f.place = Place::kPartlyOnGpu;
  } else {
    f.place = Place::kOnGpu;
  }
}

void add_kernels(Report& report, const std::vector<ProcessRecord>& records) {
  std::map<std::string, KernelFigure> by_name;
  std::map<std::string, double> blocks;
  for (const ProcessRecord& r : records) {
    for (const NameRow& n : r.names) {
      if (n.count == 0) continue;
      const std::string name = readable_kernel(n.name);
      KernelFigure& f = by_name[name];
      f.least = f.count == 0 ? n.least : std::min(f.least, n.least);
      f.most = std::max(f.most, n.most);
      f.count += n.count;
      f.total += n.total;
      blocks[name] += static_cast<double>(n.blocks);
    }
  }
  std::vector<ClassFigure> classes(table::kClassCount);
  for (auto& [name, f] : by_name) {
    f.name = name;
    f.short_name = short_kernel(name);
    f.kind = classify_kernel(name);
    f.blocks = ratio(blocks[name], static_cast<double>(f.count));
    report.kernel_ns += f.total;
    report.kernel_count += f.count;
    ClassFigure& c = classes[static_cast<size_t>(f.kind.work)];
    c.count += f.count;
    c.total += f.total;
    if (f.kind.tensor_cores == TensorCores::kYes) c.on_tensor_cores += f.total;
    if (f.kind.tensor_cores == TensorCores::kNo) c.not_on_tensor_cores += f.total;
    report.kernels.push_back(f);
  }
  const auto all = static_cast<double>(report.kernel_ns);
  for (KernelFigure& f : report.kernels) f.share = ratio(static_cast<double>(f.total), all);
  for (size_t i = 0; i < classes.size(); ++i) {
    classes[i].work = static_cast<KernelClass>(i);
    classes[i].share = ratio(static_cast<double>(classes[i].total), all);
    if (classes[i].count > 0) report.classes.push_back(classes[i]);
  }
  const auto longer = [](const auto& a, const auto& b) { return a.total > b.total; };
  std::stable_sort(report.kernels.begin(), report.kernels.end(), longer);
  std::stable_sort(report.classes.begin(), report.classes.end(), longer);
}

void add_copies(Report& report, const std::vector<ProcessRecord>& records) {
  std::map<std::string, CopyFigure> by_way;
  for (const ProcessRecord& r : records) {
    for (const CopyRow& c : r.copy_rows) {
      CopyFigure& f = by_way[way_of(c)];
      f.kind = c.kind;
      f.pageable =
          f.pageable || ((c.kind == 1 && c.source == 1) || (c.kind == 2 && c.destination == 1));
      f.count += c.count;
      f.bytes += c.bytes;
      f.total += c.total;
    }
    for (const ApiRow& a : r.api_rows) {
      if (a.work == ApiClass::kLaunch || a.work == ApiClass::kGraphLaunch)
        report.launches += a.count;
    }
  }
  for (auto& [way, f] : by_way) {
    f.way = way;
    f.gigabytes_per_second = ratio(static_cast<double>(f.bytes), static_cast<double>(f.total));
    report.copies.push_back(f);
  }
  std::stable_sort(report.copies.begin(), report.copies.end(),
                   [](const CopyFigure& a, const CopyFigure& b) { return a.total > b.total; });
}

/// Several processes may share a GPU, and one process may use several: busy time is added up a GPU.
void add_shares(Report& report) {
  struct Shared {
    double kernels = 0, first = 0, last = 0, all_kernels = 0;
    std::array<double, table::kCauseCount> causes{};
    std::array<uint64_t, table::kCauseCount> gaps{};
    std::array<double, table::kCauseCount> mean{};
    double weight = 0;
    int processes = 0;
  };
  std::map<std::string, Shared> gpus;
  for (const ProcessFigure& p : report.processes) {
    for (const GpuUse& use : p.gpus) {
      const auto offset =
          static_cast<double>(p.record->first.real) - static_cast<double>(p.record->first.cupti);
      const auto span = static_cast<double>(use.steady_last - use.steady_first);
      if (span <= 0) continue;
      Shared& g = gpus[p.record->host + "/" + (use.uuid.empty() ? use.name : use.uuid)];
      const double first = static_cast<double>(use.steady_first) + offset;
      const double last = static_cast<double>(use.steady_last) + offset;
      g.first = g.weight == 0 ? first : std::min(g.first, first);
      g.last = std::max(g.last, last);
      g.kernels += use.busy_share * span;
      g.all_kernels += static_cast<double>(std::min(use.busy, use.compute + use.communication));
      for (const CauseFigure& c : use.causes) {
        const auto i = static_cast<size_t>(c.cause);
        g.causes[i] += c.share * span;
        g.gaps[i] += c.gaps;
        g.mean[i] = std::max(g.mean[i], c.mean_gap_us);
      }
      g.weight += span;
      ++g.processes;
    }
  }
  std::array<double, table::kCauseCount> causes{};
  std::array<uint64_t, table::kCauseCount> gaps{};
  std::array<double, table::kCauseCount> mean{};
  for (const auto& [name, g] : gpus) {
    const auto count = static_cast<double>(gpus.size());
    report.busy_share += std::min(1.0, ratio(g.kernels, g.last - g.first)) / count;
    report.whole_share +=
        std::min(1.0, ratio(g.all_kernels, static_cast<double>(report.session->wall_ns))) / count;
    for (size_t c = 0; c < causes.size(); ++c) {
      causes[c] += g.causes[c] / g.weight / count;
      gaps[c] += g.gaps[c];
      mean[c] = std::max(mean[c], g.mean[c]);
    }
  }
  for (const auto& [name, g] : gpus) {
    if (g.processes < 2) continue;
    report.notes.push_back(std::to_string(g.processes) +
                           " processes shared one GPU: their times are added up, and may overlap");
    break;
  }
  report.has_steady = !gpus.empty();
  report.grade = health::grade_of(report.busy_share);
  for (size_t c = 0; c < causes.size(); ++c) {
    if (causes[c] < table::kNamedShare) continue;
    report.causes.push_back({static_cast<Cause>(c), causes[c], gaps[c], mean[c]});
  }
  std::sort(report.causes.begin(), report.causes.end(),
            [](const CauseFigure& a, const CauseFigure& b) { return a.share > b.share; });
}

void add_samples(Report& report) {
  static constexpr struct {
    uint64_t bit;
    const char* words;
  } kThrottle[] = {{0x04, "the power limit"},
                   {0x08, "the hardware (heat or power)"},
                   {0x20, "heat (driver)"},
                   {0x40, "heat (hardware)"},
                   {0x80, "the power supply"}};
  std::array<size_t, 5> held{};
  size_t looks = 0;
  for (const Sample& s : report.session->samples) {
    for (const GpuSample& g : s.gpus) {
      report.nvml_memory_peak = std::max(report.nvml_memory_peak, g.tree_memory);
      ++looks;
      for (size_t i = 0; i < held.size(); ++i) held[i] += (g.throttle & kThrottle[i].bit) != 0;
    }
  }
  for (size_t i = 0; i < held.size(); ++i) {
    if (held[i] == 0) continue;
    report.throttling.push_back(
        std::string(kThrottle[i].words) + " in " +
        percent(ratio(static_cast<double>(held[i]), static_cast<double>(looks))) +
        " of the samples");
  }
}

/// The executor's launches beside the driver's records, which are independent of each other.
std::string words_of_comparison(const OpReport& ops) {
  const std::string all = std::to_string(ops.kernels_compared);
  if (ops.kernels_agreeing == ops.kernels_compared) {
    return "the driver recorded each of the " + all +
           " kernels that Tracefire's executor launched" +
           (ops.counted ? ", as often as the executor says or more" : "");
  }
  return "the driver recorded " + std::to_string(ops.kernels_agreeing) + " of the " + all +
         " kernels that Tracefire's executor launched as often as the executor says; fewer "
         "times: " +
         ops.fewer;
}

void add_notes(Report& report, const std::vector<ProcessRecord>& records) {
  const auto note = [&](const std::string& text) { report.notes.push_back(text); };
  for (const ProcessRecord& r : records) {
    const std::string who = title_of(r) + ": ";
    if (r.state == TraceState::kTracing) {
      uint64_t of_graph = 0;
      for (const NameRow& n : r.names) of_graph += n.of_graph;
      if (of_graph > 0) {
        note(who + (r.by_node ? "CUDA graphs were traced by node: each of their kernels is counted"
                              : "CUDA graphs were traced as a whole: their kernels are not named"));
      }
    }
    if (!r.detail.empty()) note(who + printable(r.detail, 200));
    if (r.detail.find("(35)") != std::string::npos) {  // CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
      note(
          "the driver leaves profiling to administrators: set its module option "
          "NVreg_RestrictProfilingToAdminUsers=0 (a file in /etc/modprobe.d, then reboot); in a "
          "container add --cap-add SYS_ADMIN");
    }
    for (const MemoryRow& m : r.memory_rows) {
      if (m.kind == 5 && m.peak > 0) {
        note(who + "it uses managed memory, whose page moves are not recorded");
        break;
      }
    }
  }
  for (const std::string& text : report.ops.notes) note(text);
  const OpReport& ops = report.ops;
  if (ops.kernels_compared > 0) {
    note(words_of_comparison(ops) + "; " +
         percent(ratio(ops.joined_ns, static_cast<double>(report.kernel_ns))) +
         " of the kernel time has an operation");
  }
  for (const std::string& text : report.session->notes) note(printable(text));
  if (report.evidence != Evidence::kTraced && report.session->tracing != "on") {
    note("not traced: " + printable(report.session->tracing));
  }
  if (report.evidence == Evidence::kSampled) {
    note(
        "without CUPTI's records it is not known which kernels ran, how long each took, what was "
        "copied, why the GPU waited, nor which process kept a shared GPU busy");
  }
  if (report.session->processes_left_out > 0) note("more processes ran than were looked at");
}

/// What may be said without records: NVML saw it, or nobody looked.
void judge_without_records(Report& report, const Damage& damage) {
  const Session& s = *report.session;
  if (!s.ending.start_error.empty()) {
    report.reason = "the program was not started: " + printable(s.ending.start_error);
    return;
  }
  const std::string unseen = s.tracing == "on" ? unseen_work(s) : "";
  const bool idle = std::any_of(report.processes.begin(), report.processes.end(),
                                [](const ProcessFigure& p) { return p.record->idle_tracefire; });
  if (s.tracing == "on" && report.processes.empty() && unseen.empty() && damage.empty()) {
    report.place = Place::kOnCpu;
    report.evidence = Evidence::kTraced;
    report.reason = "no process of the program started CUDA";
    return;
  }
  double sum = 0;
  int looks = 0;
  for (const Sample& sample : s.samples) {
    for (const GpuSample& g : sample.gpus) {
      if (g.tree_memory <= 0 || g.busy_percent < 0) continue;
      sum += g.busy_percent;
      ++looks;
    }
  }
  if (looks == 0) {
    report.reason = "nothing was recorded and NVML showed no process of the program on a GPU";
    if (!s.nvml_problem.empty()) report.reason = "nothing was recorded and NVML does not answer";
    if (idle) {
      report.reason = "no operation was run: the program loaded Tracefire and computed nothing";
    }
    if (!unseen.empty()) report.reason = unseen;
    if (!damage.empty() && report.processes.empty()) report.reason = "what was recorded is lost";
    return;
  }
  const double busy = sum / looks;
  report.evidence = Evidence::kSampled;
  report.place = busy >= 1 ? Place::kOnGpu : Place::kUnknown;
  char text[160];
  std::snprintf(
      text, sizeof(text),
      "NVML saw the program's processes on a GPU, which was %.0f %% busy on average in %d "
      "looks",
      busy, looks);
  report.reason = text;
}

std::string in_flop(double flops) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  int unit = 0;
  while (flops >= 1000 && unit < 6) {
    flops /= 1000;
    ++unit;
  }
  char text[48];
  std::snprintf(text, sizeof(text), "%.3g %sFLOP", flops, kUnits[unit]);
  return text;
}

/// What Tracefire's own records say of all processes; empty where there are none.
std::string words_of_ops(const Report& report) {
  const OpReport& ops = report.ops;
  if (!ops.found) return "";
  const double all = ops.gpu_flops + ops.cpu_flops + ops.cpu_by_choice_flops;
  std::string text = "Tracefire's executor did " + in_flop(ops.gpu_flops) + " on GPUs and " +
                     in_flop(ops.cpu_flops + ops.cpu_by_choice_flops) + " on the CPU";
  return all > 0 ? text + " (" + percent(ratio(ops.gpu_flops, all)) + " on GPUs)" : text;
}

void judge_all(Report& report, const Damage& damage) {
  bool traced = false;
  bool recorded = false;
  double gpu = 0;
  double cpu = 0;
  Place best = Place::kUnknown;
  for (ProcessFigure& p : report.processes) {
    judge(p);
    if (p.record->ops) recorded = true;
    if (p.place != Place::kUnknown && (best == Place::kUnknown || p.place < best)) best = p.place;
    if (p.record->state != TraceState::kTracing) continue;
    traced = true;
    double g = 0;
    double c = 0;
    double fallback = 0;
    work_of(p, &g, &c, &fallback);
    gpu += g;
    cpu += c;
  }
  if (!traced && !recorded) return judge_without_records(report, damage);
  report.evidence =
      traced || report.session->tracing == "on" ? Evidence::kTraced : Evidence::kRecorded;
  for (const ProcessFigure& p : report.processes) {
    if (p.record->state != TraceState::kTracing && p.record->state != TraceState::kNoCuda) {
      report.evidence = traced ? Evidence::kTraced : Evidence::kRecorded;
    }
  }
  report.place = best;
  if (!traced) {
    report.reason = words_of_ops(report) + "; no process started CUDA";
    if (report.evidence == Evidence::kRecorded) {
      report.reason = words_of_ops(report) + "; CUPTI recorded nothing";
    }
    return;
  }
  char text[256];
  std::snprintf(text, sizeof(text),
                "%llu kernels took %.3f s on the GPU; beside %.3f s of them in the steady part the "
                "processes used %.3f s of CPU time outside CUDA",
                static_cast<unsigned long long>(report.kernel_count),
                static_cast<double>(report.kernel_ns) / 1e9, gpu / 1e9, cpu / 1e9);
  report.reason = text;
  if (report.kernel_count == 0) report.reason = "CUDA was started, but no kernel ran";
  if (report.ops.found) report.reason = words_of_ops(report) + "; " + report.reason;
}

}  // namespace

const char* place_name(Place place) {
  static constexpr const char* kNames[] = {"on-gpu", "partly-on-gpu", "on-cpu", "unknown"};
  return kNames[static_cast<size_t>(place)];
}

Report analyse(const Session& session, const std::vector<ProcessRecord>& records,
               const Damage& damage) {
  Report report;
  report.session = &session;
  for (const ProcessRecord& r : records) {
    int64_t cpu = 0;
    std::string command;
    for (const ProcessSeen& p : session.processes) {
      // Hosts may share the folder.
      if (p.pid == static_cast<pid_t>(r.pid) && (r.host == session.host || session.host.empty())) {
        cpu = p.cpu_ns;
        command = p.command;
      }
    }
    report.processes.push_back(figure_of(r, cpu));
    if (r.command.empty()) {
      report.processes.back().command = redacted(printable(command, 512));
    }
  }
  std::stable_sort(report.processes.begin(), report.processes.end(),
                   [](const ProcessFigure& a, const ProcessFigure& b) {
                     return static_cast<uint64_t>(a.record->rank) <
                            static_cast<uint64_t>(b.record->rank);  // without a rank: last
                   });
  add_kernels(report, records);
  add_copies(report, records);
  report.ops = join_ops(records);
  add_shares(report);
  add_samples(report);
  judge_all(report, damage);
  for (const ProcessFigure& p : report.processes) {
    for (const GpuUse& use : p.gpus)
      report.memory_peak = std::max(report.memory_peak, use.memory_peak);
  }
  weigh_evidence(report, records, damage);
  add_notes(report, records);
  report.advice = advise(report);
  return report;
}

}  // namespace tracefire::inject
