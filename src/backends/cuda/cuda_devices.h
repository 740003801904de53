// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/api/device_backend.h"
#include "backends/nvidia/stack.h"

namespace tracefire::cuda {

/// The GPUs that can be used, or why there is none.
struct CudaDevices {
  std::vector<std::unique_ptr<DeviceBackend>> devices;
  std::string why_not;  ///< one line with reason and cure; empty where there are devices
};

/// Makes no context yet: that happens when a device is first used. `stack` must outlive the result.
CudaDevices make_cuda_devices(nvidia::Stack& stack);

}  // namespace tracefire::cuda
