// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/judge/health.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <tuple>

#include "tools/monitor/show/format.h"

namespace tracefire::monitor {
namespace {

using health::Cause;

constexpr double kRounding = 1e-6;
constexpr uint64_t kPowerCapBit = 0x4;

bool computes(const GpuProcess& process) { return process.kind != ProcessKind::kGraphics; }

std::string process_words(const GpuProcess& process) {
  const std::string name = process.host.name.empty() ? "process" : process.host.name;
  return name + " (" + std::to_string(process.pid) + ")";
}

double work_of(const GpuProcess& process) {
  return process.host.cores.value + process.host.children_cores.or_else(0);
}

/// The process whose host code is busiest, its children's with it; null where no host could be
/// read.
const GpuProcess* busiest_on_host(const Gpu& gpu) {
  const GpuProcess* best = nullptr;
  for (const GpuProcess& process : gpu.processes) {
    if (!computes(process) || !process.host.cores.ok()) continue;
    if (best == nullptr || work_of(process) > work_of(*best)) best = &process;
  }
  return best;
}

Cause host_cause(const HostProcess& host, health::Grade grade) {
  const double cores = host.cores.value;
  const double children = host.children_cores.or_else(0);
  // Many threads, or children, at work while the GPU has nothing to do: they prepare its input.
  if (children >= health::kWorkerCores || cores >= health::kLoaderCores) return Cause::kInputBound;
  if (cores >= health::kHostCoreBusy) return Cause::kHostBound;
  // A process that computes on the GPU now and then, and not on the host, waits for what it reads.
  return cores + children < health::kHostIdleCores && grade == health::Grade::kIdle
             ? Cause::kHostIdle
             : Cause::kInputBound;
}

void add_host_cause(const Gpu& gpu, Health* result) {
  const double pcie = gpu[Metric::kPcieTx].or_else(0) + gpu[Metric::kPcieRx].or_else(0);
  if (pcie >= health::kCopyBytesPerSecond) result->causes.push_back(Cause::kCopies);
  const GpuProcess* process = busiest_on_host(gpu);
  if (process == nullptr) return;
  result->causes.push_back(host_cause(process->host, *result->grade));
  if (result->causes.front() == result->causes.back()) result->culprit = process_words(*process);
}

}  // namespace

bool is_shared(const Gpu& gpu) {
  // Workers of one program are one job.
  std::set<std::tuple<std::string, std::string, std::string>> jobs;
  for (const GpuProcess& process : gpu.processes) {
    if (!computes(process) || process.gpu_instance >= 0) continue;
    const std::string program = process.host.gone ? std::to_string(process.pid) : process.host.name;
    jobs.insert({program, process.host.user, process.host.container});
  }
  return jobs.size() > 1;
}

bool migrates(const Gpu& gpu) {
  const Reading& total = gpu[Metric::kMemoryTotal];
  const Reading& used = gpu[Metric::kMemoryUsed];
  const Reading& tx = gpu[Metric::kPcieTx];
  const Reading& rx = gpu[Metric::kPcieRx];
  return total.ok() && used.ok() && tx.ok() && rx.ok() && total.value > 0 &&
         used.value >= health::kMemoryFull * total.value &&
         tx.value + rx.value >= health::kMigrationBytesPerSecond;
}

const GpuProcess* paging_process(const Gpu& gpu) {
  for (const GpuProcess& process : gpu.processes) {
    if (process.host.major_faults.or_else(0) >= health::kPagingFaultsPerSecond) return &process;
  }
  return nullptr;
}

Health judge(const Gpu& gpu, const std::vector<Point>& points) {
  Health result;
  double sum = 0;
  int count = 0;
  double sm = 0, sm_busy = 0;  // sums over the looks that tell both
  const int64_t newest = points.empty() ? 0 : points.back().steady_us;
  for (auto it = points.rbegin(); it != points.rend(); ++it) {
    const double age = static_cast<double>(newest - it->steady_us) * 1e-6;
    if (age > health::kBusyLowSeconds) break;
    if (std::isnan(it->busy)) continue;
    sum += it->busy;
    ++count;
    if (!std::isnan(it->sm)) {
      sm += it->sm;
      sm_busy += it->busy;
    }
    result.window_seconds = age;
  }
  for (auto it = points.rbegin(); it != points.rend() && !std::isnan(it->busy); ++it) {
    if (it->busy >= health::kBusyLow) break;
    result.low_seconds = static_cast<double>(newest - it->steady_us) * 1e-6;
  }
  if (count == 0 && gpu[Metric::kBusy].ok()) {
    sum = gpu[Metric::kBusy].value;
    count = 1;
    if (gpu[Metric::kSmActivity].ok()) {
      sm = gpu[Metric::kSmActivity].value;
      sm_busy = sum;
    }
  }
  if (count > 0) {
    result.busy = sum / count;
    // NVML tells whole percents: 70 % is healthy, whatever became of it on the way.
    result.grade = health::grade_of(result.busy + kRounding);
  }
  const bool job = std::any_of(gpu.processes.begin(), gpu.processes.end(), computes);
  if (migrates(gpu)) result.causes.push_back(Cause::kUnifiedMemory);
  if (const GpuProcess* process = paging_process(gpu)) {
    if (result.causes.empty()) result.culprit = process_words(*process);
    result.causes.push_back(Cause::kHostPaging);
  }
  const bool low = result.grade &&
                   (*result.grade == health::Grade::kLow || *result.grade == health::Grade::kIdle);
  if (low && !job) {
    // A list that could not be read does not mean that nobody is there.
    result.causes.push_back(gpu.process_code == Reading::kOk ? Cause::kNoJob : Cause::kUnknown);
  } else if (low) {
    add_host_cause(gpu, &result);
    if (result.causes.empty()) result.causes.push_back(Cause::kUnknown);
  }
  // Slow clocks and a neighbour make a GPU slow, not idle: they stand behind what makes it wait.
  if (gpu.throttle_code == Reading::kOk) {
    if ((gpu.throttle & throttle_fault_bits()) != 0) result.causes.push_back(Cause::kThrottled);
    if ((gpu.throttle & kPowerCapBit) != 0) result.causes.push_back(Cause::kPowerLimited);
  }
  if (is_shared(gpu)) result.causes.push_back(Cause::kOtherProcess);
  // Of the time in which kernels ran: one look alone may fall behind the end of a program.
  if (result.grade && !low && sm < health::kSmallWorkActivity * sm_busy) {
    result.causes.push_back(Cause::kSmallWork);
  }
  return result;
}

const char* grade_name(const Health& health) {
  return health.grade ? health::kGradeNames[static_cast<int>(*health.grade)] : "unknown";
}

namespace {

bool result_is_low(const Health& health) {
  return health.grade &&
         (*health.grade == health::Grade::kLow || *health.grade == health::Grade::kIdle);
}

}  // namespace

std::string health_words(const Health& health) {
  std::string words;
  if (health.grade) {
    char text[64];
    std::snprintf(text, sizeof text, "%.0f %% busy over %.0f s", health.busy * 100,
                  std::max(1.0, health.window_seconds));
    words = text;
    if (result_is_low(health) && health.low_seconds >= 2 * health::kBusyLowSeconds) {
      std::snprintf(text, sizeof text, ", low for %s", span_text(health.low_seconds).c_str());
      words += text;
    }
  } else {
    words = "busy share not readable";
  }
  if (!health.causes.empty()) {
    words += !health.grade || result_is_low(health) ? "; likely cause: " : "; ";
    words += health::kCauses[static_cast<int>(health.causes.front())].text;
    if (!health.culprit.empty()) words += ": " + health.culprit;
  }
  return words;
}

}  // namespace tracefire::monitor
