// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "backends/nvidia/nvml_api.h"

namespace tracefire::nvidia {

// What a monitor reads beyond NvmlApi. Every function is optional: which of them an installed NVML
// has depends on the driver, and which of them answer depends on the GPU and on permissions.

struct NvmlMemoryV2 {
  unsigned version;   ///< kNvmlMemoryV2
  uint64_t total;     ///< bytes
  uint64_t reserved;  ///< taken by driver and firmware; nvidia-smi leaves it out of `used`
  uint64_t free;
  uint64_t used;
};
inline constexpr unsigned kNvmlMemoryV2 = sizeof(NvmlMemoryV2) | 2u << 24;

struct NvmlBar1 {
  uint64_t total;  ///< bytes
  uint64_t free;
  uint64_t used;
};
struct NvmlProcessSample {
  unsigned pid;
  uint64_t timestamp;  ///< microseconds since 1970
  unsigned sm;         ///< percent
  unsigned memory;
  unsigned encoder;
  unsigned decoder;
};
struct NvmlFieldValue {
  unsigned field;
  unsigned scope;
  int64_t timestamp;
  int64_t latency;
  int type;    ///< which member of the union is set, see as_number()
  int result;  ///< an NVML code for this field alone
  union {
    double real;
    unsigned u32;
    unsigned long ulong_value;
    unsigned long long u64;
    long long i64;
    int i32;
    unsigned short u16;
  } value;

  double as_number() const;
};
struct NvmlEventData {
  NvmlDevice device;
  unsigned long long type;
  unsigned long long data;  ///< number of an Xid error
  unsigned gpu_instance;
  unsigned compute_instance;
};
using NvmlEventSet = struct NvmlEventSetOpaque*;
using NvmlGpmSample = struct NvmlGpmSampleOpaque*;
struct NvmlGpmMetric {
  unsigned metric;
  int result;
  double value;
  const char* names[3];
};
/// NVML reads and writes `count` metrics only, so the array may be shorter than the header's.
struct NvmlGpmQuery {
  unsigned version = 1;
  unsigned count = 0;
  NvmlGpmSample older = nullptr;
  NvmlGpmSample newer = nullptr;
  NvmlGpmMetric metrics[16] = {};
};
struct NvmlGpmSupport {
  unsigned version = 1;
  unsigned supported = 0;
};

enum NvmlField : unsigned {
  kNvmlFieldMemoryTemperature = 82,
  kNvmlFieldNvlinkTx = 138,  ///< KiB of data since the driver was loaded, all links for scope ~0
  kNvmlFieldNvlinkRx = 139,
  kNvmlFieldPowerAverage = 185,  ///< milliwatts
  kNvmlFieldPowerInstant = 186,
};
enum NvmlGpmMetricId : unsigned {
  kNvmlGpmEngine = 1,  ///< percent, like the other utilisations
  kNvmlGpmSm = 2,
  kNvmlGpmOccupancy = 3,
  kNvmlGpmTensor = 5,
  kNvmlGpmDram = 10,
  kNvmlGpmPcieTx = 20,  ///< MiB a second
  kNvmlGpmPcieRx = 21,
  kNvmlGpmNvlinkRx = 60,
  kNvmlGpmNvlinkTx = 61,
};
inline constexpr unsigned long long kNvmlEventXid = 8;
inline constexpr int kNvmlMaxLinks = 36;
inline constexpr int kNvmlThresholdSlowdown = 1;

}  // namespace tracefire::nvidia

/// Functions of NVML: name, arguments. All return 0 for success.
#define TRACEFIRE_NVML_MONITOR_FUNCTIONS(X)                                                      \
  X(nvmlSystemGetNVMLVersion, (char* text, unsigned length))                                     \
  X(nvmlSystemGetCudaDriverVersion_v2, (int* version))                                           \
  X(nvmlDeviceGetMemoryInfo_v2, (NvmlDevice device, NvmlMemoryV2 * memory))                      \
  X(nvmlDeviceGetBAR1MemoryInfo, (NvmlDevice device, NvmlBar1 * memory))                         \
  X(nvmlDeviceGetSerial, (NvmlDevice device, char* text, unsigned length))                       \
  X(nvmlDeviceGetVbiosVersion, (NvmlDevice device, char* text, unsigned length))                 \
  X(nvmlDeviceGetPerformanceState, (NvmlDevice device, int* state))                              \
  X(nvmlDeviceGetFanSpeed, (NvmlDevice device, unsigned* percent))                               \
  X(nvmlDeviceGetEncoderUtilization, (NvmlDevice device, unsigned* percent, unsigned* period))   \
  X(nvmlDeviceGetDecoderUtilization, (NvmlDevice device, unsigned* percent, unsigned* period))   \
  X(nvmlDeviceGetTemperatureThreshold, (NvmlDevice device, int kind, unsigned* celsius))         \
  X(nvmlDeviceGetTotalEnergyConsumption, (NvmlDevice device, unsigned long long* millijoules))   \
  X(nvmlDeviceGetPowerManagementDefaultLimit, (NvmlDevice device, unsigned* milliwatts))         \
  X(nvmlDeviceGetPowerManagementLimitConstraints,                                                \
    (NvmlDevice device, unsigned* least, unsigned* most))                                        \
  X(nvmlDeviceGetCurrentClocksEventReasons, (NvmlDevice device, unsigned long long* reasons))    \
  X(nvmlDeviceGetPcieReplayCounter, (NvmlDevice device, unsigned* count))                        \
  X(nvmlDeviceGetNvLinkState, (NvmlDevice device, unsigned link, int* active))                   \
  X(nvmlDeviceGetNvLinkErrorCounter,                                                             \
    (NvmlDevice device, unsigned link, int counter, unsigned long long* count))                  \
  X(nvmlDeviceGetFieldValues, (NvmlDevice device, int count, NvmlFieldValue* values))            \
  X(nvmlDeviceGetEccMode, (NvmlDevice device, int* current, int* pending))                       \
  X(nvmlDeviceGetRemappedRows, (NvmlDevice device, unsigned* corrected, unsigned* uncorrected,   \
                                unsigned* pending, unsigned* failed))                            \
  X(nvmlDeviceGetDisplayActive, (NvmlDevice device, int* active))                                \
  X(nvmlDeviceGetDisplayMode, (NvmlDevice device, int* enabled))                                 \
  X(nvmlDeviceGetGraphicsRunningProcesses_v3,                                                    \
    (NvmlDevice device, unsigned* count, NvmlProcess* processes))                                \
  X(nvmlDeviceGetMPSComputeRunningProcesses_v3,                                                  \
    (NvmlDevice device, unsigned* count, NvmlProcess* processes))                                \
  X(nvmlDeviceGetProcessUtilization,                                                             \
    (NvmlDevice device, NvmlProcessSample * samples, unsigned* count, unsigned long long since)) \
  X(nvmlDeviceGetMaxMigDeviceCount, (NvmlDevice device, unsigned* count))                        \
  X(nvmlDeviceGetMigDeviceHandleByIndex,                                                         \
    (NvmlDevice device, unsigned index, NvmlDevice* instance))                                   \
  X(nvmlDeviceGetGpuInstanceId, (NvmlDevice device, unsigned* id))                               \
  X(nvmlDeviceGetComputeInstanceId, (NvmlDevice device, unsigned* id))                           \
  X(nvmlGpmQueryDeviceSupport, (NvmlDevice device, NvmlGpmSupport * support))                    \
  X(nvmlGpmSampleAlloc, (NvmlGpmSample * sample))                                                \
  X(nvmlGpmSampleFree, (NvmlGpmSample sample))                                                   \
  X(nvmlGpmSampleGet, (NvmlDevice device, NvmlGpmSample sample))                                 \
  X(nvmlGpmMigSampleGet, (NvmlDevice device, unsigned gpu_instance, NvmlGpmSample sample))       \
  X(nvmlGpmMetricsGet, (NvmlGpmQuery * query))                                                   \
  X(nvmlEventSetCreate, (NvmlEventSet * set))                                                    \
  X(nvmlDeviceRegisterEvents, (NvmlDevice device, unsigned long long types, NvmlEventSet set))   \
  X(nvmlEventSetWait_v2, (NvmlEventSet set, NvmlEventData * data, unsigned milliseconds))        \
  X(nvmlEventSetFree, (NvmlEventSet set))

namespace tracefire::nvidia {

/// A function that the installed NVML lacks is null.
struct NvmlMonitorApi {
#define TRACEFIRE_DECLARE(name, arguments) int(*name) arguments = nullptr;
  TRACEFIRE_NVML_MONITOR_FUNCTIONS(TRACEFIRE_DECLARE)
#undef TRACEFIRE_DECLARE
};

NvmlMonitorApi load_nvml_monitor_api(const OpenLibrary& nvml);

}  // namespace tracefire::nvidia
