// SPDX-License-Identifier: Apache-2.0
// What else held the program up on its machine: memory that was swapped, other processes on its
// GPUs.
#include <algorithm>
#include <cstdio>

#include "tools/inject/analyse.h"
#include "tools/inject/escape.h"

namespace tracefire::inject {
namespace {

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[512];
  std::snprintf(text, sizeof(text), format, values...);
  return text;
}

double gibibytes(double bytes) { return bytes / (1 << 30); }

/// Managed memory of a process that the GPU's memory cannot hold.
void unified_memory(const Report& r, std::vector<Advice>& list) {
  for (const ProcessFigure& p : r.processes) {
    for (const MemoryRow& m : p.record->memory_rows) {
      if (m.kind != 5 || m.peak == 0) continue;  // 5: managed
      double memory = 0;
      for (const DeviceRow& d : p.record->devices) {
        if (d.id == m.device) memory = static_cast<double>(d.memory);
      }
      const auto peak = static_cast<double>(m.peak);
      if (memory <= 0 || peak < health::kMemoryFull * memory) continue;
      list.push_back(
          {"memory swapping by unified-memory migration: " + p.title +
               formatted(
                   " held %.1f GiB of managed memory on a GPU of %.1f GiB, so pages move over "
                   "PCIe while kernels wait",
                   gibibytes(peak), gibibytes(memory)),
           {"Make batches smaller, or the model (mixed precision, rematerialisation)",
            "Leave TF_FORCE_UNIFIED_MEMORY and managed allocators off: an error that names the "
            "allocation is easier to mend than a slow step"}});
    }
  }
}

void host_paging(const Report& r, std::vector<Advice>& list) {
  const Session& s = *r.session;
  int64_t faults = 0;
  int64_t swapped = 0;
  for (const ProcessSeen& p : s.processes) {
    faults += p.faults;
    swapped = std::max(swapped, p.swapped_peak);
  }
  const double seconds = static_cast<double>(s.wall_ns) / 1e9;
  // Files that are mapped are read by page faults too: only with swap is memory short.
  if (seconds <= 0 || swapped + s.paging.swapped_in <= 0 ||
      static_cast<double>(faults) < health::kPagingFaultsPerSecond * seconds) {
    return;
  }
  list.push_back(
      {formatted(
           "memory swapping by the host: %lld page faults of the program read from disk "
           "(%.0f a second); up to %.2f GiB of a process was swapped out, and the machine read "
           "%.2f GiB back from swap",
           static_cast<long long>(faults), static_cast<double>(faults) / seconds,
           gibibytes(static_cast<double>(swapped)),
           gibibytes(static_cast<double>(s.paging.swapped_in))),
       {"Give the program more memory, or let it hold less: fewer DataLoader workers, a smaller "
        "shuffle buffer, memory-mapped data"}});
}

void other_processes(const Report& r, std::vector<Advice>& list) {
  const Session& s = *r.session;
  if (s.others.empty() || r.kernel_count + static_cast<uint64_t>(r.nvml_memory_peak > 0) == 0) {
    return;
  }
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(s.others.size(), 4); ++i) {
    const OtherSeen& o = s.others[i];
    names += (names.empty() ? "" : ", ") +
             (o.name.empty() ? "a process that is not visible here" : printable(o.name, 32)) +
             formatted(" (pid %d, GPU %d", static_cast<int>(o.pid), o.gpu);
    names += o.memory_peak < 0
                 ? ")"
                 : formatted(", %.2f GiB)", gibibytes(static_cast<double>(o.memory_peak)));
  }
  if (s.others.size() > 4) names += formatted(" and %zu more", s.others.size() - 4);
  list.push_back({"other processes were on the GPUs of this machine: " + names,
                  {"Where they are on the same GPU they take its time and memory: end them, or "
                   "choose another GPU with CUDA_VISIBLE_DEVICES"}});
}

}  // namespace

void advise_unseen(const Report& report, std::vector<Advice>& list) {
  const Session& s = *report.session;
  if (report.place != Place::kUnknown || s.tracing != "on" || s.elsewhere) return;
  const std::string unseen = unseen_work(s);
  if (unseen.empty()) return;
  list.push_back(
      {unseen,
       {"Leave its environment as it is: env without -i, `sudo -E`, in Python "
        "env={**os.environ, ...}",
        "Or set the variables there: `tracefire prove --print-env --out DIRECTORY` prints "
        "them; `tracefire prove --from DIRECTORY` then reports",
        "Where it becomes another user: run the whole as that user"}});
}

void advise_machine(const Report& report, std::vector<Advice>& list) {
  unified_memory(report, list);
  host_paging(report, list);
  other_processes(report, list);
}

std::string unseen_work(const Session& s) {
  if (s.elsewhere) {
    return "the program ran in a container, on another host or as another user, and left no "
           "records";
  }
  int64_t cpu = 0;
  int64_t untold = 0;
  int count = 0;
  bool driver = false;
  const ProcessSeen* first = nullptr;  // the one that did most
  for (const ProcessSeen& p : s.processes) {
    cpu += p.cpu_ns;
    if (p.on_gpu)
      return "NVML names process " + std::to_string(p.pid) +
             " of the program on a GPU, but it left no records";
    if (p.told) continue;
    untold += p.cpu_ns;
    ++count;
    if (first == nullptr || p.cpu_ns > first->cpu_ns) first = &p;
    driver |= p.driver_loaded;
  }
  if (count == 0 || (!driver && untold * 10 <= cpu)) return "";
  return std::to_string(count) + (count == 1 ? " process" : " processes") +
         " could leave no records (a cleared environment, another user, more rights), " +
         (count == 1 ? "" : "most of all ") + printable(first->name, 64) + " (pid " +
         std::to_string(first->pid) + "): nothing is known of the work done there";
}

}  // namespace tracefire::inject
