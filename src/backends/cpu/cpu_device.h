// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "backends/api/device_backend.h"
#include "backends/api/libraries.h"

namespace tracefire {

/// `count` CPU devices over the one pool of threads: the first is the machine, the others are
/// virtual, with memory of their own, for tests of programs that span devices.
std::vector<std::unique_ptr<DeviceBackend>> make_cpu_devices(int count);

/// oneDNN where this build has it.
std::vector<UsedLibrary> cpu_libraries();

}  // namespace tracefire
