// SPDX-License-Identifier: Apache-2.0
#include "backends/nvidia/stack.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace tracefire::nvidia {
namespace {

constexpr int kCuda13 = 13000;
constexpr int kOldestForCuda13 = 75;

std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += hex;
  }
  return text;
}

std::string driver_word(const OpenLibrary& libcuda, CUresult code) {
  using GetName = CUresult (*)(CUresult, const char**);
  const auto get_name = reinterpret_cast<GetName>(libcuda.symbol("cuGetErrorName"));
  const char* name = nullptr;
  if (get_name != nullptr && get_name(code, &name) == CUDA_SUCCESS && name != nullptr) return name;
  return "error";
}

Gpu describe(const DriverApi& api, int index, CUdevice device) {
  Gpu gpu;
  gpu.index = index;
  char name[256] = "";
  if (api.cuDeviceGetName(name, sizeof name, device) == CUDA_SUCCESS) gpu.name = name;
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    return api.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
  };
  gpu.capability = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                   attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  gpu.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  gpu.clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  gpu.l2_bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  gpu.shared_bytes_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  size_t bytes = 0;
  if (api.cuDeviceTotalMem(&bytes, device) == CUDA_SUCCESS) gpu.memory_bytes = bytes;
  CUuuid uuid{};
  if (api.cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS) gpu.uuid = uuid_text(uuid);
  char pci[32] = "";
  if (api.cuDeviceGetPCIBusId(pci, sizeof pci, device) == CUDA_SUCCESS) gpu.pci = pci;
  if (gpu.capability < kOldestCapability) {
    gpu.refusal = "compute capability " + std::to_string(gpu.capability / 10) + "." +
                  std::to_string(gpu.capability % 10) +
                  " is older than 7.0, the oldest that Tracefire's kernels run on";
  }
  return gpu;
}

/// Whether a library that was opened can be used: it is of the major that its file name says, and
/// has every function that is called.
Status usable(const OpenLibrary& library, int major) {
  const Library which = library.library;
  const int64_t told = library.version / (which == Library::kNvrtc ? 1000 : 10000);
  if (library.version != 0 && told != major) {
    return error(ErrorCode::kLibraryWrongVersion, library.path, " is version ",
                 version_text(which, library.version), ". Expected ", major,
                 ".x, as its name says. ", how_to_install(which, major, true));
  }
  const Status complete = which == Library::kNvrtc ? load_nvrtc_api(library).status()
                                                   : load_cublaslt_api(library).status();
  if (complete.ok()) return {};
  return error(complete.code(), complete.message(), " ", how_to_install(which, major, true));
}

}  // namespace

std::vector<int> allowed_majors(int driver_cuda_version, int oldest_capability) {
  std::vector<int> majors;
  if (driver_cuda_version >= kCuda13 && oldest_capability >= kOldestForCuda13) majors.push_back(13);
  if (driver_cuda_version >= kOldestDriver) majors.push_back(12);
  return majors;
}

Status Inventory::status() const {
  if (!problem) return {};
  const ErrorCode code =
      problem->kind == "driver-too-old" ? ErrorCode::kDriverTooOld : ErrorCode::kNoGpu;
  return error(code, problem->line());
}

Stack::Stack(SearchOptions options, std::string root)
    : search_(std::move(options)), root_(std::move(root)) {}

Stack::~Stack() {
  if (nvml_ && nvml_->ok()) (*nvml_)->nvmlShutdown();
}

Stack& Stack::instance() {
  // Never destroyed: the driver must outlive every static that may still free device memory.
  static Stack* const stack = new Stack(SearchOptions::from_environment());
  return *stack;
}

const Inventory& Stack::inventory() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  if (!inventory_) start_driver();
  return *inventory_;
}

void Stack::start_driver() {
  inventory_.emplace();
  const MachineFacts machine = MachineFacts::read(root_);
  inventory_->driver_version = machine.kernel_driver;
  DriverFailure failure;
  const Result<OpenLibrary> libcuda = search_.open(Library::kDriver, 0);
  if (!libcuda.ok()) {
    failure.library_missing = true;
    inventory_->problem = explain_no_gpu(machine, failure);
    return;
  }
  libraries_.emplace(Library::kDriver, libcuda);
  failure.library_path = libcuda->path;
  failure.cuda_version = static_cast<int>(libcuda->version);
  inventory_->cuda_version = failure.cuda_version;
  Result<DriverApi> api = load_driver_api(*libcuda);
  if (!api.ok()) {
    if (api.status().code() == ErrorCode::kDriverTooOld) {
      inventory_->problem = explain_no_gpu(machine, failure);
    } else {
      std::string what = api.status().message();
      if (!what.empty() && what.back() == '.') what.pop_back();  // the cure follows a full stop
      inventory_->problem = NoGpuReason{"driver-damaged", what, "Reinstall the NVIDIA driver"};
    }
    return;
  }
  if (const CUresult code = api->cuInit(0); code != CUDA_SUCCESS) {
    failure.init_code = code;
    failure.init_words = driver_word(*libcuda, code);
    failure.mig_empty = code == CUDA_ERROR_NO_DEVICE && mig_without_instance();
    inventory_->problem = explain_no_gpu(machine, failure);
    return;
  }
  list_gpus(*api);
  const auto usable = [](const Gpu& gpu) { return gpu.refusal.empty(); };
  if (inventory_->gpus.empty()) {
    inventory_->problem = explain_no_gpu(machine, failure);
  } else if (std::none_of(inventory_->gpus.begin(), inventory_->gpus.end(), usable)) {
    const Gpu& gpu = inventory_->gpus.front();
    inventory_->problem = NoGpuReason{"cc-too-old", gpu.name + ": " + gpu.refusal,
                                      "Use a Volta or newer GPU; work runs on the CPU meanwhile"};
  } else {
    driver_ = *api;
  }
}

void Stack::list_gpus(const DriverApi& api) {
  int count = 0;
  if (api.cuDeviceGetCount(&count) != CUDA_SUCCESS) return;
  for (int index = 0; index < count; ++index) {
    CUdevice device = 0;
    if (api.cuDeviceGet(&device, index) != CUDA_SUCCESS) continue;
    inventory_->gpus.push_back(describe(api, index, device));
  }
}

bool Stack::mig_without_instance() {
  const Result<const NvmlApi*> api = nvml_locked();
  unsigned count = 0;
  if (!api.ok() || (*api)->nvmlDeviceGetMigMode == nullptr ||
      (*api)->nvmlDeviceGetCount_v2(&count) != kNvmlSuccess) {
    return false;
  }
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    unsigned current = 0;
    unsigned pending = 0;
    if ((*api)->nvmlDeviceGetHandleByIndex_v2(i, &device) == kNvmlSuccess &&
        (*api)->nvmlDeviceGetMigMode(device, &current, &pending) == kNvmlSuccess && current == 1) {
      return true;
    }
  }
  return false;
}

Result<const DriverApi*> Stack::driver() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  if (!inventory_) start_driver();
  TF_RETURN_IF_ERROR(inventory_->status());
  return &*driver_;
}

Result<const NvmlApi*> Stack::nvml() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  return nvml_locked();
}

Result<const NvmlApi*> Stack::nvml_locked() {
  if (!nvml_) {
    const auto open = [&]() -> Result<NvmlApi> {
      TF_ASSIGN(const OpenLibrary library, search_.open(Library::kNvml, 0));
      TF_ASSIGN(const NvmlApi api, load_nvml_api(library));
      if (const int code = api.nvmlInit_v2(); code != kNvmlSuccess) {
        return error(ErrorCode::kNoGpu, "NVML could not start: ", api.describe(code),
                     ". Expected a loaded NVIDIA driver. Run `tracefire doctor` for the cause.");
      }
      return api;
    };
    nvml_.emplace(open());
  }
  if (!nvml_->ok()) return nvml_->status();
  return &**nvml_;
}

Result<int> Stack::cuda_major() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  return major_locked();
}

Result<int> Stack::major_locked() {
  if (major_) return *major_;
  const auto choose = [&]() -> Result<int> {
    if (!inventory_) start_driver();
    TF_RETURN_IF_ERROR(inventory_->status());
    int oldest = 1000;
    for (const Gpu& gpu : inventory_->gpus) {
      if (gpu.refusal.empty()) oldest = std::min(oldest, gpu.capability);
    }
    std::vector<int> majors = allowed_majors(inventory_->cuda_version, oldest);
    // Two CUDA majors in one process waste memory and confuse cuDNN, which has one file name for
    // both: what is loaded already decides, where the driver allows it.
    const int loaded = search_.loaded_major(Library::kCublasLt);
    const auto place = std::find(majors.begin(), majors.end(), loaded);
    if (place != majors.end()) std::rotate(majors.begin(), place, place + 1);
    Status first_failure;
    for (const int major : majors) {
      Status failure;
      for (const Library needed : {Library::kNvrtc, Library::kCublasLt}) {
        Result<OpenLibrary> found = search_.open(needed, major);
        failure = found.ok() ? usable(*found, major) : found.status();
        if (!failure.ok()) break;
        libraries_.insert_or_assign(needed, std::move(found));
      }
      if (failure.ok()) return major;
      if (first_failure.ok()) first_failure = failure;
    }
    return first_failure;
  };
  major_.emplace(choose());
  return *major_;
}

Result<OpenLibrary> Stack::library_locked(Library library) {
  if (facts(library).part_of_driver) {
    if (library == Library::kDriver && !inventory_) start_driver();
    const auto found = libraries_.find(library);
    if (found != libraries_.end()) return found->second;
    return search_.open(library, 0);
  }
  TF_ASSIGN(const int major, major_locked());
  const auto found = libraries_.find(library);
  if (found != libraries_.end()) return found->second;
  if (library == Library::kCudnn) {
    // cuDNN and cuBLAS find each other by plain name: cuBLAS of the right place must be open first.
    const Result<OpenLibrary> cublas = search_.open(Library::kCublas, major);
    if (cublas.ok()) libraries_.insert_or_assign(Library::kCublas, cublas);
  }
  return libraries_.emplace(library, search_.open(library, major)).first->second;
}

Result<OpenLibrary> Stack::library(Library library) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  return library_locked(library);
}

Result<const NvrtcApi*> Stack::nvrtc() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  if (!nvrtc_) {
    const Result<OpenLibrary> library = library_locked(Library::kNvrtc);
    nvrtc_.emplace(library.ok() ? load_nvrtc_api(*library) : Result<NvrtcApi>(library.status()));
  }
  if (!nvrtc_->ok()) return nvrtc_->status();
  return &**nvrtc_;
}

Result<const CublasLtApi*> Stack::cublaslt() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  if (!cublaslt_) {
    const Result<OpenLibrary> library = library_locked(Library::kCublasLt);
    cublaslt_.emplace(library.ok() ? load_cublaslt_api(*library)
                                   : Result<CublasLtApi>(library.status()));
  }
  if (!cublaslt_->ok()) return cublaslt_->status();
  return &**cublaslt_;
}

std::string Stack::report() {
  const Inventory& devices = inventory();
  std::string text = search_.report();
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  for (const auto& [library, found] : libraries_) {
    if (!found.ok()) continue;
    text += "chosen: " + found->path;
    if (found->version != 0) text += "  " + version_text(library, found->version);
    text += "  [" + found->origin + "]\n";
  }
  if (devices.problem) text += "no GPU: " + devices.problem->line() + "\n";
  return text;
}

}  // namespace tracefire::nvidia
