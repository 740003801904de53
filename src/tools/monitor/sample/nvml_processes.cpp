// SPDX-License-Identifier: Apache-2.0
// MIG instances and the processes on a GPU.
#include <algorithm>
#include <map>

#include "tools/monitor/sample/nvml_call.h"
#include "tools/monitor/sample/nvml_source.h"

namespace tracefire::monitor {
namespace {

constexpr double kPercent = 0.01;
constexpr uint64_t kNotTold = ~uint64_t{0};
constexpr unsigned kNoInstance = ~0u;
constexpr unsigned kMaxInstances = 16;
constexpr unsigned kMaxSamples = 4096;
constexpr unsigned kMaxListed = 8 * kMaxProcesses;

using ListFunction = int(nvidia::NvmlDevice, unsigned*, nvidia::NvmlProcess*);

/// NVML says how many there are where the array was too short; more may come until the next call.
int list_processes(ListFunction* function, nvidia::NvmlDevice device,
                   std::vector<nvidia::NvmlProcess>* list, bool* more) {
  unsigned count = 64;
  for (int attempt = 0; attempt < 4; ++attempt) {
    list->assign(count, {});
    const unsigned room = count;
    const int code = nvml_call(function, device, &count, list->data());
    if (code == nvidia::kNvmlSuccess) {
      list->resize(std::min(count, room));
      return code;
    }
    list->clear();
    if (code != nvidia::kNvmlInsufficientSize) return code;
    count = std::min<unsigned>(count + 16, kMaxListed);
  }
  *more = true;
  return nvidia::kNvmlInsufficientSize;
}

}  // namespace

void NvmlSource::read_instances(Device* device, Gpu* gpu) {
  unsigned current = 0;
  unsigned pending = 0;
  const int code = nvml_call(api_->nvmlDeviceGetMigMode, device->handle, &current, &pending);
  (*gpu)[Metric::kMigMode] = nvml_reading(code, current);
  if (scope_ != Scope::kAll) return;
  if (code != nvidia::kNvmlSuccess || current == 0) {
    device->instance_gpm.clear();
    return;
  }
  unsigned most = 0;
  if (nvml_call(more_.nvmlDeviceGetMaxMigDeviceCount, device->handle, &most) !=
      nvidia::kNvmlSuccess) {
    return;
  }
  most = std::min(most, kMaxInstances);
  std::vector<std::pair<int, std::unique_ptr<GpmPair>>> pairs;
  for (unsigned i = 0; i < most; ++i) {
    nvidia::NvmlDevice handle = nullptr;
    if (nvml_call(more_.nvmlDeviceGetMigDeviceHandleByIndex, device->handle, i, &handle) !=
        nvidia::kNvmlSuccess) {
      continue;  // places of a GPU may be empty
    }
    Instance instance;
    unsigned id = 0;
    if (nvml_call(more_.nvmlDeviceGetGpuInstanceId, handle, &id) == nvidia::kNvmlSuccess) {
      instance.gpu_instance = static_cast<int>(id);
    }
    if (nvml_call(more_.nvmlDeviceGetComputeInstanceId, handle, &id) == nvidia::kNvmlSuccess) {
      instance.compute_instance = static_cast<int>(id);
    }
    char text[128] = "";
    if (api_->nvmlDeviceGetName(handle, text, sizeof text) == nvidia::kNvmlSuccess) {
      instance.name = text;
    }
    if (api_->nvmlDeviceGetUUID(handle, text, sizeof text) == nvidia::kNvmlSuccess) {
      instance.uuid = text;
    }
    nvidia::NvmlMemory memory{};
    const int got = api_->nvmlDeviceGetMemoryInfo(handle, &memory);
    instance[Metric::kMemoryTotal] = nvml_reading(got, static_cast<double>(memory.total));
    instance[Metric::kMemoryUsed] = nvml_reading(got, static_cast<double>(memory.used));
    instance[Metric::kMemoryFree] = nvml_reading(got, static_cast<double>(memory.free));
    const int g = instance.gpu_instance;
    auto old = std::find_if(device->instance_gpm.begin(), device->instance_gpm.end(),
                            [&](const auto& pair) { return pair.first == g; });
    std::unique_ptr<GpmPair> pair;
    if (old != device->instance_gpm.end()) {
      pair = std::move(old->second);
      device->instance_gpm.erase(old);
    } else if (device->gpm != nullptr) {
      pair = std::make_unique<GpmPair>(&more_, device->handle, g);
    }
    if (pair != nullptr) {
      pair->read(&instance.readings);
      pairs.emplace_back(g, std::move(pair));
    }
    gpu->instances.push_back(std::move(instance));
  }
  device->instance_gpm = std::move(pairs);
}

void NvmlSource::read_processes(Device* device, Gpu* gpu) {
  const struct {
    ListFunction* function;
    ProcessKind kind;
  } lists[] = {
      {api_->nvmlDeviceGetComputeRunningProcesses_v3, ProcessKind::kCompute},
      {more_.nvmlDeviceGetMPSComputeRunningProcesses_v3, ProcessKind::kMps},
      {more_.nvmlDeviceGetGraphicsRunningProcesses_v3, ProcessKind::kGraphics},
  };
  for (const auto& list : lists) {
    std::vector<nvidia::NvmlProcess> found;
    const int code = list_processes(list.function, device->handle, &found, &gpu->more_processes);
    if (list.kind == ProcessKind::kCompute) gpu->process_code = code;
    for (const nvidia::NvmlProcess& process : found) {
      const int instance =
          process.gpu_instance == kNoInstance ? -1 : static_cast<int>(process.gpu_instance);
      const bool known = std::any_of(gpu->processes.begin(), gpu->processes.end(), [&](auto& p) {
        return p.pid == process.pid && p.gpu_instance == instance;
      });
      if (known) continue;
      if (gpu->processes.size() >= kMaxProcesses) {
        gpu->more_processes = true;
        break;
      }
      GpuProcess p;
      p.pid = process.pid;
      p.kind = list.kind;
      p.gpu_instance = instance;
      if (process.compute_instance != kNoInstance) {
        p.compute_instance = static_cast<int>(process.compute_instance);
      }
      p.memory_bytes = process.used_memory == kNotTold
                           ? Reading::missing(Reading::kNoAccess)
                           : Reading::of(static_cast<double>(process.used_memory));
      p.host = host_.read(process.pid);
      gpu->processes.push_back(std::move(p));
    }
  }
  read_process_shares(device, gpu);
}

void NvmlSource::read_process_shares(Device* device, Gpu* gpu) {
  unsigned count = 0;
  int code =
      nvml_call(more_.nvmlDeviceGetProcessUtilization, device->handle,
                static_cast<nvidia::NvmlProcessSample*>(nullptr), &count, device->processes_since);
  std::vector<nvidia::NvmlProcessSample> samples;
  if (code == nvidia::kNvmlInsufficientSize && count > 0) {
    samples.resize(std::min(count, kMaxSamples));
    count = static_cast<unsigned>(samples.size());
    code = nvml_call(more_.nvmlDeviceGetProcessUtilization, device->handle, samples.data(), &count,
                     device->processes_since);
    samples.resize(code == nvidia::kNvmlSuccess ? std::min<size_t>(count, samples.size()) : 0);
  }
  std::map<unsigned, const nvidia::NvmlProcessSample*> newest;
  for (const nvidia::NvmlProcessSample& sample : samples) {
    device->processes_since =
        std::max<unsigned long long>(device->processes_since, sample.timestamp);
    const nvidia::NvmlProcessSample*& place = newest[sample.pid];
    if (place == nullptr || place->timestamp < sample.timestamp) place = &sample;
  }
  for (GpuProcess& process : gpu->processes) {
    const auto found = newest.find(process.pid);
    if (found != newest.end()) {
      process.sm_share = Reading::of(found->second->sm * kPercent);
      process.memory_share = Reading::of(found->second->memory * kPercent);
    } else if (code == nvidia::kNvmlSuccess || code == 6) {
      // No sample since the last question: the process did nothing.
      process.sm_share = process.memory_share = Reading::of(0);
    } else {
      process.sm_share = process.memory_share = Reading::missing(code);
    }
  }
}

}  // namespace tracefire::monitor
