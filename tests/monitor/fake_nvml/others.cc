// SPDX-License-Identifier: Apache-2.0
// What other programs ask an NVML, under older names too, so that they can be run beside the
// monitor on a machine without a GPU.
#include <algorithm>
#include <vector>

#include "fake.h"

using namespace fake;

extern "C" {
int nvmlInit_v2();
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device);
int nvmlDeviceGetCount_v2(unsigned* count);
int nvmlSystemGetCudaDriverVersion_v2(int* version);
int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* out);
int nvmlDeviceGetUUID(void* device, char* text, unsigned length);
int nvmlDeviceGetPciInfo_v3(void* device, void* out);
}
int fake_processes(const char* function, const char* kind, void* device, unsigned* count,
                   void* out);

namespace {

struct OldProcess {
  unsigned pid;
  uint64_t memory;
};
struct Process {
  unsigned pid;
  uint64_t memory;
  unsigned gi, ci;
};

int old_processes(const char* function, const char* kind, void* device, unsigned* count,
                  OldProcess* out) {
  std::vector<Process> list(std::max(1u, *count));
  const unsigned room = *count;
  const int code = fake_processes(function, kind, device, count, list.data());
  if (code != 0) return code;
  for (unsigned i = 0; i < std::min(room, *count); ++i) out[i] = {list[i].pid, list[i].memory};
  return 0;
}

}  // namespace

TF_EXPORT int nvmlInit() { return nvmlInit_v2(); }
TF_EXPORT int nvmlInitWithFlags(unsigned) { return nvmlInit_v2(); }
TF_EXPORT int nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }
TF_EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, void** device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}
TF_EXPORT int nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}
TF_EXPORT int nvmlDeviceGetPciInfo(void* device, void* out) {
  return nvmlDeviceGetPciInfo_v3(device, out);
}
TF_EXPORT int nvmlDeviceGetPciInfo_v2(void* device, void* out) {
  return nvmlDeviceGetPciInfo_v3(device, out);
}
TF_EXPORT int nvmlDeviceGetIndex(void* device, unsigned* index) {
  *index = static_cast<unsigned>(at(device).gpu);
  return 0;
}
TF_EXPORT int nvmlDeviceGetMinorNumber(void* device, unsigned* number) {
  *number = static_cast<unsigned>(at(device).gpu);
  return 0;
}
TF_EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  for (int i = 0; i < gpu_count(); ++i) {
    char text[96] = "";
    *device = handle_of(i, -1);
    if (nvmlDeviceGetUUID(*device, text, sizeof text) == 0 && std::string(text) == uuid) return 0;
  }
  return 6;
}
TF_EXPORT int nvmlDeviceIsMigDeviceHandle(void* device, unsigned* is) {
  *is = at(device).instance >= 0 ? 1 : 0;
  return 0;
}
TF_EXPORT int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, OldProcess* out) {
  return old_processes("nvmlDeviceGetComputeRunningProcesses", "compute", device, count, out);
}
TF_EXPORT int nvmlDeviceGetGraphicsRunningProcesses(void* device, unsigned* count,
                                                    OldProcess* out) {
  return old_processes("nvmlDeviceGetGraphicsRunningProcesses", "graphics", device, count, out);
}
TF_EXPORT int nvmlDeviceGetDriverModel(void*, int*, int*) { return 3; }  // Windows has one
TF_EXPORT int nvmlDeviceGetDriverModel_v2(void*, int*, int*) { return 3; }
