// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "backends/nvidia/search.h"
#include "core/base/status.h"

namespace tracefire::nvidia {

// NVML's header is not part of the CUDA headers, so the little that is used of its stable binary
// interface is declared here.
using NvmlDevice = struct NvmlDeviceOpaque*;
inline constexpr int kNvmlSuccess = 0;
inline constexpr int kNvmlUninitialized = 1;
inline constexpr int kNvmlNotSupported = 3;
inline constexpr int kNvmlNoPermission = 4;
inline constexpr int kNvmlInsufficientSize = 7;
inline constexpr int kNvmlDriverNotLoaded = 9;
inline constexpr int kNvmlLibRmVersionMismatch = 18;
inline constexpr int kNvmlGpuIsLost = 15;
inline constexpr int kNvmlUnknown = 999;

struct NvmlMemory {
  uint64_t total;  ///< bytes
  uint64_t free;
  uint64_t used;
};
struct NvmlUtilization {
  unsigned gpu;     ///< percent of the last sample period in which a kernel ran
  unsigned memory;  ///< percent in which memory was read or written
};
struct NvmlProcess {
  unsigned pid;
  uint64_t used_memory;  ///< bytes; all ones where the driver does not tell
  unsigned gpu_instance;
  unsigned compute_instance;
};
struct NvmlPci {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};
enum NvmlTemperatureSensor : int { kNvmlTemperatureGpu = 0 };
enum NvmlClock : int { kNvmlClockGraphics = 0, kNvmlClockSm = 1, kNvmlClockMemory = 2 };
enum NvmlPcieCounter : int { kNvmlPcieSent = 0, kNvmlPcieReceived = 1 };

}  // namespace tracefire::nvidia

/// Functions of NVML: name, arguments. All return 0 for success.
#define TRACEFIRE_NVML_FUNCTIONS(X)                                                     \
  X(nvmlInit_v2, (void))                                                                \
  X(nvmlShutdown, (void))                                                               \
  X(nvmlSystemGetDriverVersion, (char* text, unsigned length))                          \
  X(nvmlDeviceGetCount_v2, (unsigned* count))                                           \
  X(nvmlDeviceGetHandleByIndex_v2, (unsigned index, NvmlDevice* device))                \
  X(nvmlDeviceGetName, (NvmlDevice device, char* text, unsigned length))                \
  X(nvmlDeviceGetUUID, (NvmlDevice device, char* text, unsigned length))                \
  X(nvmlDeviceGetPciInfo_v3, (NvmlDevice device, NvmlPci * pci))                        \
  X(nvmlDeviceGetMinorNumber, (NvmlDevice device, unsigned* minor))                     \
  X(nvmlDeviceGetCudaComputeCapability, (NvmlDevice device, int* major, int* minor))    \
  X(nvmlDeviceGetMemoryInfo, (NvmlDevice device, NvmlMemory * memory))                  \
  X(nvmlDeviceGetUtilizationRates, (NvmlDevice device, NvmlUtilization * utilization))  \
  X(nvmlDeviceGetTemperature, (NvmlDevice device, int sensor, unsigned* celsius))       \
  X(nvmlDeviceGetPowerUsage, (NvmlDevice device, unsigned* milliwatts))                 \
  X(nvmlDeviceGetEnforcedPowerLimit, (NvmlDevice device, unsigned* milliwatts))         \
  X(nvmlDeviceGetClockInfo, (NvmlDevice device, int clock, unsigned* megahertz))        \
  X(nvmlDeviceGetMaxClockInfo, (NvmlDevice device, int clock, unsigned* megahertz))     \
  X(nvmlDeviceGetCurrentClocksThrottleReasons, (NvmlDevice device, uint64_t * reasons)) \
  X(nvmlDeviceGetCurrPcieLinkGeneration, (NvmlDevice device, unsigned* generation))     \
  X(nvmlDeviceGetMaxPcieLinkGeneration, (NvmlDevice device, unsigned* generation))      \
  X(nvmlDeviceGetCurrPcieLinkWidth, (NvmlDevice device, unsigned* lanes))               \
  X(nvmlDeviceGetMaxPcieLinkWidth, (NvmlDevice device, unsigned* lanes))                \
  X(nvmlDeviceGetPcieThroughput, (NvmlDevice device, int counter, unsigned* kilobytes)) \
  X(nvmlDeviceGetComputeMode, (NvmlDevice device, int* mode))                           \
  X(nvmlDeviceGetPersistenceMode, (NvmlDevice device, int* enabled))                    \
  X(nvmlDeviceGetMigMode, (NvmlDevice device, unsigned* current, unsigned* pending))    \
  X(nvmlDeviceGetTotalEccErrors,                                                        \
    (NvmlDevice device, int type, int counter, unsigned long long* count))              \
  X(nvmlDeviceGetComputeRunningProcesses_v3,                                            \
    (NvmlDevice device, unsigned* count, NvmlProcess* processes))

namespace tracefire::nvidia {

/// NVML's functions; a function that the installed NVML lacks is null, except the basic ones
/// (version, count, handle, name, UUID, memory).
struct NvmlApi {
#define TRACEFIRE_DECLARE(name, arguments) int(*name) arguments = nullptr;
  TRACEFIRE_NVML_FUNCTIONS(TRACEFIRE_DECLARE)
#undef TRACEFIRE_DECLARE
  /// The library's words for a code; "error 12" where it has none.
  std::string describe(int code) const;
  const char* (*nvmlErrorString)(int code) = nullptr;
};

/// Does not call nvmlInit. Errors: kCudaCall where a basic function is missing.
Result<NvmlApi> load_nvml_api(const OpenLibrary& nvml);

}  // namespace tracefire::nvidia
