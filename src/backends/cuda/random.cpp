// SPDX-License-Identifier: Apache-2.0
// Random words that loops do not draw (64 bits, counted from an offset), by kernels/random.cu.
#include <string>

#include "backends/cuda/kernel_table.h"
#include "backends/cuda/ready_kernels.h"

namespace tracefire::cuda {
namespace {

Answer accept_bits(const NodeView& node) {
  if (node.inputs.size() < 2) return Answer::yes();
  const DType offset = node.inputs[1].dtype;
  if (is_integer(offset) && offset != DType::kI4 && offset != DType::kU4) return Answer::yes();
  return Answer::no(concat_text("cuda: no offset of ", dtype_name(offset)));
}

BoundLaunch bind_bits(const NodeView& node, CudaDevice& device) {
  const bool philox = node.node->attrs.text("algorithm") == "philox4x32";
  const int64_t elements = elements_of(node.outputs[0]);
  if (elements == 0) return make_launch({}, [](const LaunchArgs&) -> Status { return {}; });
  int32_t width = 0;  // there is no offset
  if (node.inputs.size() > 1) {
    const DType offset = node.inputs[1].dtype;
    width = static_cast<int32_t>(dtype_size(offset));
    if (!is_signed_integer(offset)) width = -width;
  }
  TF_ASSIGN(Function kernel,
            ready_kernel(device, concat_text("tf_random_", philox ? "philox_" : "threefry_",
                                             dtype_name(node.outputs[0].dtype))));
  const LaunchShape shape = grid_over(elements, device);
  return make_launch({kernel.name}, [=](const LaunchArgs& args) {
    return launch_with(lane_of(args.stream), kernel, shape, args.inputs[0],
                       width == 0 ? nullptr : args.inputs[1], width, args.outputs[0], elements);
  });
}

}  // namespace

std::vector<KernelSpec> random_kernels() {
  return {{"random_bits", "cuda_random", accept_bits, bind_bits}};
}

}  // namespace tracefire::cuda
