// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/cuda/cuda_device.h"

namespace tracefire::cuda {

/// A ready kernel by name, from the image that fits the device: machine code of its architecture,
/// else the newest PTX it can take. Images are loaded on first use. kInternal where none has it.
Result<Function> ready_kernel(CudaDevice& device, const std::string& name);

/// True where an image that fits the device holds the kernel.
bool has_ready_kernel(const CudaDevice& device, const std::string& name);

/// Blocks of 256 threads that walk `elements` in steps of the grid; never more than fill the GPU.
LaunchShape grid_over(int64_t elements, const CudaDevice& device);

}  // namespace tracefire::cuda
