// SPDX-License-Identifier: Apache-2.0
// libnvidia-ml of the emulator: the basic functions. TF_EMU_MIG=1: MIG is on, without an instance.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {
int gpus() {
  const char* value = std::getenv("TF_EMU_GPUS");
  return value == nullptr ? 1 : std::atoi(value);
}
struct Memory {
  uint64_t total, free, used;
};
}  // namespace

#define TF_EXPORT extern "C" __attribute__((visibility("default")))
TF_EXPORT int nvmlInit_v2() {
  const char* value = std::getenv("TF_EMU_NVML");
  return value == nullptr ? 0 : std::atoi(value);
}
TF_EXPORT int nvmlShutdown() { return 0; }
TF_EXPORT const char* nvmlErrorString(int code) {
  return code == 18 ? "Driver/library version mismatch" : "Unknown Error";
}
TF_EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  std::snprintf(text, length, "580.159.04");
  return 0;
}
TF_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(gpus());
  return 0;
}
TF_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<uintptr_t>(index) + 1);
  return 0;
}
TF_EXPORT int nvmlDeviceGetName(void*, char* text, unsigned length) {
  std::snprintf(text, length, "Emulated GPU");
  return 0;
}
TF_EXPORT int nvmlDeviceGetUUID(void*, char* text, unsigned length) {
  std::snprintf(text, length, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  return 0;
}
TF_EXPORT int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {1u << 30, 1u << 29, 1u << 29};
  return 0;
}
TF_EXPORT int nvmlDeviceGetMigMode(void*, unsigned* current, unsigned* pending) {
  *current = *pending = std::getenv("TF_EMU_MIG") == nullptr ? 0 : 1;
  return 0;
}
