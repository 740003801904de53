// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernel_table.h"

namespace tracefire::cpu {

const std::vector<KernelList>& kernel_table() {
  static const std::vector<KernelList>& table =
      *new std::vector<KernelList>(make_kernel_table<KernelSpec>(
          {matmul_kernels, movement_kernels, loop_kernels, reduction_kernels, indexing_kernels,
           composite_kernels, selection_kernels, sorting_kernels, random_kernels, host_kernels},
          /*capturable=*/false, [](const KernelSpec& spec, const NodeView& node, DeviceBackend&) {
            return spec.bind(node);
          }));
  return table;
}

Answer accept_any(const NodeView&) { return Answer::yes(); }

Answer accept_plain(const NodeView& node) {
  for (std::span<const ValueType> types : {node.inputs, node.outputs}) {
    for (const ValueType& type : types) {
      if (type.dtype == DType::kString) return Answer::no("cpu: strings are not numbers");
    }
  }
  return Answer::yes();
}

std::vector<int64_t> sizes_of(const ValueType& type) { return type.shape.sizes(); }

AxisView view_at(const std::vector<int64_t>& sizes, size_t axis) {
  return {product(sizes, 0, axis), sizes[axis], product(sizes, axis + 1, sizes.size())};
}

size_t axis_of(const NodeView& node) {
  return static_cast<size_t>(node.node->attrs.integer("axis"));
}

void report(const LaunchArgs& args, ErrorCode code, int64_t detail) {
  if (args.error == nullptr) return;
  uint32_t expected = 0;
  if (__atomic_compare_exchange_n(&args.error->step_plus_one, &expected, args.step + 1, false,
                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    args.error->code = static_cast<uint32_t>(code);
    args.error->detail = detail;
  }
}

}  // namespace tracefire::cpu
