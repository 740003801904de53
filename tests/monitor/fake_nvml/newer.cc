// SPDX-License-Identifier: Apache-2.0
// What newer releases of NVML added.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "fake.h"

using namespace fake;

int fake_processes(const char* function, const char* kind, void* device, unsigned* count,
                   void* out);

namespace {

struct MemoryV2 {
  unsigned version;
  uint64_t total, reserved, free, used;
};
struct Bar1 {
  uint64_t total, free, used;
};
struct Sample {
  unsigned pid;
  uint64_t timestamp;
  unsigned sm, memory, encoder, decoder;
};
struct Field {
  unsigned field, scope;
  int64_t timestamp, latency;
  int type, result;
  unsigned long long value;
};
struct Event {
  void* device;
  unsigned long long type, data;
  unsigned gi, ci;
};
struct GpmMetric {
  unsigned metric;
  int result;
  double value;
  const char* names[3];
};
struct GpmQuery {
  unsigned version, count;
  void* older;
  void* newer;
  GpmMetric metrics[16];
};
struct GpmState {
  void* device = nullptr;
  int gpu_instance = -1;
};
struct GpmSupport {
  unsigned version, supported;
};

std::set<std::pair<int, int>> delivered;
int event_set;

}  // namespace

#define NUMBER(function, type, name, usual)                                 \
  TF_EXPORT int function(void* device, type* out) {                         \
    if (const int code = result(#function, device); code != 0) return code; \
    *out = static_cast<type>(value(device, name, usual));                   \
    return 0;                                                               \
  }
#define TEXT(function, key, usual)                                          \
  TF_EXPORT int function(void* device, char* text, unsigned length) {       \
    if (const int code = result(#function, device); code != 0) return code; \
    return copy_text(gpu(at(device).gpu).value(key, usual), text, length);  \
  }

TF_EXPORT int nvmlSystemGetNVMLVersion(char* text, unsigned length) {
  return copy_text("13.580.159.04", text, length);
}
TF_EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = config().value("cuda", 13000);
  return 0;
}
TF_EXPORT int nvmlDeviceGetMemoryInfo_v2(void* device, void* out) {
  if (const int code = result("nvmlDeviceGetMemoryInfo_v2", device); code != 0) return code;
  auto* memory = static_cast<MemoryV2*>(out);
  if (memory->version != (sizeof(MemoryV2) | 2u << 24)) return 25;
  memory->total = static_cast<uint64_t>(value(device, "memory_total", 150754820096.0));
  memory->used = static_cast<uint64_t>(value(device, "memory_used", 101200166912.0));
  memory->reserved = static_cast<uint64_t>(value(device, "memory_reserved", 659554304.0));
  memory->free = memory->total - memory->used - memory->reserved;
  return 0;
}
TF_EXPORT int nvmlDeviceGetBAR1MemoryInfo(void* device, void* out) {
  if (const int code = result("nvmlDeviceGetBAR1MemoryInfo", device); code != 0) return code;
  *static_cast<Bar1*>(out) = {274877906944ull, 274875809792ull, 2097152ull};
  return 0;
}
TEXT(nvmlDeviceGetSerial, "serial", "1654922000123")
TEXT(nvmlDeviceGetVbiosVersion, "vbios", "96.00.B4.00.05")
NUMBER(nvmlDeviceGetPerformanceState, int, "pstate", 0)
TF_EXPORT int nvmlDeviceGetFanSpeed(void* device, unsigned* out) {
  if (const int code = result("nvmlDeviceGetFanSpeed", device); code != 0) return code;
  const double percent = value(device, "fan", -1);
  *out = static_cast<unsigned>(std::max(percent, 0.0));
  return percent < 0 ? 3 : 0;  // this GPU is cooled by the machine's fans
}
TF_EXPORT int nvmlDeviceGetEncoderUtilization(void* device, unsigned* percent, unsigned* period) {
  *percent = 0;
  *period = 167000;
  return result("nvmlDeviceGetEncoderUtilization", device);
}
TF_EXPORT int nvmlDeviceGetDecoderUtilization(void* device, unsigned* percent, unsigned* period) {
  *percent = 0;
  *period = 167000;
  return result("nvmlDeviceGetDecoderUtilization", device);
}
TF_EXPORT int nvmlDeviceGetTemperatureThreshold(void* device, int, unsigned* out) {
  *out = static_cast<unsigned>(value(device, "slowdown_temperature", 92));
  return result("nvmlDeviceGetTemperatureThreshold", device);
}
NUMBER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, "energy", 123456789)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, "power_default_limit", 700000)
TF_EXPORT int nvmlDeviceGetPowerManagementLimitConstraints(void* device, unsigned* least,
                                                           unsigned* most) {
  *least = 200000;
  *most = 700000;
  return result("nvmlDeviceGetPowerManagementLimitConstraints", device);
}
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, "throttle", 0)
NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned, "pcie_replays", 0)
TF_EXPORT int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* active) {
  if (const int code = result("nvmlDeviceGetNvLinkState", device); code != 0) return code;
  const auto links = static_cast<unsigned>(value(device, "nvlinks", 18));
  *active = link < links ? 1 : 0;
  return link < 18 ? 0 : 2;
}
TF_EXPORT int nvmlDeviceGetNvLinkErrorCounter(void* device, unsigned, int,
                                              unsigned long long* count) {
  *count = static_cast<unsigned long long>(value(device, "nvlink_errors", 0));
  return result("nvmlDeviceGetNvLinkErrorCounter", device);
}
TF_EXPORT int nvmlDeviceGetFieldValues(void* device, int count, void* out) {
  if (const int code = result("nvmlDeviceGetFieldValues", device); code != 0) return code;
  auto* fields = static_cast<Field*>(out);
  for (int i = 0; i < count; ++i) {
    Field& f = fields[i];
    f.type = 3;
    f.result = 0;
    switch (f.field) {
      case 82:
        f.value = static_cast<unsigned long long>(value(device, "memory_temperature", 61));
        break;
      case 138:
        f.value = static_cast<unsigned long long>(value(device, "nvlink_tx", 1e6));
        break;
      case 139:
        f.value = static_cast<unsigned long long>(value(device, "nvlink_rx", 2e6));
        break;
      case 185:
      case 186:
        f.value = static_cast<unsigned long long>(value(device, "power", 612340));
        break;
      case 230:
        f.value = static_cast<unsigned long long>(value(device, "recovery_action", 0));
        break;
      default:
        f.result = 3;
    }
  }
  return 0;
}
TF_EXPORT int nvmlDeviceGetEccMode(void* device, int* current, int* pending) {
  *current = *pending = static_cast<int>(value(device, "ecc", 1));
  return result("nvmlDeviceGetEccMode", device);
}
TF_EXPORT int nvmlDeviceGetRemappedRows(void* device, unsigned* corrected, unsigned* uncorrected,
                                        unsigned* pending, unsigned* failed) {
  *corrected = *uncorrected = *pending = *failed = 0;
  return result("nvmlDeviceGetRemappedRows", device);
}
NUMBER(nvmlDeviceGetDisplayActive, int, "display_active", 0)
NUMBER(nvmlDeviceGetDisplayMode, int, "display_mode", 0)
TF_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void* device, unsigned* count, void* out) {
  return fake_processes("nvmlDeviceGetGraphicsRunningProcesses_v3", "graphics", device, count, out);
}
TF_EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(void* device, unsigned* count, void* out) {
  return fake_processes("nvmlDeviceGetMPSComputeRunningProcesses_v3", "mps", device, count, out);
}
TF_EXPORT int nvmlDeviceGetProcessUtilization(void* device, void* out, unsigned* count,
                                              unsigned long long since) {
  if (const int code = result("nvmlDeviceGetProcessUtilization", device); code != 0) return code;
  const Json& g = gpu(at(device).gpu);
  const unsigned room = out == nullptr ? 0 : *count;
  unsigned n = 0;
  if (g.contains("processes")) {
    for (const Json& p : g["processes"]) {
      if (!p.contains("sm")) continue;
      if (n < room) {
        static_cast<Sample*>(out)[n] = {p.value("pid", 0u), since + 1, p.value("sm", 0u),
                                        p.value("mem", 0u), 0,         0};
      }
      ++n;
    }
  }
  *count = n;
  if (n == 0) return 6;
  return n > room ? 7 : 0;
}
TF_EXPORT int nvmlDeviceGetMaxMigDeviceCount(void* device, unsigned* count) {
  *count = 7;
  return result("nvmlDeviceGetMaxMigDeviceCount", device);
}
TF_EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** instance) {
  const Json& g = gpu(at(device).gpu);
  if (!g.contains("mig") || index >= g["mig"].size()) return 6;
  *instance = handle_of(at(device).gpu, static_cast<int>(index));
  return 0;
}
TF_EXPORT int nvmlDeviceGetGpuInstanceId(void* device, unsigned* id) {
  const Handle& handle = at(device);
  if (handle.instance < 0) return 2;
  *id = gpu(handle.gpu)["mig"][static_cast<size_t>(handle.instance)].value("gi", 0u);
  return 0;
}
TF_EXPORT int nvmlDeviceGetComputeInstanceId(void* device, unsigned* id) {
  const Handle& handle = at(device);
  if (handle.instance < 0) return 2;
  *id = gpu(handle.gpu)["mig"][static_cast<size_t>(handle.instance)].value("ci", 0u);
  return 0;
}
TF_EXPORT int nvmlGpmQueryDeviceSupport(void* device, void* out) {
  static_cast<GpmSupport*>(out)->supported = value(device, "gpm", 1) != 0 ? 1 : 0;
  return result("nvmlGpmQueryDeviceSupport", device);
}
TF_EXPORT int nvmlGpmSampleAlloc(void** sample) {
  *sample = new GpmState;
  return 0;
}
TF_EXPORT int nvmlGpmSampleFree(void* sample) {
  delete static_cast<GpmState*>(sample);
  return 0;
}
TF_EXPORT int nvmlGpmSampleGet(void* device, void* sample) {
  static_cast<GpmState*>(sample)->device = device;
  return result("nvmlGpmSampleGet", device);
}
TF_EXPORT int nvmlGpmMigSampleGet(void* device, unsigned gpu_instance, void* sample) {
  auto* state = static_cast<GpmState*>(sample);
  state->device = device;
  const Json& mig = gpu(at(device).gpu)["mig"];
  for (size_t i = 0; i < mig.size(); ++i) {
    if (mig[i].value("gi", 0u) == gpu_instance) {
      state->device = handle_of(at(device).gpu, static_cast<int>(i));
    }
  }
  return result("nvmlGpmMigSampleGet", device);
}
TF_EXPORT int nvmlGpmMetricsGet(void* query_pointer) {
  auto* query = static_cast<GpmQuery*>(query_pointer);
  if (query->version != 1) return 25;
  if (const int code = result("nvmlGpmMetricsGet"); code != 0) return code;
  auto* older = static_cast<GpmState*>(query->older);
  auto* newer = static_cast<GpmState*>(query->newer);
  if (older->device != newer->device) return 2;  // samples of two GPUs
  void* device = newer->device;
  for (unsigned i = 0; i < query->count; ++i) {
    GpmMetric& m = query->metrics[i];
    m.result = 0;
    const auto percent = [&](const char* name, double usual) {
      m.value = std::clamp(swinging(device, name, usual), 0.0, 100.0);
    };
    switch (m.metric) {
      case 1:
        percent("engine", 88);
        break;
      case 2:
        percent("sm", 71.5);
        break;
      case 3:
        percent("occupancy", 33);
        break;
      case 5:
        percent("tensor", 48);
        break;
      case 10:
        percent("dram", 37);
        break;
      case 20:
        m.value = value(device, "gpm_pcie_tx", 295.5);
        break;
      case 21:
        m.value = value(device, "gpm_pcie_rx", 1190.25);
        break;
      case 60:
        m.value = value(device, "gpm_nvlink_rx", 0);
        break;
      case 61:
        m.value = value(device, "gpm_nvlink_tx", 0);
        break;
      default:
        m.result = 3;
    }
  }
  return 0;
}
TF_EXPORT int nvmlEventSetCreate(void** set) {
  *set = &event_set;
  return result("nvmlEventSetCreate");
}
TF_EXPORT int nvmlDeviceRegisterEvents(void* device, unsigned long long, void*) {
  return result("nvmlDeviceRegisterEvents", device);
}
TF_EXPORT int nvmlEventSetWait_v2(void*, void* out, unsigned) {
  for (int i = 0; i < gpu_count(); ++i) {
    const Json& g = gpu(i);
    if (!g.contains("xids")) continue;
    for (const Json& xid : g["xids"]) {
      if (!delivered.insert({i, xid.value("id", 0)}).second) continue;
      *static_cast<Event*>(out) = {handle_of(i, -1), 8, xid.value("xid", 0ull), ~0u, ~0u};
      return 0;
    }
  }
  return 10;
}
TF_EXPORT int nvmlEventSetFree(void*) { return 0; }
