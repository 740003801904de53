// SPDX-License-Identifier: Apache-2.0
// Opening NVML, finding its devices, and one whole read.
#include "tools/monitor/sample/nvml_source.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "tools/monitor/sample/nvml_call.h"
#include "tools/monitor/sample/nvml_query.h"

namespace tracefire::monitor {
namespace {

using nvidia::kNvmlSuccess;

constexpr int64_t kRetryMicroseconds = 5'000'000;
constexpr int kMaxEvents = 256;  // of one read

int64_t steady_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

template <class F, class... Arguments>
std::string text_of(F function, Arguments... arguments) {
  char text[128] = "";
  if (nvml_call(function, arguments..., text, static_cast<unsigned>(sizeof text)) != kNvmlSuccess) {
    return "";
  }
  text[sizeof text - 1] = '\0';
  return text;
}

}  // namespace

NvmlSource::NvmlSource(std::vector<std::string> questions, std::string root, Scope scope)
    : questions_(std::move(questions)), scope_(scope), host_(std::move(root)) {}

NvmlSource::~NvmlSource() { close(); }

void NvmlSource::close() {
  devices_.clear();
  if (!api_) return;
  if (events_ != nullptr) nvml_call(more_.nvmlEventSetFree, events_);
  events_ = nullptr;
  api_->nvmlShutdown();
  api_.reset();
}

std::string NvmlSource::open() {
  // A search of its own: the process-wide one remembers a failure for good, and a driver may come.
  nvidia::Search search(nvidia::SearchOptions::from_environment());
  const Result<nvidia::OpenLibrary> library = search.open(nvidia::Library::kNvml, 0);
  if (!library.ok()) return library.status().message();
  Result<nvidia::NvmlApi> api = nvidia::load_nvml_api(*library);
  if (!api.ok()) return api.status().message();
  if (const int code = api->nvmlInit_v2(); code != kNvmlSuccess) {
    return "NVML could not start: " + api->describe(code) +
           ". Expected a loaded NVIDIA driver. Run `tracefire doctor` for the cause.";
  }
  library_ = *library;
  api_ = *api;
  more_ = nvidia::load_nvml_monitor_api(*library);
  driver_ = text_of(api_->nvmlSystemGetDriverVersion);
  nvml_ = text_of(more_.nvmlSystemGetNVMLVersion);
  cuda_ = 0;
  nvml_call(more_.nvmlSystemGetCudaDriverVersion_v2, &cuda_);
  return "";
}

void NvmlSource::find_devices(unsigned count) {
  std::vector<Device> before = std::move(devices_);
  devices_.clear();
  if (events_ != nullptr) nvml_call(more_.nvmlEventSetFree, events_);
  events_ = nullptr;
  const int event_code =
      scope_ == Scope::kAll ? nvml_call(more_.nvmlEventSetCreate, &events_) : Reading::kNotAsked;
  if (event_code != kNvmlSuccess) events_ = nullptr;
  for (unsigned index = 0; index < count; ++index) {
    Device device;
    describe(&device, index);
    device.xid_code = event_code;
    if (events_ != nullptr && device.handle != nullptr) {
      device.xid_code =
          nvml_call(more_.nvmlDeviceRegisterEvents, device.handle, nvidia::kNvmlEventXid, events_);
    }
    for (const Device& old : before) {
      if (old.fixed.uuid != device.fixed.uuid || old.fixed.uuid.empty()) continue;
      device.xid_errors = old.xid_errors;
      device.xid_last = old.xid_last;
    }
    devices_.push_back(std::move(device));
  }
}

void NvmlSource::describe(Device* device, unsigned index) {
  Gpu& gpu = device->fixed;
  gpu.index = static_cast<int>(index);
  const int code = api_->nvmlDeviceGetHandleByIndex_v2(index, &device->handle);
  if (code != kNvmlSuccess) {
    device->handle = nullptr;
    device->handle_code = static_cast<unsigned>(code);
    return;
  }
  gpu.name = text_of(api_->nvmlDeviceGetName, device->handle);
  gpu.uuid = text_of(api_->nvmlDeviceGetUUID, device->handle);
  gpu.serial = text_of(more_.nvmlDeviceGetSerial, device->handle);
  gpu.vbios = text_of(more_.nvmlDeviceGetVbiosVersion, device->handle);
  nvidia::NvmlPci pci{};
  if (nvml_call(api_->nvmlDeviceGetPciInfo_v3, device->handle, &pci) == kNvmlSuccess) {
    pci.bus_id[sizeof pci.bus_id - 1] = '\0';
    gpu.pci = pci.bus_id;
  }
  int major = 0;
  int minor = 0;
  if (nvml_call(api_->nvmlDeviceGetCudaComputeCapability, device->handle, &major, &minor) ==
      kNvmlSuccess) {
    gpu.capability = major * 10 + minor;
  }
  if (scope_ != Scope::kAll) return;
  nvidia::NvmlGpmSupport support;
  if (nvml_call(more_.nvmlGpmQueryDeviceSupport, device->handle, &support) == kNvmlSuccess &&
      support.supported != 0) {
    device->gpm = std::make_unique<GpmPair>(&more_, device->handle, -1);
  }
}

void NvmlSource::collect_events() {
  if (events_ == nullptr) return;
  for (int i = 0; i < kMaxEvents; ++i) {
    nvidia::NvmlEventData event{};
    if (nvml_call(more_.nvmlEventSetWait_v2, events_, &event, 0u) != kNvmlSuccess) return;
    if (event.type != nvidia::kNvmlEventXid) continue;
    auto found = std::find_if(devices_.begin(), devices_.end(),
                              [&](const Device& d) { return d.handle == event.device; });
    if (found == devices_.end()) {
      const std::string uuid = text_of(api_->nvmlDeviceGetUUID, event.device);
      found = std::find_if(devices_.begin(), devices_.end(),
                           [&](const Device& d) { return d.fixed.uuid == uuid; });
    }
    if (found == devices_.end()) continue;
    ++found->xid_errors;
    found->xid_last = static_cast<unsigned>(event.data);
  }
}

void NvmlSource::read(Snapshot* snapshot) {
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) == 0) snapshot->host = host;
  if (!api_ && steady_us() >= next_try_) {
    problem_ = open();
    next_try_ = steady_us() + kRetryMicroseconds;
  }
  snapshot->driver = driver_;
  snapshot->nvml = nvml_;
  snapshot->cuda = cuda_;
  if (!api_) {
    snapshot->problem = problem_;
    return;
  }
  unsigned count = 0;
  const int code = api_->nvmlDeviceGetCount_v2(&count);
  if (code != kNvmlSuccess) {
    snapshot->problem = "NVML does not answer: " + api_->describe(code) +
                        ". It is opened again every 5 s; `tracefire doctor` finds the cause.";
    problem_ = snapshot->problem;
    close();
    next_try_ = steady_us() + kRetryMicroseconds;
    return;
  }
  count = std::min<unsigned>(count, kMaxGpus);
  if (count != devices_.size()) find_devices(count);
  if (count == 0) snapshot->problem = "the NVIDIA driver shows no GPU to this user";
  collect_events();
  host_.begin_sample();
  for (Device& device : devices_) {
    Gpu gpu = device.fixed;
    read_device(&device, &gpu);
    if (!gpu.lost) {
      for (const std::string& field : questions_) {
        gpu.answers[field] = ask_nvml(field, *library_, device.handle);
      }
    }
    snapshot->gpus.push_back(std::move(gpu));
  }
  host_.end_sample();
}

}  // namespace tracefire::monitor
