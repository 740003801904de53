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
  int64_t units = 1, chunk = 1;
  int32_t lanes = 1, grouped = 0;
  double scale = 1;
};

/// Blocks that fill a GPU. A constant, so that all GPUs split sums alike.
constexpr int64_t kManyBlocks = 512;
/// Units that a thread loads at once.
constexpr int64_t kUnroll = 4;

std::string_view name_of_op(const NodeView& node) {
  return OpTable::instance().name(node.node->op);
}

/// Types with every form of kernel; the others have "any" alone, a block a result.
bool common_type(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16 || dtype == DType::kI32 || dtype == DType::kI64 ||
         dtype == DType::kBool;
}

bool has_kernels(DType dtype) {
  switch (dtype) {
    case DType::kI8:
    case DType::kI16:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
      return true;
    default:
      return common_type(dtype);
  }
}

Answer accept_reduction(const NodeView& node) {
  const DType dtype = node.inputs[0].dtype;
  if (has_kernels(dtype)) return Answer::yes();
  return Answer::no(concat_text("cuda: no reduction of ", dtype_name(dtype)));
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The least power of two that is not below `count`, within 1 … most.
int64_t power_of_two(int64_t count, int64_t most) {
  int64_t power = 1;
  while (power < count && power < most) power *= 2;
  return power;
}

/// Splits the axes of the input into those kept and those reduced; false where they are too many.
/// `columns`: neighbours in memory belong to different results.
bool split_axes(const NodeView& node, Reduction* r, bool* columns) {
  const std::vector<int64_t> sizes = node.inputs[0].shape.sizes();
  const std::vector<int64_t> strides = row_major(sizes);
  const std::vector<int64_t>& axes = node.node->attrs.ints("axes");
  std::vector<int64_t> kept, kept_strides, reduced, reduced_strides;
  *columns = false;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
    (gone ? reduced : kept).push_back(sizes[axis]);
    (gone ? reduced_strides : kept_strides).push_back(strides[axis]);
    if (sizes[axis] > 1) *columns = !gone;
  }
  r->results = product(kept, 0, kept.size());
  r->elements = product(reduced, 0, reduced.size());
  Axes same;
  return make_axes(kept, kept_strides, kept_strides, &r->kept, &same) &&
         make_axes(reduced, reduced_strides, reduced_strides, &r->reduced, &same);
}

/// One launch over the input, and a second one where results are made of several chunks.
struct Plan {
  const char* form = "rows";
  LaunchShape shape;
  int64_t chunks = 1;
};

Plan plan_columns(Reduction* r) {
  Plan plan;
  plan.form = "columns";
  r->units = r->elements;
  const int64_t x = power_of_two(r->results, 32);
  const int64_t y = std::min(1024 / x, power_of_two(r->units, 1024 / x));
  const int64_t blocks = ceil_div(r->results, x);
  plan.chunks = std::min(r->units / (kUnroll * y), kManyBlocks / blocks);
  // A second launch costs as much as a few rounds of loads.
  if (plan.chunks < 4) plan.chunks = 1;
  r->chunk = ceil_div(std::max<int64_t>(r->units, 1), plan.chunks);
  plan.chunks = std::max<int64_t>(1, ceil_div(r->units, r->chunk));
  plan.shape.block[0] = static_cast<unsigned>(x);
  plan.shape.block[1] = static_cast<unsigned>(y);
  plan.shape.grid[0] = static_cast<unsigned>(blocks);
  plan.shape.grid[1] = static_cast<unsigned>(plan.chunks);
  return plan;
}

/// `group`: elements of 16 bytes. `lanes`: there is a kernel of this form.
Plan plan_rows(Reduction* r, int64_t group, bool lanes) {
  Plan plan;
  const bool dense = r->reduced.rank == 0 || (r->reduced.rank == 1 && r->reduced.strides[0] == 1);
  r->grouped = dense ? 1 : 0;
  r->units = dense ? ceil_div(r->elements, group) : r->elements;
  r->chunk = std::max<int64_t>(r->units, 1);
  // Short rows, and rows enough to fill the GPU with a warp each.
  const bool narrow = r->units <= 32 || r->results * 32 >= kManyBlocks * 256;
  if (lanes && narrow) {
    plan.form = "lanes";
    r->lanes = static_cast<int32_t>(power_of_two(r->units, 32));
    plan.shape.block[0] = 256;
    plan.shape.grid[0] = static_cast<unsigned>(ceil_div(r->results * r->lanes, 256));
    return plan;
  }
  const int64_t threads = std::max<int64_t>(32, power_of_two(r->units, 256));
  plan.chunks = std::min(r->units / (kUnroll * threads), kManyBlocks / r->results);
  if (plan.chunks < 4) plan.chunks = 1;
  r->chunk = ceil_div(std::max<int64_t>(r->units, 1), plan.chunks);
  plan.chunks = std::max<int64_t>(1, ceil_div(r->units, r->chunk));
  plan.shape.block[0] = static_cast<unsigned>(threads);
  plan.shape.grid[0] = static_cast<unsigned>(r->results);
  plan.shape.grid[1] = static_cast<unsigned>(plan.chunks);
  return plan;
}

Plan plan_any(const Reduction& r) {
  Plan plan;
  plan.form = "any";
  plan.shape.block[0] = static_cast<unsigned>(std::max<int64_t>(32, power_of_two(r.elements, 256)));
  plan.shape.grid[0] = static_cast<unsigned>(r.results);
  return plan;
}

/// The reduction of the chunks' results: [results, chunks] of rows, [chunks, results] of columns.
Reduction join_of(const Reduction& r, const Plan& plan, bool columns) {
  Reduction join;
  join.results = r.results;
  join.elements = plan.chunks;
  join.scale = r.scale;
  join.kept.rank = join.reduced.rank = 1;
  join.kept.sizes[0] = r.results;
  join.reduced.sizes[0] = plan.chunks;
  join.kept.strides[0] = columns ? 1 : plan.chunks;
  join.reduced.strides[0] = columns ? r.results : 1;
  return join;
}

BoundLaunch bind_reduction(const NodeView& node, CudaDevice& device) {
  Reduction r;
  bool columns = false;
  if (!split_axes(node, &r, &columns)) {
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
  const std::string type(dtype_name(dtype));
  const auto name = [&op](const std::string& from, const std::string& to, const char* form) {
    return "tf_reduce_" + op + "_" + from + "_" + to + "_" + form;
  };
  const int64_t group = 16 / static_cast<int64_t>(dtype_size(dtype));
  const Plan plan = !common_type(dtype) ? plan_any(r)
                    : columns           ? plan_columns(&r)
                                        : plan_rows(&r, group, true);
  if (plan.chunks == 1) {
    TF_ASSIGN(Function kernel, ready_kernel(device, name(type, type, plan.form)));
    return make_launch({kernel.name}, [=](const LaunchArgs& args) {
      return launch_with(lane_of(args.stream), kernel, plan.shape, args.inputs[0], args.outputs[0],
                         r);
    });
  }
  const bool half = dtype == DType::kF16 || dtype == DType::kBF16;
  const DType wide = half ? DType::kF32 : dtype;
  const std::string wide_type(dtype_name(wide));
  Reduction parts = r, joined = join_of(r, plan, columns);
  parts.scale = 1;
  Plan join = columns ? plan_columns(&joined)
                      : plan_rows(&joined, 16 / static_cast<int64_t>(dtype_size(wide)), !half);
  TF_ASSIGN(Function part_kernel, ready_kernel(device, name(type, wide_type, plan.form)));
  TF_ASSIGN(Function join_kernel, ready_kernel(device, name(wide_type, type, join.form)));
  // The parts of one result are few: they are never split again.
  join.shape.grid[1] = 1;
  joined.chunk = joined.units;
  return make_launch(
      {part_kernel.name, join_kernel.name},
      [=](const LaunchArgs& args) -> Status {
        Lane& lane = lane_of(args.stream);
        TF_RETURN_IF_ERROR(
            launch_with(lane, part_kernel, plan.shape, args.inputs[0], args.workspace, parts));
        return launch_with(lane, join_kernel, join.shape, args.workspace, args.outputs[0], joined);
      },
      static_cast<size_t>(r.results * plan.chunks) * dtype_size(wide));
}

}  // namespace

std::vector<KernelSpec> reduction_kernels() {
  std::vector<KernelSpec> specs;
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod",
                         "reduce_any", "reduce_all"}) {
    specs.push_back({op, "cuda_reduce", accept_reduction, bind_reduction});
  }
  return specs;
}

}  // namespace tracefire::cuda
