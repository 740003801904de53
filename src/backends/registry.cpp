// SPDX-License-Identifier: Apache-2.0
// The one place that names backends: which devices this process has, made on first use.

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "backends/api/device_backend.h"
#include "backends/api/libraries.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cuda/cuda_devices.h"
#include "backends/null/null_device.h"
#include "backends/nvidia/search.h"
#include "backends/nvidia/stack.h"
#include "backends/ref/ref_device.h"

namespace tracefire {

namespace cuda {
// Null in a build without the CUDA backend.
[[gnu::weak]] CudaDevices make_cuda_devices(nvidia::Stack& stack);
}  // namespace cuda

namespace {

constexpr int kMostCpuDevices = 64;

std::string count_text(size_t count, const char* one) {
  return concat_text(count, " ", one, count == 1 ? "" : "s");
}
/// "There are 2 GPUs, counted from 0."
std::string there_are(size_t count, const char* one) {
  return concat_text(count == 1 ? "There is " : "There are ", count_text(count, one),
                     ", counted from 0.");
}

}  // namespace

struct Backends::State {
  std::mutex mutex;
  int cpu_count = 1;
  bool started = false;
  std::vector<std::unique_ptr<DeviceBackend>> gpus, cpus;
  std::string why_no_gpu;
  std::map<Device, std::unique_ptr<DeviceBackend>> test_devices;
  std::map<uint8_t, std::set<std::string, std::less<>>> masks;
  std::atomic<uint64_t> masks_generation{0};

  /// Finds GPUs and makes the CPU devices. The mutex is held.
  void start() {
    if (started) return;
    started = true;
    if (cuda::make_cuda_devices == nullptr) {
      why_no_gpu =
          "This build has no CUDA backend. Configure it with -DTRACEFIRE_CUDA=ON and build again.";
    } else {
      cuda::CudaDevices made = cuda::make_cuda_devices(nvidia::Stack::instance());
      gpus = std::move(made.devices);
      if (gpus.empty()) why_no_gpu = std::move(made.why_not);
    }
    cpus = make_cpu_devices(cpu_count);
  }

  std::vector<DeviceBackend*> all() const {
    std::vector<DeviceBackend*> devices;
    for (const auto& gpu : gpus) devices.push_back(gpu.get());
    for (const auto& cpu : cpus) devices.push_back(cpu.get());
    return devices;
  }

  std::string list() const {
    std::string text;
    for (DeviceBackend* device : all()) {
      text += concat_text(text.empty() ? "" : ", ", device->device().str(), " (",
                          device->info().name, ")");
    }
    return text;
  }

  Status unknown(Device device) const {
    if (!device.is_set()) {
      return error(ErrorCode::kInternal,
                   "a device was looked for that is not set; please report it.");
    }
    std::string why;
    if (device.kind == Device::kGpu && gpus.empty()) {
      why = concat_text("No GPU is among them: ", why_no_gpu);
      // That the CPU does the work anyway is no answer to somebody who names a GPU.
      why = why.substr(0, why.find(concat_text(" ", nvidia::kNothingToDo)));
    } else if (device.kind == Device::kGpu) {
      why = there_are(gpus.size(), "GPU");
    } else if (device.kind == Device::kCpu) {
      why = there_are(cpus.size(), "CPU device");
    } else {
      why = "No backend of this build makes devices of this kind.";
    }
    return error(ErrorCode::kUnknownDevice, "the device ", device.str(),
                 " does not exist; name one of ", list(), ". ", why);
  }

  /// A device of a kind that only tests use; null where the kind is none.
  DeviceBackend* test_device(Device device) {
    const auto found = test_devices.find(device);
    if (found != test_devices.end()) return found->second.get();
    const std::string kind = device_kind_name(device.kind);
    std::unique_ptr<DeviceBackend> made;
    if (kind == "NULL") made = make_null_device(device);
    if (kind == "REF") made = make_ref_device(device);
    if (!made) return nullptr;
    return (test_devices[device] = std::move(made)).get();
  }
};

Backends::Backends() : state_(std::make_unique<State>()) {}

Backends& Backends::instance() {
  // Never destroyed: buffers of static tensors go back to their devices until the very end.
  static Backends* backends = new Backends;
  return *backends;
}

std::vector<DeviceBackend*> Backends::devices() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->start();
  return state_->all();
}

Result<DeviceBackend*> Backends::find(Device device) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->start();
  const size_t index = device.index;
  if (device.kind == Device::kCpu && index < state_->cpus.size()) return state_->cpus[index].get();
  if (device.kind == Device::kGpu && index < state_->gpus.size()) return state_->gpus[index].get();
  if (device.is_set() && device.kind != Device::kCpu && device.kind != Device::kGpu) {
    if (DeviceBackend* test = state_->test_device(device)) return test;
  }
  return state_->unknown(device);
}

Device Backends::default_device() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->start();
  return state_->gpus.empty() ? Device{Device::kCpu, 0} : Device{Device::kGpu, 0};
}

std::string Backends::why_no_gpu() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->start();
  return state_->why_no_gpu;
}

Status Backends::set_cpu_devices(int count) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  if (count < 1 || count > kMostCpuDevices) {
    return error(ErrorCode::kBadSetting, "the number of CPU devices was set to ", count,
                 "; it must be from 1 to ", kMostCpuDevices, ".");
  }
  if (state_->started && static_cast<size_t>(count) != state_->cpus.size()) {
    return error(ErrorCode::kBadSetting, "the number of CPU devices was set to ", count, " after ",
                 count_text(state_->cpus.size(), "device"),
                 " had been made; set it before anything runs.");
  }
  state_->cpu_count = count;
  return {};
}

void Backends::mask(uint8_t kind, std::vector<std::string> ops) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->masks[kind] = {std::make_move_iterator(ops.begin()), std::make_move_iterator(ops.end())};
  state_->masks_generation.fetch_add(1, std::memory_order_release);
}

uint64_t Backends::masks_generation() const {
  return state_->masks_generation.load(std::memory_order_acquire);
}

bool Backends::masked(uint8_t kind, std::string_view op) const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  const auto found = state_->masks.find(kind);
  return found != state_->masks.end() && found->second.find(op) != found->second.end();
}

std::string Backends::library_report() {
  devices();  // what was looked for is known then
  return nvidia::Stack::instance().report();
}

void Backends::add_library_root(const std::string& directory) {
  nvidia::add_python_roots({directory});
}

std::vector<UsedLibrary> used_libraries() {
  const bool gpus = Backends::instance().default_device().kind == Device::kGpu;
  std::vector<UsedLibrary> used;
  if (gpus) {
    nvidia::Stack& stack = nvidia::Stack::instance();
    const std::string driver = stack.inventory().driver_version;
    const std::pair<nvidia::Library, const char*> names[] = {
        {nvidia::Library::kDriver, "NVIDIA driver"},
        {nvidia::Library::kNvml, "NVML"},
        {nvidia::Library::kNvrtc, "NVRTC"},
        {nvidia::Library::kCublasLt, "cuBLASLt"}};
    for (const auto& [library, name] : names) {
      const Result<nvidia::OpenLibrary> open = stack.library(library);
      if (!open.ok()) continue;  // library_report() says why
      // The driver's libraries tell which CUDA they support; people ask for the driver's version.
      std::string version = nvidia::facts(library).part_of_driver ? driver : "";
      if (version.empty() && open->version != 0) {
        version = nvidia::version_text(library, open->version);
        if (library == nvidia::Library::kDriver) version = "CUDA " + version;
      }
      used.push_back({name, version, open->path, open->origin});
    }
  }
  for (UsedLibrary& library : cpu_libraries()) used.push_back(std::move(library));
  return used;
}

}  // namespace tracefire
