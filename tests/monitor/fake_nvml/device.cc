// SPDX-License-Identifier: Apache-2.0
// What every NVML has: names, memory, utilisation, power, temperature, clocks, links, processes.
#include <cmath>
#include <cstdio>

#include "fake.h"

using namespace fake;

namespace {

constexpr double kTotal = 150754820096.0;

struct Memory {
  uint64_t total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct Process {
  unsigned pid;
  uint64_t memory;
  unsigned gi, ci;
};
struct Pci {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
};

unsigned rounded(double number) { return static_cast<unsigned>(std::lround(std::fmax(number, 0))); }

std::string identity(void* device, const char* key, const std::string& other) {
  const Handle& handle = at(device);
  const Json& g = gpu(handle.gpu);
  if (handle.instance >= 0) return g["mig"][static_cast<size_t>(handle.instance)].value(key, other);
  return g.value(key, other);
}

}  // namespace

/// The processes of one kind, in NVML's protocol: too small an array gets the count.
int fake_processes(const char* function, const char* kind, void* device, unsigned* count,
                   void* out) {
  if (const int code = result(function, device); code != 0) return code;
  std::vector<Process> list;
  const Json& g = gpu(at(device).gpu);
  if (g.contains("processes")) {
    for (const Json& p : g["processes"]) {
      if (p.value("kind", "compute") != kind) continue;
      // "pid_of_test" stands for the process that runs the test.
      list.push_back({p.value("pid", 0u),
                      p.contains("memory") ? p["memory"].get<uint64_t>() : ~0ull,
                      p.value("gi", ~0u), p.value("ci", ~0u)});
    }
  }
  const unsigned room = *count;
  *count = static_cast<unsigned>(list.size());
  if (list.size() > room) return 7;
  std::copy(list.begin(), list.end(), static_cast<Process*>(out));
  return 0;
}

#define NUMBER(function, type, name, usual)                                 \
  TF_EXPORT int function(void* device, type* out) {                         \
    if (const int code = result(#function, device); code != 0) return code; \
    *out = static_cast<type>(value(device, name, usual));                   \
    return 0;                                                               \
  }

TF_EXPORT int nvmlDeviceGetName(void* device, char* text, unsigned length) {
  if (const int code = result("nvmlDeviceGetName", device); code != 0) return code;
  return copy_text(identity(device, "name", "NVIDIA H200"), text, length);
}
TF_EXPORT int nvmlDeviceGetUUID(void* device, char* text, unsigned length) {
  if (const int code = result("nvmlDeviceGetUUID", device); code != 0) return code;
  char usual[64];
  std::snprintf(usual, sizeof usual, "GPU-00000000-0000-0000-0000-%012d", at(device).gpu);
  const bool copied = config().contains("copies");
  return copy_text(copied ? usual : identity(device, "uuid", usual), text, length);
}
TF_EXPORT int nvmlDeviceGetPciInfo_v3(void* device, void* out) {
  if (const int code = result("nvmlDeviceGetPciInfo_v3", device); code != 0) return code;
  Pci pci{};
  char usual[32];
  std::snprintf(usual, sizeof usual, "00000000:%02X:00.0", at(device).gpu + 1);
  copy_text(identity(device, "pci", usual), pci.bus_id, sizeof pci.bus_id);
  *static_cast<Pci*>(out) = pci;
  return 0;
}
TF_EXPORT int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  if (const int code = result("nvmlDeviceGetCudaComputeCapability", device); code != 0) return code;
  *major = 9;
  *minor = 0;
  return 0;
}
TF_EXPORT int nvmlDeviceGetMemoryInfo(void* device, void* out) {
  if (const int code = result("nvmlDeviceGetMemoryInfo", device); code != 0) return code;
  const auto total = static_cast<uint64_t>(value(device, "memory_total", kTotal));
  const auto used = static_cast<uint64_t>(value(device, "memory_used", 101200166912.0));
  const auto reserved = static_cast<uint64_t>(value(device, "memory_reserved", 659554304.0));
  // This old question counts what is reserved as used.
  *static_cast<Memory*>(out) = {total, total - used - reserved, used + reserved};
  return 0;
}
TF_EXPORT int nvmlDeviceGetUtilizationRates(void* device, void* out) {
  if (const int code = result("nvmlDeviceGetUtilizationRates", device); code != 0) return code;
  *static_cast<Utilization*>(out) = {std::min(100u, rounded(swinging(device, "busy", 87))),
                                     std::min(100u, rounded(swinging(device, "memory_busy", 41)))};
  return 0;
}
TF_EXPORT int nvmlDeviceGetTemperature(void* device, int, unsigned* out) {
  if (const int code = result("nvmlDeviceGetTemperature", device); code != 0) return code;
  *out = rounded(value(device, "temperature", 54) +
                 0.15 * (swinging(device, "temperature", 54) - value(device, "temperature", 54)));
  return 0;
}
TF_EXPORT int nvmlDeviceGetPowerUsage(void* device, unsigned* out) {
  if (const int code = result("nvmlDeviceGetPowerUsage", device); code != 0) return code;
  const double watts = value(device, "power", 612340);
  *out = rounded(watts + 3000 * (swinging(device, "busy", 87) - value(device, "busy", 87)));
  return 0;
}
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, "power_limit", 700000)
TF_EXPORT int nvmlDeviceGetClockInfo(void* device, int which, unsigned* out) {
  if (const int code = result("nvmlDeviceGetClockInfo", device); code != 0) return code;
  const char* const names[] = {"clock_graphics", "clock_sm", "clock_memory", "clock_video"};
  const double usual[] = {1980, 1980, 3201, 1545};
  *out = rounded(value(device, names[which], usual[which]));
  return 0;
}
TF_EXPORT int nvmlDeviceGetMaxClockInfo(void* device, int which, unsigned* out) {
  if (const int code = result("nvmlDeviceGetMaxClockInfo", device); code != 0) return code;
  const double usual[] = {1980, 1980, 3201, 1545};
  *out = rounded(usual[which]);
  return 0;
}
TF_EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* out) {
  if (const int code = result("nvmlDeviceGetCurrentClocksThrottleReasons", device); code != 0) {
    return code;
  }
  *out = static_cast<unsigned long long>(value(device, "throttle", 0));
  return 0;
}
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, "pcie_generation", 5)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, "pcie_generation_max", 5)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "pcie_width", 16)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, "pcie_width_max", 16)
TF_EXPORT int nvmlDeviceGetPcieThroughput(void* device, int counter, unsigned* out) {
  if (const int code = result("nvmlDeviceGetPcieThroughput", device); code != 0) return code;
  *out =
      rounded(value(device, counter == 0 ? "pcie_tx" : "pcie_rx", counter == 0 ? 310000 : 1250000));
  return 0;
}
NUMBER(nvmlDeviceGetComputeMode, int, "compute_mode", 0)
NUMBER(nvmlDeviceGetPersistenceMode, int, "persistence", 1)
TF_EXPORT int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  if (const int code = result("nvmlDeviceGetMigMode", device); code != 0) return code;
  *current = *pending = gpu(at(device).gpu).contains("mig") ? 1 : 0;
  return 0;
}
TF_EXPORT int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter,
                                          unsigned long long* out) {
  if (const int code = result("nvmlDeviceGetTotalEccErrors", device); code != 0) return code;
  const char* const names[2][2] = {{"ecc_corrected", "ecc_corrected_lifetime"},
                                   {"ecc_uncorrected", "ecc_uncorrected_lifetime"}};
  *out = static_cast<unsigned long long>(value(device, names[type][counter], 0));
  return 0;
}
TF_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, void* out) {
  return fake_processes("nvmlDeviceGetComputeRunningProcesses_v3", "compute", device, count, out);
}
