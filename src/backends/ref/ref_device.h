// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backends/api/device_backend.h"

namespace tracefire {

/// The oracle as a device of kind "REF": host memory, one naive kernel a row, in double and exact
/// integers. For tests; on no list of another device.
std::unique_ptr<DeviceBackend> make_ref_device(Device device);

}  // namespace tracefire
