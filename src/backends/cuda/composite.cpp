// SPDX-License-Identifier: Apache-2.0
// Composites as one kernel each, by kernels/softmax.cu and kernels/optimizer.cu.
#include <algorithm>
#include <cmath>
#include <string>

#include "backends/cuda/kernel_table.h"
#include "backends/cuda/ready_kernels.h"

namespace tracefire::cuda {
namespace {

/// As kernels/softmax.cu numbers them.
enum class SoftmaxMode : int32_t { kSoftmax, kLogSoftmax, kLoss, kLossGrad };

/// As `struct Softmax` of kernels/softmax.cu.
struct Softmax {
  int64_t outer = 1, size = 1, inner = 1;
  int32_t lanes = 1;
  SoftmaxMode mode = SoftmaxMode::kSoftmax;
  int32_t label_bytes = 8;
};

/// As `struct Adam` of kernels/optimizer.cu.
struct Adam {
  int64_t elements = 0;
  double log_beta1 = 0, log_beta2 = 0;
  double left1 = 0, left2 = 0, epsilon = 0;
  int32_t step_kind = 8, rate_kind = 20;
};

bool computed(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

bool whole(DType dtype) { return is_integer(dtype) && dtype != DType::kI4 && dtype != DType::kU4; }

/// Width of an integer, negative where it has no sign.
int32_t signed_bytes(DType dtype) {
  const auto bytes = static_cast<int32_t>(dtype_size(dtype));
  return is_signed_integer(dtype) ? bytes : -bytes;
}

/// As load_scalar of kernels/optimizer.cu tells the types of scalars.
int32_t scalar_kind(DType dtype) {
  if (whole(dtype)) return signed_bytes(dtype);
  return static_cast<int32_t>(dtype_size(dtype)) + (dtype == DType::kBF16 ? 32 : 16);
}

Answer accept_rows(const NodeView& node) {
  if (!computed(node.inputs[0].dtype)) {
    return Answer::no(concat_text("cuda: no softmax of ", dtype_name(node.inputs[0].dtype)));
  }
  if (node.inputs.size() > 1 && !whole(node.inputs[1].dtype)) {
    return Answer::no(concat_text("cuda: no labels of ", dtype_name(node.inputs[1].dtype)));
  }
  return Answer::yes();
}

BoundLaunch bind_softmax(const NodeView& node, CudaDevice& device, Softmax s) {
  const std::vector<int64_t> sizes = node.inputs[0].shape.sizes();
  const bool labelled = node.inputs.size() > 1;
  const size_t axis =
      labelled ? sizes.size() - 1 : static_cast<size_t>(node.node->attrs.integer("axis"));
  s.outer = product(sizes, 0, axis);
  s.size = sizes[axis];
  s.inner = product(sizes, axis + 1, sizes.size());
  if (labelled) s.label_bytes = signed_bytes(node.inputs[1].dtype);
  const int64_t rows = s.outer * s.inner;
  if (rows == 0 || (s.size == 0 && !labelled)) {
    return make_launch({}, [](const LaunchArgs&) -> Status { return {}; });
  }
  // Neighbouring threads read neighbouring elements: along the axis, or across it.
  while (s.inner == 1 && s.lanes < s.size && s.lanes < 32) s.lanes *= 2;
  const bool block = s.size > 1024 || (s.size > 64 && rows * s.lanes < 32 * 1024);
  TF_ASSIGN(Function kernel,
            ready_kernel(device, concat_text("tf_softmax_", dtype_name(node.inputs[0].dtype),
                                             block ? "_rows" : "_lanes")));
  LaunchShape shape;
  if (block) {
    unsigned threads = 64;
    while (threads < 1024 && threads * 4 < s.size) threads *= 2;
    shape.block[0] = threads;
    shape.grid[0] = static_cast<unsigned>(rows);
  } else {
    shape.block[0] = 128;
    shape.grid[0] = static_cast<unsigned>((rows * s.lanes + 127) / 128);
  }
  const bool slope = s.mode == SoftmaxMode::kLossGrad;
  return make_launch({kernel.name}, [=](const LaunchArgs& args) {
    return launch_with(lane_of(args.stream), kernel, shape, args.inputs[0],
                       labelled ? args.inputs[1] : nullptr, slope ? args.inputs[2] : nullptr,
                       args.outputs[0], s, args.error, args.step);
  });
}

template <SoftmaxMode mode>
BoundLaunch bind_rows(const NodeView& node, CudaDevice& device) {
  Softmax s;
  s.mode = mode;
  return bind_softmax(node, device, s);
}

Answer accept_adam(const NodeView& node) {
  const DType dtype = node.inputs[0].dtype, step = node.inputs[4].dtype;
  if (!computed(dtype)) return Answer::no(concat_text("cuda: no Adam of ", dtype_name(dtype)));
  if ((!whole(step) && !computed(step)) || !computed(node.inputs[5].dtype)) {
    return Answer::no(concat_text("cuda: no Adam with a step of ", dtype_name(step),
                                  " and a learning rate of ", dtype_name(node.inputs[5].dtype)));
  }
  return Answer::yes();
}

BoundLaunch bind_adam(const NodeView& node, CudaDevice& device) {
  const Attrs& attrs = node.node->attrs;
  const double beta1 = attrs.real("beta1"), beta2 = attrs.real("beta2");
  Adam a;
  a.elements = elements_of(node.inputs[0]);
  a.log_beta1 = std::log(beta1);
  a.log_beta2 = std::log(beta2);
  a.left1 = 1 - beta1;
  a.left2 = 1 - beta2;
  a.epsilon = attrs.real("epsilon");
  a.step_kind = scalar_kind(node.inputs[4].dtype);
  a.rate_kind = scalar_kind(node.inputs[5].dtype);
  if (a.elements == 0) return make_launch({}, [](const LaunchArgs&) -> Status { return {}; });
  const DType dtype = node.inputs[0].dtype;
  TF_ASSIGN(Function kernel, ready_kernel(device, concat_text("tf_adam_", dtype_name(dtype))));
  const int64_t group = 16 / static_cast<int64_t>(dtype_size(dtype));
  const LaunchShape shape = grid_over((a.elements + group - 1) / group, device);
  return make_launch({kernel.name}, [=](const LaunchArgs& args) {
    return launch_with(lane_of(args.stream), kernel, shape, args.inputs[0], args.inputs[1],
                       args.inputs[2], args.inputs[3], args.inputs[4], args.inputs[5],
                       args.outputs[0], args.outputs[1], args.outputs[2], a);
  });
}

}  // namespace

std::vector<KernelSpec> composite_kernels() {
  return {
      {"softmax", "cuda_softmax", accept_rows, bind_rows<SoftmaxMode::kSoftmax>},
      {"log_softmax", "cuda_softmax", accept_rows, bind_rows<SoftmaxMode::kLogSoftmax>},
      {"softmax_cross_entropy", "cuda_cross_entropy", accept_rows, bind_rows<SoftmaxMode::kLoss>},
      {"softmax_cross_entropy_grad", "cuda_cross_entropy", accept_rows,
       bind_rows<SoftmaxMode::kLossGrad>},
      {"adam_update", "cuda_adam", accept_adam, bind_adam, /*in_place=*/true}};
}

}  // namespace tracefire::cuda
