// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/doctor
//
// libFuzzer entry: any bytes as a shared library.
#include "tools/doctor/read/elf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  tracefire::doctor::read_elf([&](uint64_t at, size_t count) {
    return at >= bytes.size() ? std::string() : bytes.substr(at, count);
  });
  return 0;
}
