// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/sample.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tracefire::inject {
namespace {

constexpr int64_t kSampleNs =
    240'000'000;  // looks at the GPUs are at least so far apart in the end
constexpr int kLooksToDetails = 40;

int64_t monotonic() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

/// At most `limit` bytes of a file of /proc; empty where it cannot be read.
std::string small_file(const std::string& path, size_t limit = 4096) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  std::string text(limit, '\0');
  size_t size = 0;
  while (size < limit) {
    const ssize_t n = read(file, text.data() + size, limit - size);
    if (n <= 0) break;
    size += static_cast<size_t>(n);
  }
  close(file);
  text.resize(size);
  return text;
}

/// The fields of /proc/PID/stat after the name, which may hold blanks and brackets.
std::vector<std::string> stat_fields(const std::string& text) {
  std::vector<std::string> fields;
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return fields;
  size_t at = name_end + 1;
  while (at < text.size()) {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n')) ++at;
    size_t end = at;
    while (end < text.size() && text[end] != ' ' && text[end] != '\n') ++end;
    if (end > at) fields.push_back(text.substr(at, end - at));
    at = end;
  }
  return fields;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  const std::string folder = "/proc/" + std::to_string(pid) + "/task";
  DIR* tasks = opendir(folder.c_str());
  if (tasks == nullptr) return children;
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    const std::string text = small_file(folder + "/" + entry->d_name + "/children", 65536);
    for (const char* at = text.c_str(); *at != '\0';) {
      char* end = nullptr;
      const long child = strtol(at, &end, 10);
      if (end == at) break;
      if (child > 0) children.push_back(static_cast<pid_t>(child));
      at = end;
      while (*at == ' ') ++at;
    }
  }
  closedir(tasks);
  return children;
}

bool maps_driver(pid_t pid) {
  return small_file("/proc/" + std::to_string(pid) + "/maps", size_t{1} << 20).find("libcuda.so") !=
         std::string::npos;
}

/// A figure of a file of lines "name value"; 0 where it is not there.
int64_t figure_of(const std::string& text, const std::string& name) {
  const size_t at = text.rfind(name, 0) == 0 ? 0 : text.find("\n" + name);
  if (at == std::string::npos) return 0;
  return std::strtoll(text.c_str() + text.find(name, at) + name.size(), nullptr, 10);
}

/// Whether the process has the variables of the tracing. What cannot be read is another user's, or
/// has more rights than ours.
bool has_variables(pid_t pid) {
  const std::string text = small_file("/proc/" + std::to_string(pid) + "/environ", size_t{1} << 20);
  return text.rfind("TRACEFIRE_PROVE_DIR=", 0) == 0 ||
         text.find(std::string_view("\0TRACEFIRE_PROVE_DIR=", 21)) != std::string::npos;
}

/// Whether a process may write into the folder of the records, which is this user's alone. `status`
/// is its /proc/PID/status.
bool may_record(const std::string& status) {
  const size_t users = status.find("\nUid:");  // real, effective, saved, of files
  if (users == std::string::npos) return false;
  char* end = nullptr;
  std::strtoll(status.c_str() + users + 5, &end, 10);
  const long long user = std::strtoll(end, nullptr, 10);
  return user == 0 || user == static_cast<long long>(geteuid());
}

Paging read_paging() {
  static const int64_t kPage = sysconf(_SC_PAGESIZE);
  const std::string text = small_file("/proc/vmstat", 65536);
  return {figure_of(text, "pswpin ") * kPage, figure_of(text, "pswpout ") * kPage};
}

std::string name_of(pid_t pid) {
  std::string name = small_file("/proc/" + std::to_string(pid) + "/comm", 64);
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

}  // namespace

char process_state(pid_t pid) {
  const std::vector<std::string> fields =
      stat_fields(small_file("/proc/" + std::to_string(pid) + "/stat"));
  return fields.empty() ? 0 : fields[0][0];
}

Sampler::Sampler(nvidia::Stack& stack)
    : stack_(stack), paging_at_start_(read_paging()), begun_ns_(monotonic()) {}

Paging Sampler::paging() const {
  const Paging now = read_paging();
  return {std::max<int64_t>(now.swapped_in - paging_at_start_.swapped_in, 0),
          std::max<int64_t>(now.swapped_out - paging_at_start_.swapped_out, 0)};
}

void Sampler::look_at_others(unsigned gpu, pid_t pid, int64_t memory) {
  for (OtherSeen& other : others_) {
    if (other.pid != pid || other.gpu != static_cast<int>(gpu)) continue;
    other.memory_peak = std::max(other.memory_peak, memory);
    return;
  }
  if (others_.size() == kMostOthers) return;
  others_.push_back({pid, static_cast<int>(gpu), name_of(pid), memory});
}

void Sampler::open_nvml() {
  nvml_tried_ = true;
  const Result<const nvidia::NvmlApi*> api = stack_.nvml();
  if (!api.ok()) {
    nvml_problem_ = api.status().message();
    return;
  }
  char text[256] = "";
  if ((*api)->nvmlSystemGetDriverVersion(text, sizeof(text)) == nvidia::kNvmlSuccess) {
    driver_version_ = text;
  }
  unsigned count = 0;
  if (const int code = (*api)->nvmlDeviceGetCount_v2(&count); code != nvidia::kNvmlSuccess) {
    nvml_problem_ = "NVML counts no devices: " + (*api)->describe(code);
    return;
  }
  nvml_ = *api;
  for (unsigned i = 0; i < std::min(count, 16u); ++i) {
    nvidia::NvmlDevice device = nullptr;
    if (nvml_->nvmlDeviceGetHandleByIndex_v2(i, &device) != nvidia::kNvmlSuccess) continue;
    GpuSeen seen;
    if (nvml_->nvmlDeviceGetName(device, text, sizeof(text)) == nvidia::kNvmlSuccess) {
      seen.name = text;
    }
    if (nvml_->nvmlDeviceGetUUID(device, text, sizeof(text)) == nvidia::kNvmlSuccess) {
      seen.uuid = text;
    }
    nvidia::NvmlMemory memory{};
    if (nvml_->nvmlDeviceGetMemoryInfo(device, &memory) == nvidia::kNvmlSuccess) {
      seen.memory = static_cast<int64_t>(memory.total);
    }
    unsigned mhz = 0;
    if (nvml_->nvmlDeviceGetMaxClockInfo != nullptr &&
        nvml_->nvmlDeviceGetMaxClockInfo(device, nvidia::kNvmlClockSm, &mhz) ==
            nvidia::kNvmlSuccess) {
      seen.max_sm_mhz = static_cast<int>(mhz);
    }
    handles_.push_back(device);
    gpus_.push_back(seen);
  }
}

void Sampler::look_at_gpus(Sample& sample) {
  for (size_t index = 0; index < handles_.size(); ++index) {
    const nvidia::NvmlDevice device = handles_[index];
    GpuSample g;
    nvidia::NvmlUtilization busy{};
    const auto works = [](int code) { return code == nvidia::kNvmlSuccess; };
    if (nvml_->nvmlDeviceGetUtilizationRates != nullptr &&
        works(nvml_->nvmlDeviceGetUtilizationRates(device, &busy))) {
      g.busy_percent = static_cast<int>(busy.gpu);
    }
    nvidia::NvmlMemory memory{};
    if (works(nvml_->nvmlDeviceGetMemoryInfo(device, &memory))) {
      g.memory_used = static_cast<int64_t>(memory.used);
    }
    unsigned number = 0;
    if (nvml_->nvmlDeviceGetClockInfo != nullptr &&
        works(nvml_->nvmlDeviceGetClockInfo(device, nvidia::kNvmlClockSm, &number))) {
      g.sm_mhz = static_cast<int>(number);
    }
    if (nvml_->nvmlDeviceGetTemperature != nullptr &&
        works(nvml_->nvmlDeviceGetTemperature(device, nvidia::kNvmlTemperatureGpu, &number))) {
      g.celsius = static_cast<int>(number);
    }
    if (nvml_->nvmlDeviceGetPowerUsage != nullptr &&
        works(nvml_->nvmlDeviceGetPowerUsage(device, &number))) {
      g.milliwatts = static_cast<int>(number);
    }
    if (nvml_->nvmlDeviceGetCurrentClocksThrottleReasons != nullptr &&
        !works(nvml_->nvmlDeviceGetCurrentClocksThrottleReasons(device, &g.throttle))) {
      g.throttle = 0;
    }
    if (nvml_->nvmlDeviceGetComputeRunningProcesses_v3 != nullptr) {
      std::vector<nvidia::NvmlProcess> list(256);
      auto count = static_cast<unsigned>(list.size());
      if (works(nvml_->nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list.data()))) {
        g.tree_memory = 0;
        for (unsigned i = 0; i < std::min<unsigned>(count, 256); ++i) {
          const auto found = processes_.find(static_cast<pid_t>(list[i].pid));
          const bool told = list[i].used_memory != ~uint64_t{0};
          const int64_t used = told ? static_cast<int64_t>(list[i].used_memory) : -1;
          if (found == processes_.end()) {
            look_at_others(static_cast<unsigned>(index), static_cast<pid_t>(list[i].pid), used);
            continue;
          }
          found->second.on_gpu = true;
          if (!told) continue;
          g.tree_memory += used;
          found->second.gpu_memory_peak = std::max(found->second.gpu_memory_peak, used);
        }
      }
    }
    sample.gpus.push_back(g);
  }
}

void Sampler::look_at_process(pid_t pid, pid_t parent, int64_t now, Sample& sample, int depth) {
  static const int64_t kTick = 1000000000 / std::max(1L, sysconf(_SC_CLK_TCK));
  static const int64_t kPage = sysconf(_SC_PAGESIZE);
  const std::string base = "/proc/" + std::to_string(pid);
  const std::vector<std::string> fields = stat_fields(small_file(base + "/stat"));
  if (fields.size() < 22 || depth > 64) return;
  auto found = processes_.find(pid);
  const bool fresh = found == processes_.end();
  if (fresh) {
    if (processes_.size() == kMostProcesses) {
      ++left_out_;
      return;
    }
    found = processes_.emplace(pid, ProcessSeen{}).first;
    found->second.pid = pid;
    found->second.first_ns = now;
  }
  ProcessSeen& seen = found->second;
  seen.parent = parent;
  seen.last_ns = now;
  // A process may become another program at any time; a zombie has no command any more.
  std::string command = small_file(base + "/cmdline", 1024);
  while (!command.empty() && command.back() == '\0') command.pop_back();
  std::replace(command.begin(), command.end(), '\0', ' ');
  const bool other_program = !command.empty() && command != seen.command;
  if (other_program) seen.command = command;
  const std::string name = name_of(pid);
  if (!name.empty()) seen.name = name;
  const auto number = [&](size_t i) { return std::strtoll(fields[i].c_str(), nullptr, 10); };
  seen.cpu_ns = (number(11) + number(12)) * kTick;
  const int64_t resident = number(21) * kPage;
  seen.resident_peak = std::max(seen.resident_peak, resident);
  const bool zombie = fields[0] == "Z";
  if (!zombie) {
    const std::string status = small_file(base + "/status", 16384);
    seen.swapped_peak = std::max(seen.swapped_peak, figure_of(status, "VmSwap:") * 1024);
    if (fresh || other_program || looks_ % kLooksToDetails == 2) {
      if (!seen.driver_loaded) seen.driver_loaded = maps_driver(pid);
      seen.told = has_variables(pid);
    }
    seen.told = seen.told && may_record(status);
  }
  seen.faults = number(9);
  sample.resident += resident;
  ++sample.processes;
  for (const pid_t child : children_of(pid)) {
    look_at_process(child, pid, now, sample, depth + 1);
  }
}

void Sampler::look(pid_t root) {
  if (!nvml_tried_) open_nvml();
  Sample sample;
  sample.at_ns = monotonic() - begun_ns_;
  look_at_process(root, getpid(), sample.at_ns, sample, 0);
  // Those that outlived their parent are children of this process now.
  const std::vector<pid_t> ours = children_of(getpid());
  if (std::find(ours.begin(), ours.end(), root) != ours.end()) {
    for (const pid_t child : ours) {
      if (child != root) look_at_process(child, getpid(), sample.at_ns, sample, 1);
    }
  }
  ++looks_;
  if (sample.at_ns < due_ns_) return;
  due_ns_ = sample.at_ns + gap_ns_;
  gap_ns_ = std::min(2 * gap_ns_, kSampleNs);
  for (const auto& [pid, seen] : processes_) sample.cpu_ns += seen.cpu_ns;
  if (nvml_ != nullptr) look_at_gpus(sample);
  if (taken_++ % every_ != 0) return;
  samples_.push_back(std::move(sample));
  if (samples_.size() >= kMost) thin();
}

/// Two neighbours become one: the later one, with the higher peaks and all throttle reasons.
void Sampler::thin() {
  std::vector<Sample> kept;
  for (size_t i = 0; i + 1 < samples_.size(); i += 2) {
    const Sample& first = samples_[i];
    Sample both = samples_[i + 1];
    both.resident = std::max(both.resident, first.resident);
    both.processes = std::max(both.processes, first.processes);
    for (size_t g = 0; g < both.gpus.size() && g < first.gpus.size(); ++g) {
      GpuSample& to = both.gpus[g];
      const GpuSample& from = first.gpus[g];
      if (to.busy_percent >= 0 && from.busy_percent >= 0) {
        to.busy_percent = (to.busy_percent + from.busy_percent + 1) / 2;
      }
      to.memory_used = std::max(to.memory_used, from.memory_used);
      to.tree_memory = std::max(to.tree_memory, from.tree_memory);
      to.celsius = std::max(to.celsius, from.celsius);
      to.milliwatts = std::max(to.milliwatts, from.milliwatts);
      to.throttle |= from.throttle;
    }
    kept.push_back(std::move(both));
  }
  samples_ = std::move(kept);
  every_ *= 2;
}

}  // namespace tracefire::inject
