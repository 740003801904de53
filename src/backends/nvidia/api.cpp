// SPDX-License-Identifier: Apache-2.0
// Fills the function tables of the NVIDIA libraries.
#include "backends/nvidia/cublaslt_api.h"
#include "backends/nvidia/driver_api.h"
#include "backends/nvidia/nvml_api.h"
#include "backends/nvidia/nvrtc_api.h"

namespace tracefire::nvidia {
namespace {

Status no_function(const OpenLibrary& library, const char* name) {
  return error(ErrorCode::kCudaCall, library.path, " has no function ", name,
               ". Expected every function of ", facts(library.library).stem,
               "; the file is damaged or is not NVIDIA's.");
}

}  // namespace

Result<DriverApi> load_driver_api(const OpenLibrary& libcuda) {
  if (libcuda.version != 0 && libcuda.version < kOldestDriver) {
    return error(ErrorCode::kDriverTooOld, "the NVIDIA driver (", libcuda.path, ") supports CUDA ",
                 version_text(Library::kDriver, libcuda.version),
                 ". Expected CUDA 12.0 or newer. Update the driver to 525 or newer (580 or newer "
                 "for CUDA 13).");
  }
  using GetProcAddress = PFN_cuGetProcAddress_v12000;
  const auto get = reinterpret_cast<GetProcAddress>(libcuda.symbol("cuGetProcAddress_v2"));
  if (get == nullptr) return no_function(libcuda, "cuGetProcAddress_v2");
  DriverApi api;
#define TRACEFIRE_LOAD(name, version)                                                         \
  {                                                                                           \
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;                       \
    void* address = nullptr;                                                                  \
    if (get(#name, &address, version, CU_GET_PROC_ADDRESS_DEFAULT, &found) != CUDA_SUCCESS || \
        address == nullptr) {                                                                 \
      return no_function(libcuda, #name);                                                     \
    }                                                                                         \
    api.name = reinterpret_cast<PFN_##name##_v##version>(address);                            \
  }
  TRACEFIRE_DRIVER_FUNCTIONS(TRACEFIRE_LOAD)
#undef TRACEFIRE_LOAD
  return api;
}

Result<NvrtcApi> load_nvrtc_api(const OpenLibrary& nvrtc) {
  NvrtcApi api;
#define TRACEFIRE_LOAD(name)                                            \
  api.name = reinterpret_cast<decltype(api.name)>(nvrtc.symbol(#name)); \
  if (api.name == nullptr) return no_function(nvrtc, #name);
  TRACEFIRE_NVRTC_FUNCTIONS(TRACEFIRE_LOAD)
#undef TRACEFIRE_LOAD
  return api;
}

Result<CublasLtApi> load_cublaslt_api(const OpenLibrary& cublaslt) {
  CublasLtApi api;
#define TRACEFIRE_LOAD(name)                                               \
  api.name = reinterpret_cast<decltype(api.name)>(cublaslt.symbol(#name)); \
  if (api.name == nullptr) return no_function(cublaslt, #name);
  TRACEFIRE_CUBLASLT_FUNCTIONS(TRACEFIRE_LOAD)
#undef TRACEFIRE_LOAD
  return api;
}

Result<NvmlApi> load_nvml_api(const OpenLibrary& nvml) {
  NvmlApi api;
#define TRACEFIRE_LOAD(name, arguments) \
  api.name = reinterpret_cast<int(*) arguments>(nvml.symbol(#name));
  TRACEFIRE_NVML_FUNCTIONS(TRACEFIRE_LOAD)
#undef TRACEFIRE_LOAD
  api.nvmlErrorString = reinterpret_cast<const char* (*)(int)>(nvml.symbol("nvmlErrorString"));
  const struct {
    const void* function;
    const char* name;
  } basic[] = {
      {reinterpret_cast<const void*>(api.nvmlInit_v2), "nvmlInit_v2"},
      {reinterpret_cast<const void*>(api.nvmlShutdown), "nvmlShutdown"},
      {reinterpret_cast<const void*>(api.nvmlSystemGetDriverVersion), "nvmlSystemGetDriverVersion"},
      {reinterpret_cast<const void*>(api.nvmlDeviceGetCount_v2), "nvmlDeviceGetCount_v2"},
      {reinterpret_cast<const void*>(api.nvmlDeviceGetHandleByIndex_v2),
       "nvmlDeviceGetHandleByIndex_v2"},
      {reinterpret_cast<const void*>(api.nvmlDeviceGetName), "nvmlDeviceGetName"},
      {reinterpret_cast<const void*>(api.nvmlDeviceGetUUID), "nvmlDeviceGetUUID"},
      {reinterpret_cast<const void*>(api.nvmlDeviceGetMemoryInfo), "nvmlDeviceGetMemoryInfo"},
  };
  for (const auto& entry : basic) {
    if (entry.function == nullptr) return no_function(nvml, entry.name);
  }
  return api;
}

std::string NvmlApi::describe(int code) const {
  const char* words = nvmlErrorString == nullptr ? nullptr : nvmlErrorString(code);
  return words == nullptr ? "error " + std::to_string(code) : std::string(words);
}

}  // namespace tracefire::nvidia
