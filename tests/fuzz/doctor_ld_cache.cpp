// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/doctor
//
// libFuzzer entry: any bytes as /etc/ld.so.cache; what is found are absolute paths.
#include <cstdlib>

#include "tools/doctor/read/ld_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const auto& [name, path] :
       tracefire::doctor::parse_ld_cache({reinterpret_cast<const char*>(data), size}))
    if (path.empty() || path[0] != '/' || name.empty()) std::abort();
  return 0;
}
