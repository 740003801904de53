// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernel_table.h"

namespace tracefire::cuda {

const std::vector<KernelList>& kernel_table() {
  static const std::vector<KernelList>& table =
      *new std::vector<KernelList>(make_kernel_table<KernelSpec>(
          {matmul_kernels, int_matmul_kernels, loop_kernel_specs, random_kernels, reduction_kernels,
           movement_kernels, indexing_kernels, searching_kernels, scattering_kernels,
           composite_kernels},
          /*capturable=*/true,
          [](const KernelSpec& spec, const NodeView& node, DeviceBackend& device) {
            return spec.bind(node, static_cast<CudaDevice&>(device));
          }));
  return table;
}

}  // namespace tracefire::cuda
