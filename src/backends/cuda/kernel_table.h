// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "backends/api/kernel_table.h"
#include "backends/cuda/cuda_device.h"

namespace tracefire::cuda {

using KernelSpec = BasicKernelSpec<BoundLaunch (*)(const NodeView& node, CudaDevice& device)>;

/// Kernels of each op, best first, indexed by OpId.
const std::vector<KernelList>& kernel_table();

// Families; the order of one op's kernels is the order of preference.
std::vector<KernelSpec> loop_kernel_specs();
std::vector<KernelSpec> matmul_kernels();
std::vector<KernelSpec> reduction_kernels();
std::vector<KernelSpec> movement_kernels();
std::vector<KernelSpec> indexing_kernels();
std::vector<KernelSpec> scattering_kernels();
std::vector<KernelSpec> searching_kernels();
std::vector<KernelSpec> composite_kernels();
std::vector<KernelSpec> int_matmul_kernels();
std::vector<KernelSpec> random_kernels();

/// Compiles together the loops of these nodes that have a kernel, for likely sizes.
Status prepare_loops(std::span<const NodeView> nodes, CudaDevice& device);

}  // namespace tracefire::cuda
