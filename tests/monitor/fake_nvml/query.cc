// SPDX-License-Identifier: Apache-2.0
// What nvidia-smi's --query-gpu asks beyond the metrics. Usual values are those of an H200.
#include <cstring>

#include "fake.h"

using namespace fake;

namespace {

struct VersionedNumber {
  unsigned version;
  int value;
};
struct PciExt {
  unsigned version, domain, bus, device, id, subsystem, base_class, sub_class;
  char bus_id[32];
};
struct Memory {
  uint64_t total, free, used;
};
struct Fabric {
  unsigned version;
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
  unsigned health;
};
struct Platform {
  unsigned version;
  unsigned char guid[16];
  char chassis[16];
  unsigned char slot, tray, host, peer, module;
};
struct SramErrors {
  unsigned version;
  unsigned long long counts[11];
  unsigned exceeded;
};

constexpr unsigned versioned(size_t size, unsigned number) {
  return static_cast<unsigned>(size) | number << 24;
}
constexpr int kWrongVersion = 25;

}  // namespace

#define NUMBER(function, type, name, usual)                                 \
  TF_EXPORT int function(void* device, type* out) {                         \
    if (const int code = result(#function, device); code != 0) return code; \
    *out = static_cast<type>(value(device, name, usual));                   \
    return 0;                                                               \
  }
#define PAIR(function, type, name, usual)                                   \
  TF_EXPORT int function(void* device, type* one, type* two) {              \
    if (const int code = result(#function, device); code != 0) return code; \
    *one = *two = static_cast<type>(value(device, name, usual));            \
    return 0;                                                               \
  }
#define VERSIONED(function, name, usual)                                             \
  TF_EXPORT int function(void* device, VersionedNumber* out) {                       \
    if (const int code = result(#function, device); code != 0) return code;          \
    if (out->version != versioned(sizeof(VersionedNumber), 1)) return kWrongVersion; \
    out->value = static_cast<int>(value(device, name, usual));                       \
    return 0;                                                                        \
  }

NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, "pcie_generation_max", 5)
NUMBER(nvmlDeviceGetAccountingMode, int, "accounting", 0)
NUMBER(nvmlDeviceGetAccountingBufferSize, unsigned, "accounting_buffer", 4000)
NUMBER(nvmlDeviceGetPowerManagementLimit, unsigned, "power_requested_limit", 700000)
NUMBER(nvmlDeviceGetPowerManagementMode, int, "power_management", 1)
NUMBER(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, "throttle_supported", 511)
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, int, "pages_pending", 0)
PAIR(nvmlDeviceGetGspFirmwareMode, unsigned, "gsp", 1)
VERSIONED(nvmlDeviceGetAddressingMode, "addressing", 0)
VERSIONED(nvmlDeviceGetMarginTemperature, "margin", 59)

TF_EXPORT int nvmlDeviceGetPciInfoExt(void* device, PciExt* out) {
  if (const int code = result("nvmlDeviceGetPciInfoExt", device); code != 0) return code;
  if (out->version != versioned(sizeof(PciExt), 1)) return kWrongVersion;
  out->base_class = 3;
  out->sub_class = 2;
  return 0;
}
TF_EXPORT int nvmlDeviceGetInforomImageVersion(void* device, char* text, unsigned length) {
  if (const int code = result("nvmlDeviceGetInforomImageVersion", device); code != 0) return code;
  return copy_text(gpu(at(device).gpu).value("inforom", "G520.0280.02.02"), text, length);
}
TF_EXPORT int nvmlDeviceGetInforomVersion(void* device, int object, char* text, unsigned length) {
  if (const int code = result("nvmlDeviceGetInforomVersion", device); code != 0) return code;
  if (object == 2) return 3;
  return copy_text(object == 0 ? "2.1" : "7.16", text, length);
}
TF_EXPORT int nvmlDeviceValidateInforom(void* device) {
  return result("nvmlDeviceValidateInforom", device);
}
TF_EXPORT int nvmlDeviceGetEncoderStats(void* device, unsigned* sessions, unsigned* frames,
                                        unsigned* latency) {
  *sessions = 2;
  *frames = 60;
  *latency = 1500;
  return result("nvmlDeviceGetEncoderStats", device);
}
TF_EXPORT int nvmlDeviceGetJpgUtilization(void* device, unsigned* percent, unsigned* period) {
  *percent = 7;
  *period = 167000;
  return result("nvmlDeviceGetJpgUtilization", device);
}
TF_EXPORT int nvmlDeviceGetMemoryErrorCounter(void* device, int kind, int counter, int location,
                                              unsigned long long* out) {
  if (const int code = result("nvmlDeviceGetMemoryErrorCounter", device); code != 0) return code;
  if (location != 2 && location != 7) return 3;
  *out = static_cast<unsigned long long>(1000 * kind + 100 * counter + location);
  return 0;
}
TF_EXPORT int nvmlDeviceGetSramEccErrorStatus(void* device, SramErrors* out) {
  if (const int code = result("nvmlDeviceGetSramEccErrorStatus", device); code != 0) return code;
  if (out->version != versioned(sizeof(SramErrors), 1)) return kWrongVersion;
  for (unsigned i = 0; i < 11; ++i) out->counts[i] = i + 1;
  out->exceeded = 1;
  return 0;
}
TF_EXPORT int nvmlDeviceGetRetiredPages(void* device, int cause, unsigned* count,
                                        unsigned long long*) {
  if (const int code = result("nvmlDeviceGetRetiredPages", device); code != 0) return code;
  *count = cause == 0 ? 3 : 4;
  return 7;  // the array is too small
}
TF_EXPORT int nvmlDeviceGetViolationStatus(void* device, int policy, unsigned long long* out) {
  if (const int code = result("nvmlDeviceGetViolationStatus", device); code != 0) return code;
  out[0] = 1;
  out[1] = policy == 0 ? 2'500'000 : 0;  // nanoseconds
  return 0;
}
TF_EXPORT int nvmlDeviceGetApplicationsClock(void* device, int clock, unsigned* out) {
  *out = clock == 0 ? 1200 : 3000;
  return result("nvmlDeviceGetApplicationsClock", device);
}
TF_EXPORT int nvmlDeviceGetC2cModeInfoV(void* device, unsigned* out) {
  *out = 0;
  return result("nvmlDeviceGetC2cModeInfoV", device);
}
TF_EXPORT int nvmlDeviceGetConfComputeProtectedMemoryUsage(void* device, Memory* out) {
  *out = {4096, 1, 4095};
  return result("nvmlDeviceGetConfComputeProtectedMemoryUsage", device);
}
TF_EXPORT int nvmlDeviceGetGpuFabricInfoV(void* device, Fabric* out) {
  if (const int code = result("nvmlDeviceGetGpuFabricInfoV", device); code != 0) return code;
  if (out->version != versioned(sizeof(Fabric), 2)) return kWrongVersion;
  for (unsigned char i = 0; i < 16; ++i) out->cluster[i] = i;
  out->status = 0;
  out->clique = 5;
  out->state = 3;
  return 0;
}
TF_EXPORT int nvmlDeviceGetPlatformInfo(void* device, Platform* out) {
  if (const int code = result("nvmlDeviceGetPlatformInfo", device); code != 0) return code;
  if (out->version != versioned(sizeof(Platform), 2)) return kWrongVersion;
  std::memset(out->guid, 0, sizeof out->guid);
  std::memset(out->chassis, 0, sizeof out->chassis);
  out->slot = out->tray = out->peer = 0;
  out->host = out->module = 1;
  return 0;
}
