// SPDX-License-Identifier: Apache-2.0
// Extremes, sorting and running sums by the ready kernels of kernels/search.cu and kernels/scan.cu.
#include <algorithm>
#include <string>

#include "backends/cuda/kernel_table.h"
#include "backends/cuda/ready_kernels.h"
#include "backends/cuda/sorted_rows.h"

namespace tracefire::cuda {
namespace {

/// As `struct ArgReduction` of kernels/search.cu.
struct ArgReduction {
  int64_t outer = 1, size = 1, inner = 1;
  int32_t lanes = 1, smallest = 0, index_bytes = 8;
};

/// As `struct Scan` of kernels/scan.cu.
struct Scan {
  int64_t outer = 1, size = 1, inner = 1, chunk = 1;
  int32_t exclusive = 0, reverse = 0;
};

constexpr int64_t kUniqueChunk = 4096;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t power_of_two(int64_t count, int64_t most) {
  int64_t power = 1;
  while (power < count && power < most) power *= 2;
  return power;
}

LaunchShape threads_of(int64_t threads, unsigned block) {
  LaunchShape shape;
  shape.block[0] = block;
  shape.grid[0] = static_cast<unsigned>(ceil_div(threads, block));
  return shape;
}

BoundLaunch nothing() {
  return make_launch({}, [](const LaunchArgs&) -> Status { return {}; });
}

bool index_type(DType dtype) {
  return is_integer(dtype) && dtype != DType::kI4 && dtype != DType::kU4;
}

bool known_real(DType dtype) {
  return index_type(dtype) || dtype == DType::kF64 || dtype == DType::kF32 ||
         dtype == DType::kF16 || dtype == DType::kBF16;
}

bool sortable(DType dtype) { return known_real(dtype) || dtype == DType::kBool; }

int32_t bytes_of(DType dtype) { return static_cast<int32_t>(dtype_size(dtype)); }

Answer accept_sort(const NodeView& node) {
  const DType dtype = node.inputs[0].dtype;
  if (sortable(dtype)) return Answer::yes();
  return Answer::no(concat_text("cuda: no order of ", dtype_name(dtype)));
}

/// Accepts elements that have an order; `output` is the result that holds indices.
template <size_t output>
Answer accept_ordered(const NodeView& node) {
  const DType index = node.outputs[output].dtype;
  if (!index_type(index))
    return Answer::no(concat_text("cuda: no ", dtype_name(index), " indices"));
  return accept_sort(node);
}

BoundLaunch bind_arg(const NodeView& node, CudaDevice& device) {
  const std::vector<int64_t> sizes = node.inputs[0].shape.sizes();
  const auto axis = static_cast<size_t>(node.node->attrs.integer("axis"));
  ArgReduction r;
  r.outer = product(sizes, 0, axis);
  r.size = sizes[axis];
  r.inner = product(sizes, axis + 1, sizes.size());
  r.smallest = OpTable::instance().name(node.node->op) == "argmin" ? 1 : 0;
  r.index_bytes = bytes_of(node.outputs[0].dtype);
  const int64_t results = r.outer * r.inner;
  if (results == 0) return nothing();
  // Neighbouring threads read neighbouring elements: along the axis, or across it.
  r.lanes = static_cast<int32_t>(r.inner == 1 ? power_of_two(r.size, 32) : 1);
  const bool rows = r.size > 32 && results * r.lanes < 64 * 1024;
  TF_ASSIGN(Function kernel,
            ready_kernel(device, concat_text("tf_arg_", dtype_name(node.inputs[0].dtype),
                                             rows ? "_rows" : "_lanes")));
  LaunchShape shape = threads_of(results * r.lanes, 256);
  if (rows) {
    shape.block[0] = static_cast<unsigned>(std::max<int64_t>(32, power_of_two(r.size, 256)));
    shape.grid[0] = static_cast<unsigned>(results);
  }
  return make_launch({kernel.name}, [=](const LaunchArgs& args) {
    return launch_with(lane_of(args.stream), kernel, shape, args.inputs[0], args.outputs[0], r);
  });
}

BoundLaunch bind_top_k(const NodeView& node, CudaDevice& device) {
  const std::vector<int64_t> sizes = node.inputs[0].shape.sizes();
  Sort sort;
  sort.size = sizes.back();
  sort.outer = product(sizes, 0, sizes.size() - 1);
  sort.keep = node.outputs[0].shape.sizes().back();
  sort.descending = 1;
  sort.index_bytes = bytes_of(node.outputs[1].dtype);
  const int64_t taken = sort.outer * sort.keep;
  if (taken == 0) return nothing();
  TF_ASSIGN(const SortedRows rows, SortedRows::make(sort, node.inputs[0].dtype, device));
  TF_ASSIGN(Function take,
            ready_kernel(device, concat_text("tf_take_sorted_", bytes_of(node.inputs[0].dtype))));
  std::vector<std::string> symbols = rows.symbols();
  symbols.push_back(take.name);
  const LaunchShape shape = grid_over(taken, device);
  return make_launch(
      std::move(symbols),
      [=](const LaunchArgs& args) -> Status {
        TF_ASSIGN(const SortedRows::Sorted sorted,
                  rows.run(lane_of(args.stream), args.inputs[0], args.workspace));
        return launch_with(lane_of(args.stream), take, shape, args.inputs[0], sorted.places,
                           args.outputs[0], args.outputs[1], sort);
      },
      rows.workspace_bytes());
}

/// sort and argsort.
BoundLaunch bind_sort(const NodeView& node, CudaDevice& device) {
  const std::vector<int64_t> sizes = node.inputs[0].shape.sizes();
  const auto axis = static_cast<size_t>(node.node->attrs.integer("axis"));
  const bool places = OpTable::instance().name(node.node->op) == "argsort";
  Sort sort;
  sort.outer = product(sizes, 0, axis);
  sort.size = sort.keep = sizes[axis];
  sort.inner = product(sizes, axis + 1, sizes.size());
  sort.descending = node.node->attrs.flag("descending") ? 1 : 0;
  if (places) sort.index_bytes = bytes_of(node.outputs[0].dtype);
  const int64_t elements = sort.outer * sort.size * sort.inner;
  if (elements == 0) return nothing();
  TF_ASSIGN(const SortedRows rows, SortedRows::make(sort, node.inputs[0].dtype, device));
  TF_ASSIGN(Function take,
            ready_kernel(device, concat_text("tf_take_sorted_", bytes_of(node.inputs[0].dtype))));
  std::vector<std::string> symbols = rows.symbols();
  symbols.push_back(take.name);
  const LaunchShape shape = grid_over(elements, device);
  return make_launch(
      std::move(symbols),
      [=](const LaunchArgs& args) -> Status {
        Lane& lane = lane_of(args.stream);
        TF_ASSIGN(const SortedRows::Sorted sorted, rows.run(lane, args.inputs[0], args.workspace));
        return launch_with(lane, take, shape, args.inputs[0], sorted.places,
                           places ? nullptr : args.outputs[0], places ? args.outputs[0] : nullptr,
                           sort);
      },
      rows.workspace_bytes());
}

Answer accept_in_top_k(const NodeView& node) {
  const DType dtype = node.inputs[0].dtype;
  if (!is_floating(dtype) || !sortable(dtype)) {
    return Answer::no(concat_text("cuda: no in_top_k of ", dtype_name(dtype)));
  }
  if (index_type(node.inputs[1].dtype)) return Answer::yes();
  return Answer::no(concat_text("cuda: no targets of ", dtype_name(node.inputs[1].dtype)));
}

BoundLaunch bind_in_top_k(const NodeView& node, CudaDevice& device) {
  const std::vector<int64_t> sizes = node.inputs[0].shape.sizes();
  const int64_t rows = sizes[0], classes = sizes[1], k = node.node->attrs.integer("k");
  if (rows == 0) return nothing();
  const DType target = node.inputs[1].dtype;
  const int32_t width = is_signed_integer(target) ? bytes_of(target) : -bytes_of(target);
  TF_ASSIGN(Function kernel,
            ready_kernel(device, concat_text("tf_in_top_k_", dtype_name(node.inputs[0].dtype))));
  const LaunchShape shape = threads_of(rows * 32, 256);
  return make_launch({kernel.name}, [=](const LaunchArgs& args) {
    return launch_with(lane_of(args.stream), kernel, shape, args.inputs[0], args.inputs[1],
                       args.outputs[0], rows, classes, k, width);
  });
}

BoundLaunch bind_unique(const NodeView& node, CudaDevice& device) {
  const int64_t n = elements_of(node.inputs[0]);
  const int64_t fixed = node.node->attrs.integer("size");
  const int64_t size = fixed < 0 ? n : fixed;
  const int32_t bytes = bytes_of(node.inputs[0].dtype);
  const int32_t index_bytes = bytes_of(node.outputs[1].dtype);
  CudaDevice* const owner = &device;
  if (n == 0) {
    return make_launch({"memset"}, [=](const LaunchArgs& args) -> Status {
      TF_RETURN_IF_ERROR(
          owner->fill_zero(args.stream, args.outputs[2], static_cast<size_t>(index_bytes)));
      return owner->fill_zero(args.stream, args.outputs[0], static_cast<size_t>(size * bytes));
    });
  }
  Sort sort;
  sort.size = sort.keep = n;
  TF_ASSIGN(const SortedRows rows, SortedRows::make(sort, node.inputs[0].dtype, device));
  TF_ASSIGN(Function count, ready_kernel(device, "tf_unique_count"));
  TF_ASSIGN(Function scan, ready_kernel(device, "tf_unique_scan"));
  TF_ASSIGN(Function write, ready_kernel(device, concat_text("tf_unique_write_", bytes)));
  TF_ASSIGN(Function fill, ready_kernel(device, concat_text("tf_unique_fill_", bytes)));
  std::vector<std::string> symbols = rows.symbols();
  for (const Function* one : {&count, &scan, &write, &fill}) symbols.push_back(one->name);
  const int64_t chunks = ceil_div(n, kUniqueChunk);
  const LaunchShape per_chunk = threads_of(chunks * 256, 256), one = threads_of(256, 256);
  const LaunchShape filling = grid_over(size, device);
  const size_t counts_at = rows.workspace_bytes();
  return make_launch(
      std::move(symbols),
      [=](const LaunchArgs& args) -> Status {
        Lane& lane = lane_of(args.stream);
        void* const counts = static_cast<char*>(args.workspace) + counts_at;
        TF_ASSIGN(const SortedRows::Sorted sorted,
                  rows.run(lane_of(args.stream), args.inputs[0], args.workspace));
        TF_RETURN_IF_ERROR(launch_with(lane, count, per_chunk, sorted.keys, counts, n));
        TF_RETURN_IF_ERROR(
            launch_with(lane, scan, one, counts, chunks, args.outputs[2], index_bytes));
        TF_RETURN_IF_ERROR(launch_with(lane, write, per_chunk, args.inputs[0], sorted.keys,
                                       sorted.places, counts, args.outputs[0], args.outputs[1], n,
                                       size, index_bytes));
        if (fixed < 0) return {};
        return launch_with(lane, fill, filling, args.inputs[0], sorted.places, args.outputs[2],
                           args.outputs[0], size, index_bytes);
      },
      counts_at + static_cast<size_t>(chunks) * sizeof(int32_t));
}

Answer accept_scan(const NodeView& node) {
  const DType dtype = node.inputs[0].dtype;
  if (known_real(dtype)) return Answer::yes();
  return Answer::no(concat_text("cuda: no running sum or product of ", dtype_name(dtype)));
}

/// cumsum and cumprod.
BoundLaunch bind_scan(const NodeView& node, CudaDevice& device) {
  const std::vector<int64_t> sizes = node.inputs[0].shape.sizes();
  const auto axis = static_cast<size_t>(node.node->attrs.integer("axis"));
  Scan s;
  s.outer = product(sizes, 0, axis);
  s.size = sizes[axis];
  s.inner = product(sizes, axis + 1, sizes.size());
  s.exclusive = node.node->attrs.flag("exclusive") ? 1 : 0;
  s.reverse = node.node->attrs.flag("reverse") ? 1 : 0;
  const int64_t rows = s.outer * s.inner;
  if (rows * s.size == 0) return nothing();
  const bool along = s.inner == 1;
  // As many chunks as fill the GPU; a thread walks a chunk of a column, a block one of a row.
  const int64_t shortest = along ? 4096 : 64, workers = along ? 512 : 64 * 1024;
  const int64_t chunks =
      std::clamp<int64_t>(std::min(s.size / shortest, workers / rows), 1, along ? 65535 : s.size);
  s.chunk = ceil_div(s.size, chunks);
  const int64_t count = ceil_div(s.size, s.chunk);
  const bool products = OpTable::instance().name(node.node->op) == "cumprod";
  const std::string type =
      std::string(products ? "prod_" : "sum_") + std::string(dtype_name(node.inputs[0].dtype));
  const std::string form = along ? "rows_" : "columns_";
  TF_ASSIGN(Function scan, ready_kernel(device, "tf_scan_" + form + type));
  LaunchShape shape = threads_of(rows * count, 128);
  if (along) {
    shape.block[0] =
        static_cast<unsigned>(std::max<int64_t>(32, power_of_two(ceil_div(s.chunk, 4), 256)));
    shape.grid[0] = static_cast<unsigned>(rows);
    shape.grid[1] = static_cast<unsigned>(count);
  }
  if (count == 1) {
    return make_launch({scan.name}, [=](const LaunchArgs& args) {
      return launch_with(lane_of(args.stream), scan, shape, args.inputs[0],
                         static_cast<void*>(nullptr), args.outputs[0], s);
    });
  }
  TF_ASSIGN(Function sum, ready_kernel(device, "tf_scan_part_" + form + type));
  TF_ASSIGN(Function before, ready_kernel(device, "tf_scan_before_" + type));
  const LaunchShape per_row = threads_of(rows, 128);
  const size_t wide = std::max<size_t>(4, dtype_size(node.inputs[0].dtype));
  return make_launch(
      {sum.name, before.name, scan.name},
      [=](const LaunchArgs& args) -> Status {
        Lane& lane = lane_of(args.stream);
        TF_RETURN_IF_ERROR(launch_with(lane, sum, shape, args.inputs[0], args.workspace, s));
        TF_RETURN_IF_ERROR(
            launch_with(lane, before, per_row, args.workspace, rows, count, s.inner));
        return launch_with(lane, scan, shape, args.inputs[0], args.workspace, args.outputs[0], s);
      },
      static_cast<size_t>(rows * count) * wide);
}

}  // namespace

std::vector<KernelSpec> searching_kernels() {
  return {{"argmax", "cuda_arg_extreme", accept_ordered<0>, bind_arg},
          {"argmin", "cuda_arg_extreme", accept_ordered<0>, bind_arg},
          {"top_k", "cuda_top_k", accept_ordered<1>, bind_top_k},
          {"in_top_k", "cuda_in_top_k", accept_in_top_k, bind_in_top_k},
          {"unique", "cuda_unique", accept_ordered<1>, bind_unique},
          {"sort", "cuda_sort", accept_sort, bind_sort},
          {"argsort", "cuda_sort", accept_ordered<0>, bind_sort},
          {"cumsum", "cuda_scan", accept_scan, bind_scan},
          {"cumprod", "cuda_scan", accept_scan, bind_scan}};
}

}  // namespace tracefire::cuda
