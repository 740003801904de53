// SPDX-License-Identifier: Apache-2.0
// Movement by numbers that are data, by the ready kernels of kernels/movement.cu.
#include <string>

#include "backends/cuda/kernel_table.h"
#include "backends/cuda/ready_kernels.h"

namespace tracefire::cuda {
namespace {

/// As `struct Gather` of kernels/movement.cu: arrays seen as [outer, size or count, inner].
struct Gather {
  int64_t outer = 1, size = 1, inner = 1, count = 1;
  int32_t index_bytes = 8;
};

bool index_type(DType dtype) {
  return is_integer(dtype) && dtype != DType::kI4 && dtype != DType::kU4;
}

/// Width of an index, negative where its type has no sign.
int32_t index_bytes(DType dtype) {
  const auto bytes = static_cast<int32_t>(dtype_size(dtype));
  return is_signed_integer(dtype) ? bytes : -bytes;
}

/// Accepts nodes whose input number `index` holds indices.
template <size_t index>
Answer accept_indices(const NodeView& node) {
  if (node.inputs[0].dtype == DType::kString) return Answer::no("cuda: strings live on the host");
  const DType dtype = node.inputs[index].dtype;
  if (index_type(dtype)) return Answer::yes();
  return Answer::no(
      concat_text("cuda: indices of type ", dtype_name(dtype), "; integers of 8 to 64 bits are"));
}

Gather around_axis(const NodeView& node, const ValueType& index) {
  const std::vector<int64_t> sizes = node.inputs[0].shape.sizes();
  const auto axis = static_cast<size_t>(node.node->attrs.integer("axis"));
  Gather g;
  g.outer = product(sizes, 0, axis);
  g.size = sizes[axis];
  g.inner = product(sizes, axis + 1, sizes.size());
  g.index_bytes = index_bytes(index.dtype);
  return g;
}

int64_t size_at_axis(const NodeView& node, const ValueType& type) {
  return type.shape[static_cast<int>(node.node->attrs.integer("axis"))].value();
}

/// A kernel of one launch over `elements`, with data, places and result as its first arguments.
BoundLaunch bind_walk(CudaDevice& device, const std::string& name, const Gather& g,
                      int64_t elements, size_t data, size_t places) {
  TF_ASSIGN(Function kernel, ready_kernel(device, name));
  const LaunchShape shape = grid_over(elements, device);
  if (elements == 0) return make_launch({}, [](const LaunchArgs&) -> Status { return {}; });
  return make_launch({kernel.name}, [=](const LaunchArgs& args) {
    return launch_with(lane_of(args.stream), kernel, shape, args.inputs[data], args.inputs[places],
                       args.outputs[0], g, args.error, args.step);
  });
}

/// Rows of whole 16-byte words are moved as such.
size_t widest(Gather* g, DType dtype) {
  const auto size = static_cast<int64_t>(dtype_size(dtype));
  if (g->inner * size % 16 != 0 || g->inner == 0) return static_cast<size_t>(size);
  g->inner = g->inner * size / 16;
  return 16;
}

BoundLaunch bind_gather(const NodeView& node, CudaDevice& device) {
  Gather g = around_axis(node, node.inputs[1]);
  g.count = elements_of(node.inputs[1]);
  const size_t bytes = widest(&g, node.inputs[0].dtype);
  return bind_walk(device, concat_text("tf_gather_", bytes), g, g.outer * g.count * g.inner, 0, 1);
}

BoundLaunch bind_gather_along(const NodeView& node, CudaDevice& device) {
  Gather g = around_axis(node, node.inputs[1]);
  g.count = size_at_axis(node, node.inputs[1]);
  return bind_walk(device, concat_text("tf_gather_along_", dtype_size(node.inputs[0].dtype)), g,
                   g.outer * g.count * g.inner, 0, 1);
}

BoundLaunch bind_dynamic_slice(const NodeView& node, CudaDevice& device) {
  Gather g = around_axis(node, node.inputs[1]);
  g.count = size_at_axis(node, node.outputs[0]);
  return bind_walk(device, concat_text("tf_slice_at_", dtype_size(node.inputs[0].dtype)), g,
                   g.outer * g.count * g.inner, 0, 1);
}

BoundLaunch bind_dynamic_update_slice(const NodeView& node, CudaDevice& device) {
  Gather g = around_axis(node, node.inputs[2]);
  g.count = size_at_axis(node, node.inputs[1]);
  TF_ASSIGN(Function kernel,
            ready_kernel(device, concat_text("tf_update_at_", dtype_size(node.inputs[0].dtype))));
  const int64_t elements = g.outer * g.count * g.inner;
  const LaunchShape shape = grid_over(elements, device);
  const size_t bytes =
      static_cast<size_t>(elements_of(node.outputs[0])) * dtype_size(node.outputs[0].dtype);
  CudaDevice* owner = &device;
  return make_launch({kernel.name}, [=](const LaunchArgs& args) -> Status {
    if (args.inputs[0] != args.outputs[0] && bytes > 0) {
      TF_RETURN_IF_ERROR(owner->copy(args.stream, args.outputs[0], args.inputs[0], bytes));
    }
    if (elements == 0) return {};
    return launch_with(lane_of(args.stream), kernel, shape, args.inputs[1], args.inputs[2],
                       args.outputs[0], g, args.error, args.step);
  });
}

Answer accept_check_range(const NodeView& node) {
  const DType dtype = node.inputs[0].dtype;
  if (is_integer(dtype) && dtype != DType::kI4 && dtype != DType::kU4) return Answer::yes();
  return Answer::no(concat_text("cuda: no check of ", dtype_name(dtype), " elements"));
}

BoundLaunch bind_check_range(const NodeView& node, CudaDevice& device) {
  TF_ASSIGN(const std::vector<int64_t> limits, numbers_of(node, node.node->attrs.shape("limit")));
  const int64_t limit = limits[0], elements = elements_of(node.inputs[0]);
  TF_ASSIGN(Function kernel,
            ready_kernel(device, concat_text("tf_check_range_", dtype_name(node.inputs[0].dtype))));
  const LaunchShape shape = grid_over(elements, device);
  if (elements == 0) return make_launch({}, [](const LaunchArgs&) -> Status { return {}; });
  return make_launch({kernel.name}, [=](const LaunchArgs& args) {
    return launch_with(lane_of(args.stream), kernel, shape, args.inputs[0], args.outputs[0],
                       elements, limit, args.error, args.step);
  });
}

}  // namespace

std::vector<KernelSpec> indexing_kernels() {
  return {{"gather", "cuda_gather", accept_indices<1>, bind_gather},
          {"gather_along", "cuda_gather_along", accept_indices<1>, bind_gather_along},
          {"dynamic_slice", "cuda_dynamic_slice", accept_indices<1>, bind_dynamic_slice},
          {"dynamic_update_slice", "cuda_dynamic_update_slice", accept_indices<2>,
           bind_dynamic_update_slice, /*in_place=*/true},
          {"check_range", "cuda_check_range", accept_check_range, bind_check_range,
           /*in_place=*/true}};
}

}  // namespace tracefire::cuda
