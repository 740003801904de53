// SPDX-License-Identifier: Apache-2.0
// Movement by the ready kernels of kernels/movement.cu: elements are bytes, whatever they mean.
#include <algorithm>
#include <string>

#include "backends/cuda/axes.h"
#include "backends/cuda/kernel_table.h"
#include "backends/cuda/ready_kernels.h"
#include "core/base/element.h"

namespace tracefire::cuda {
namespace {

/// As `struct Move` of kernels/movement.cu.
struct Move {
  Axes in, out;
  int64_t elements = 0, in_base = 0, out_base = 0;
};

Answer accept_bytes(const NodeView& node) {
  for (const auto types : {node.inputs, node.outputs}) {
    for (const ValueType& type : types) {
      if (type.dtype == DType::kString) return Answer::no("cuda: strings live on the host");
    }
  }
  return Answer::yes();
}

std::string by_size(const char* kernel, const ValueType& type) {
  return concat_text(kernel, dtype_size(type.dtype));
}

/// Copies of parts, one launch each.
struct Part {
  size_t input;
  Move move;
};

Result<Move> make_move(const std::vector<int64_t>& sizes, const std::vector<int64_t>& in,
                       const std::vector<int64_t>& out) {
  Move move;
  move.elements = product(sizes, 0, sizes.size());
  if (!make_axes(sizes, in, out, &move.in, &move.out)) {
    return error(ErrorCode::kNoKernel, "a movement over more than ", kMaxRank,
                 " separate axes; reshape the tensor first");
  }
  return move;
}

BoundLaunch bind_parts(const NodeView& node, CudaDevice& device, std::vector<Part> parts,
                       bool filled) {
  TF_ASSIGN(Function kernel, ready_kernel(device, by_size("tf_move_", node.outputs[0])));
  Function fill;
  const int64_t elements = elements_of(node.outputs[0]);
  if (filled) {
    TF_ASSIGN(fill, ready_kernel(device, by_size("tf_fill_", node.outputs[0])));
  }
  std::vector<LaunchShape> shapes;
  std::vector<std::string> symbols;
  if (filled) symbols.push_back(fill.name);
  for (const Part& part : parts) {
    shapes.push_back(grid_over(part.move.elements, device));
    symbols.push_back(kernel.name);
  }
  const LaunchShape whole = grid_over(elements, device);
  return make_launch(std::move(symbols), [=](const LaunchArgs& args) -> Status {
    Lane& lane = lane_of(args.stream);
    if (filled && elements > 0) {
      TF_RETURN_IF_ERROR(launch_with(lane, fill, whole, args.outputs[0], args.inputs[1], elements));
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].move.elements == 0) continue;
      TF_RETURN_IF_ERROR(launch_with(lane, kernel, shapes[i], args.inputs[parts[i].input],
                                     args.outputs[0], parts[i].move));
    }
    return {};
  });
}

BoundLaunch bind_one(const NodeView& node, CudaDevice& device, const std::vector<int64_t>& in,
                     int64_t in_base) {
  const std::vector<int64_t> sizes = node.outputs[0].shape.sizes();
  TF_ASSIGN(Move move, make_move(sizes, in, row_major(sizes)));
  move.in_base = in_base;
  return bind_parts(node, device, {{0, move}}, false);
}

BoundLaunch bind_transpose(const NodeView& node, CudaDevice& device) {
  const std::vector<int64_t> from = row_major(node.inputs[0].shape.sizes());
  std::vector<int64_t> strides;
  for (int64_t axis : node.node->attrs.ints("perm")) {
    strides.push_back(from[static_cast<size_t>(axis)]);
  }
  return bind_one(node, device, strides, 0);
}

BoundLaunch bind_broadcast(const NodeView& node, CudaDevice& device) {
  const std::vector<int64_t> sizes = node.outputs[0].shape.sizes();
  const std::vector<int64_t> given = node.inputs[0].shape.sizes();
  const std::vector<int64_t> from = row_major(given);
  std::vector<int64_t> strides(sizes.size(), 0);
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] != 1) strides[sizes.size() - given.size() + i] = from[i];
  }
  return bind_one(node, device, strides, 0);
}

BoundLaunch bind_slice(const NodeView& node, CudaDevice& device) {
  TF_ASSIGN(const std::vector<int64_t> starts, numbers_of(node, node.node->attrs.shape("starts")));
  const std::vector<int64_t>& steps = node.node->attrs.ints("strides");
  std::vector<int64_t> strides = row_major(node.inputs[0].shape.sizes());
  int64_t base = 0;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    base += starts[axis] * strides[axis];
    if (!steps.empty()) strides[axis] *= steps[axis];
  }
  return bind_one(node, device, strides, base);
}

BoundLaunch bind_reverse(const NodeView& node, CudaDevice& device) {
  const std::vector<int64_t> sizes = node.inputs[0].shape.sizes();
  std::vector<int64_t> strides = row_major(sizes);
  int64_t base = 0;
  for (int64_t axis : node.node->attrs.ints("axes")) {
    const auto a = static_cast<size_t>(axis);
    base += std::max<int64_t>(sizes[a] - 1, 0) * strides[a];
    strides[a] = -strides[a];
  }
  return bind_one(node, device, strides, base);
}

BoundLaunch bind_concat(const NodeView& node, CudaDevice& device) {
  const auto axis = static_cast<size_t>(node.node->attrs.integer("axis"));
  const std::vector<int64_t> strides = row_major(node.outputs[0].shape.sizes());
  std::vector<Part> parts;
  int64_t at = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const std::vector<int64_t> sizes = node.inputs[i].shape.sizes();
    TF_ASSIGN(Move move, make_move(sizes, row_major(sizes), strides));
    move.out_base = at * strides[axis];
    at += sizes[axis];
    parts.push_back({i, move});
  }
  return bind_parts(node, device, std::move(parts), false);
}

BoundLaunch bind_pad(const NodeView& node, CudaDevice& device) {
  TF_ASSIGN(const std::vector<int64_t> low, numbers_of(node, node.node->attrs.shape("low")));
  const std::vector<int64_t>& interior = node.node->attrs.ints("interior");
  const std::vector<int64_t> given = node.inputs[0].shape.sizes();
  const std::vector<int64_t> from = row_major(given);
  const std::vector<int64_t> result = node.outputs[0].shape.sizes();
  const std::vector<int64_t> to = row_major(result);
  std::vector<int64_t> sizes(given.size()), strides(given.size());
  int64_t in_base = 0, out_base = 0;
  for (size_t axis = 0; axis < given.size(); ++axis) {
    const int64_t step = 1 + (interior.empty() ? 0 : interior[axis]);
    // Elements cut off at either end: those whose place is outside the result.
    const int64_t first = low[axis] >= 0 ? 0 : (-low[axis] + step - 1) / step;
    int64_t last = given[axis];
    while (last > first && low[axis] + (last - 1) * step >= result[axis]) --last;
    sizes[axis] = last - first;
    in_base += first * from[axis];
    out_base += (low[axis] + first * step) * to[axis];
    strides[axis] = step * to[axis];
  }
  TF_ASSIGN(Move move, make_move(sizes, from, strides));
  move.in_base = in_base;
  move.out_base = out_base;
  return bind_parts(node, device, {{0, move}}, true);
}

/// As `struct Literal` of kernels/movement.cu.
struct Literal {
  uint8_t bytes[64] = {};
};

Answer accept_constant(const NodeView& node) {
  if (node.outputs[0].dtype == DType::kString) return Answer::no("cuda: strings live on the host");
  const size_t bytes = node.node->attrs.text("bytes").size();
  return bytes <= sizeof(Literal) ? Answer::yes()
                                  : Answer::no(concat_text("cuda: a constant of ", bytes,
                                                           " bytes; 64 fit into an argument"));
}

/// `bytes` again and again, as many as the result takes.
BoundLaunch bind_literal(const NodeView& node, CudaDevice& device, std::string_view bytes) {
  Literal literal;
  std::copy(bytes.begin(), bytes.end(), literal.bytes);
  const auto period = static_cast<int32_t>(bytes.size());
  const int64_t total =
      elements_of(node.outputs[0]) * static_cast<int64_t>(dtype_size(node.outputs[0].dtype));
  if (total == 0) return make_launch({}, [](const LaunchArgs&) -> Status { return {}; });
  TF_ASSIGN(Function kernel, ready_kernel(device, "tf_constant"));
  const LaunchShape shape = grid_over(total, device);
  return make_launch({kernel.name}, [=](const LaunchArgs& args) {
    return launch_with(lane_of(args.stream), kernel, shape, args.outputs[0], literal, period,
                       total);
  });
}

BoundLaunch bind_constant(const NodeView& node, CudaDevice& device) {
  return bind_literal(node, device, node.node->attrs.text("bytes"));
}

/// Sizes have numbers when kernels are bound, so that this is a constant: no copy from the host,
/// and a graph is captured with it.
BoundLaunch bind_extent(const NodeView& node, CudaDevice& device) {
  TF_ASSIGN(const std::vector<int64_t> sizes, numbers_of(node, node.node->attrs.shape("shape")));
  return bind_literal(node, device,
                      element_bytes(product(sizes, 0, sizes.size()), node.outputs[0].dtype));
}

}  // namespace

std::vector<KernelSpec> movement_kernels() {
  return {{"constant", "cuda_constant", accept_constant, bind_constant},
          {"extent", "cuda_extent", accept_bytes, bind_extent},
          {"transpose", "cuda_move", accept_bytes, bind_transpose},
          {"broadcast_to", "cuda_move", accept_bytes, bind_broadcast},
          {"slice", "cuda_move", accept_bytes, bind_slice},
          {"reverse", "cuda_move", accept_bytes, bind_reverse},
          {"concat", "cuda_move", accept_bytes, bind_concat},
          {"pad", "cuda_pad", accept_bytes, bind_pad}};
}

}  // namespace tracefire::cuda
