// SPDX-License-Identifier: Apache-2.0
// Reductions by the ready kernels of kernels/reduce.cu.
#include <algorithm>
#include <string>

#include "backends/cuda/axes.h"
#include "backends/cuda/kernel_table.h"
#include "backends/cuda/ready_kernels.h"

namespace tracefire::cuda {
namespace {

/// As `struct Reduction` of kernels/reduce.cu.
struct Reduction {
  Axes kept, reduced;
  int64_t results = 1, elements = 1;
  int64_t chunk = 1;
  double scale = 1;
};

constexpr int64_t kChunk = 16 * 1024;
constexpr unsigned kThreads = 256;

bool known_number(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16 || dtype == DType::kI32 || dtype == DType::kI64;
}

std::string_view name_of_op(const NodeView& node) {
  return OpTable::instance().name(node.node->op);
}

Answer accept_reduction(const NodeView& node) {
  const std::string_view op = name_of_op(node);
  const DType dtype = node.inputs[0].dtype;
  const bool logical = op == "reduce_any" || op == "reduce_all";
  if (logical ? dtype != DType::kBool : !known_number(dtype)) {
    return Answer::no(concat_text("cuda: no reduction of ", dtype_name(dtype)));
  }
  if (op == "reduce_mean" && !is_floating(dtype)) {
    return Answer::no(concat_text("cuda: no mean of ", dtype_name(dtype)));
  }
  return Answer::yes();
}

/// Splits the axes of the input into those kept and those reduced; false where they are too many.
bool split_axes(const NodeView& node, Reduction* r, bool* rows) {
  const std::vector<int64_t> sizes = node.inputs[0].shape.sizes();
  const std::vector<int64_t> strides = row_major(sizes);
  const std::vector<int64_t>& axes = node.node->attrs.ints("axes");
  std::vector<int64_t> kept, kept_strides, reduced, reduced_strides;
  int64_t innermost = -1;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
    (gone ? reduced : kept).push_back(sizes[axis]);
    (gone ? reduced_strides : kept_strides).push_back(strides[axis]);
    if (sizes[axis] > 1) innermost = gone ? 1 : 0;
  }
  r->results = product(kept, 0, kept.size());
  r->elements = product(reduced, 0, reduced.size());
  *rows = innermost != 0 || r->results < 32;
  Axes same;
  return make_axes(kept, kept_strides, kept_strides, &r->kept, &same) &&
         make_axes(reduced, reduced_strides, reduced_strides, &r->reduced, &same);
}

BoundLaunch bind_reduction(const NodeView& node, CudaDevice& device) {
  Reduction r;
  bool rows = true;
  if (!split_axes(node, &r, &rows)) {
    return error(ErrorCode::kNoKernel, "a reduction of more than ", kMaxRank, " separate axes of ",
                 node.inputs[0].str(), "; reshape it first");
  }
  std::string op(name_of_op(node).substr(7));  // behind "reduce_"
  if (op == "mean") {
    op = "sum";
    r.scale = 1.0 / static_cast<double>(r.elements);
  }
  if (r.results == 0) {
    return make_launch({}, [](const LaunchArgs&) -> Status { return {}; });
  }
  const DType dtype = node.inputs[0].dtype;
  const std::string base = "tf_reduce_" + op + "_" + std::string(dtype_name(dtype));
  r.chunk = r.elements;
  if (!rows) {
    TF_ASSIGN(Function kernel, ready_kernel(device, base + "_columns"));
    LaunchShape shape;
    shape.block[0] = 32;
    shape.block[1] = 8;
    shape.grid[0] = static_cast<unsigned>((r.results + 31) / 32);
    return make_launch({kernel.name}, [=](const LaunchArgs& args) {
      return launch_with(lane_of(args.stream), kernel, shape, args.inputs[0], args.outputs[0], r);
    });
  }
  LaunchShape shape;
  shape.block[0] = kThreads;
  shape.grid[0] = static_cast<unsigned>(r.results);
  const int64_t chunks = (r.elements + kChunk - 1) / kChunk;
  if (op != "sum" || chunks < 2 || r.results * chunks > (int64_t{1} << 24)) {
    TF_ASSIGN(Function kernel, ready_kernel(device, base + "_rows"));
    return make_launch({kernel.name}, [=](const LaunchArgs& args) {
      return launch_with(lane_of(args.stream), kernel, shape, args.inputs[0], args.outputs[0], r);
    });
  }
  TF_ASSIGN(Function part, ready_kernel(device, base + "_chunks"));
  TF_ASSIGN(Function join, ready_kernel(device, base + "_join"));
  Reduction parts = r, joined = r;
  parts.chunk = kChunk;
  parts.scale = 1;
  joined.elements = chunks;
  LaunchShape part_shape = shape;
  part_shape.grid[1] = static_cast<unsigned>(chunks);
  const size_t wide = dtype_size(dtype) < 4 ? 4 : dtype_size(dtype);
  return make_launch(
      {part.name, join.name},
      [=](const LaunchArgs& args) -> Status {
        Lane& lane = lane_of(args.stream);
        TF_RETURN_IF_ERROR(
            launch_with(lane, part, part_shape, args.inputs[0], args.workspace, parts));
        return launch_with(lane, join, shape, args.workspace, args.outputs[0], joined);
      },
      static_cast<size_t>(r.results * chunks) * wide);
}

/// As `struct ArgReduction` of kernels/reduce.cu.
struct ArgReduction {
  int64_t outer, size, inner;
};

Answer accept_arg(const NodeView& node) {
  const DType index = node.outputs[0].dtype;
  if (!known_number(node.inputs[0].dtype) || (index != DType::kI32 && index != DType::kI64)) {
    return Answer::no(concat_text("cuda: no ", dtype_name(index), " index of the extreme of ",
                                  dtype_name(node.inputs[0].dtype)));
  }
  return Answer::yes();
}

BoundLaunch bind_arg(const NodeView& node, CudaDevice& device) {
  const std::vector<int64_t> sizes = node.inputs[0].shape.sizes();
  const auto axis = static_cast<size_t>(node.node->attrs.integer("axis"));
  const ArgReduction r{product(sizes, 0, axis), sizes[axis],
                       product(sizes, axis + 1, sizes.size())};
  const int smallest = name_of_op(node) == "argmin";
  TF_ASSIGN(Function kernel,
            ready_kernel(device, concat_text("tf_arg_", dtype_name(node.inputs[0].dtype), "_",
                                             dtype_name(node.outputs[0].dtype))));
  LaunchShape shape;
  shape.block[0] = 128;
  shape.grid[0] = static_cast<unsigned>(r.outer * r.inner);
  if (shape.grid[0] == 0) return make_launch({}, [](const LaunchArgs&) -> Status { return {}; });
  return make_launch({kernel.name}, [=](const LaunchArgs& args) {
    return launch_with(lane_of(args.stream), kernel, shape, args.inputs[0], args.outputs[0], r,
                       smallest);
  });
}

}  // namespace

std::vector<KernelSpec> reduction_kernels() {
  std::vector<KernelSpec> specs;
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod",
                         "reduce_any", "reduce_all"}) {
    specs.push_back({op, "cuda_reduce", accept_reduction, bind_reduction});
  }
  for (const char* op : {"argmax", "argmin"}) {
    specs.push_back({op, "cuda_arg_extreme", accept_arg, bind_arg});
  }
  return specs;
}

}  // namespace tracefire::cuda
