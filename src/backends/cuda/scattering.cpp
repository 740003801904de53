// SPDX-License-Identifier: Apache-2.0
// scatter and scatter_add, by the ready kernels of kernels/scatter.cu over sorted places.
#include <algorithm>
#include <string>

#include "backends/cuda/axes.h"
#include "backends/cuda/kernel_table.h"
#include "backends/cuda/ready_kernels.h"
#include "backends/cuda/sorted_rows.h"

namespace tracefire::cuda {
namespace {

/// As kernels/scatter.cu numbers them.
enum class Reduction : int32_t { kAdd, kMul, kMax, kMin, kUpdate };

/// As `struct Scatter` of kernels/scatter.cu.
struct Scatter {
  int64_t outer = 1, size = 1, inner = 1, count = 1;
  int64_t sizes[kMaxRank] = {};
  int32_t depth = 1, index_bytes = 8;
  Reduction reduction = Reduction::kAdd;
};

bool whole(DType dtype) { return is_integer(dtype) && dtype != DType::kI4 && dtype != DType::kU4; }

bool computed(DType dtype) {
  return whole(dtype) || dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

int32_t signed_bytes(DType dtype) {
  const auto bytes = static_cast<int32_t>(dtype_size(dtype));
  return is_signed_integer(dtype) ? bytes : -bytes;
}

Reduction reduction_of(const NodeView& node) {
  const std::string& name = node.node->attrs.text("reduction");
  return name == "add"   ? Reduction::kAdd
         : name == "mul" ? Reduction::kMul
         : name == "max" ? Reduction::kMax
         : name == "min" ? Reduction::kMin
                         : Reduction::kUpdate;
}

Answer accept(const NodeView& node, DType dtype, bool update) {
  if (dtype == DType::kString) return Answer::no("cuda: strings live on the host");
  if (!update && !computed(dtype)) {
    return Answer::no(concat_text("cuda: no scatter of ", dtype_name(dtype)));
  }
  if (whole(node.inputs[1].dtype)) return Answer::yes();
  return Answer::no(concat_text("cuda: no ", dtype_name(node.inputs[1].dtype), " indices"));
}

Answer accept_scatter_add(const NodeView& node) {
  return accept(node, node.inputs[0].dtype, false);
}

Answer accept_scatter(const NodeView& node) {
  const Shape& indices = node.inputs[1].shape;
  const Dim depth = indices[indices.rank() - 1];
  if (!depth.is_constant() || depth.value() > static_cast<int64_t>(kMaxRank)) {
    return Answer::no(concat_text("cuda: indices that name more than ", kMaxRank, " axes"));
  }
  return accept(node, node.inputs[0].dtype, reduction_of(node) == Reduction::kUpdate);
}

/// `base`: number of the input that the result begins as; -1: zeros. Updates are input `from`.
BoundLaunch bind(const NodeView& node, CudaDevice& device, const Scatter& s, int base,
                 size_t from) {
  const DType dtype = node.outputs[0].dtype;
  const size_t bytes = static_cast<size_t>(s.outer * s.size * s.inner) * dtype_size(dtype);
  CudaDevice* const owner = &device;
  const auto begin = [=](const LaunchArgs& args) -> Status {
    void* const out = args.outputs[0];
    if (bytes == 0) return {};
    if (base < 0) return owner->fill_zero(args.stream, out, bytes);
    const void* const x = args.inputs[static_cast<size_t>(base)];
    return x == out ? Status() : owner->copy(args.stream, out, x, bytes);
  };
  std::vector<std::string> symbols = {base < 0 ? "memset" : "memcpy"};
  const int64_t threads = s.outer * s.count * s.inner;
  if (threads == 0) return make_launch(std::move(symbols), begin);
  Sort sort;
  sort.size = sort.keep = s.count;
  TF_ASSIGN(Function find, ready_kernel(device, "tf_scatter_places"));
  TF_ASSIGN(const SortedRows rows, SortedRows::make(sort, DType::kU64, device));
  const std::string name = s.reduction == Reduction::kUpdate
                               ? concat_text("tf_scatter_update_", dtype_size(dtype))
                               : concat_text("tf_scatter_", dtype_name(dtype));
  TF_ASSIGN(Function apply, ready_kernel(device, name));
  symbols.push_back(find.name);
  for (std::string& symbol : rows.symbols()) symbols.push_back(std::move(symbol));
  symbols.push_back(apply.name);
  const LaunchShape finding = grid_over(s.count, device), applying = grid_over(threads, device);
  const size_t places_at = rows.workspace_bytes();
  return make_launch(
      std::move(symbols),
      [=](const LaunchArgs& args) -> Status {
        Lane& lane = lane_of(args.stream);
        void* const places = static_cast<char*>(args.workspace) + places_at;
        TF_RETURN_IF_ERROR(begin(args));
        TF_RETURN_IF_ERROR(
            launch_with(lane, find, finding, args.inputs[1], places, s, args.error, args.step));
        TF_ASSIGN(const SortedRows::Sorted sorted, rows.run(lane, places, args.workspace));
        return launch_with(lane, apply, applying, sorted.keys, sorted.places, args.inputs[from],
                           args.outputs[0], s);
      },
      places_at + static_cast<size_t>(s.count) * sizeof(uint64_t));
}

BoundLaunch bind_scatter_add(const NodeView& node, CudaDevice& device) {
  const std::vector<int64_t> sizes = node.outputs[0].shape.sizes();
  const auto axis = static_cast<size_t>(node.node->attrs.integer("axis"));
  Scatter s;
  s.outer = product(sizes, 0, axis);
  s.size = s.sizes[0] = sizes[axis];
  s.inner = product(sizes, axis + 1, sizes.size());
  s.count = elements_of(node.inputs[1]);
  s.index_bytes = signed_bytes(node.inputs[1].dtype);
  return bind(node, device, s, -1, 0);
}

BoundLaunch bind_scatter(const NodeView& node, CudaDevice& device) {
  const std::vector<int64_t> sizes = node.outputs[0].shape.sizes();
  const std::vector<int64_t> indices = node.inputs[1].shape.sizes();
  const auto depth = static_cast<size_t>(indices.back());
  Scatter s;
  s.size = product(sizes, 0, depth);
  s.inner = product(sizes, depth, sizes.size());
  s.count = product(indices, 0, indices.size() - 1);
  std::copy_n(sizes.begin(), depth, s.sizes);
  s.depth = static_cast<int32_t>(depth);
  s.index_bytes = signed_bytes(node.inputs[1].dtype);
  s.reduction = reduction_of(node);
  return bind(node, device, s, 0, 2);
}

}  // namespace

std::vector<KernelSpec> scattering_kernels() {
  return {{"scatter_add", "cuda_scatter", accept_scatter_add, bind_scatter_add},
          {"scatter", "cuda_scatter", accept_scatter, bind_scatter, /*in_place=*/false}};
}

}  // namespace tracefire::cuda
