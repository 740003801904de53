// SPDX-License-Identifier: Apache-2.0
// Products of whole numbers, by kernels/int_matmul.cu.
#include <algorithm>
#include <string>

#include "backends/cuda/axes.h"
#include "backends/cuda/kernel_table.h"
#include "backends/cuda/ready_kernels.h"

namespace tracefire::cuda {
namespace {

constexpr int64_t kTile = 16;
constexpr int64_t kMostBlocks = 65535;  // along the second axis of a grid

/// As `struct Product` of kernels/int_matmul.cu.
struct Product {
  int64_t m = 1, n = 1, k = 1, batch = 1;
  int64_t a_row = 1, a_column = 1, b_row = 1, b_column = 1;
  Axes a_batch, b_batch;
};

Answer accept_product(const NodeView& node) {
  const DType dtype = node.inputs[0].dtype;
  if (is_integer(dtype) && dtype != DType::kI4 && dtype != DType::kU4) return Answer::yes();
  return Answer::no(concat_text("cuda: no product of ", dtype_name(dtype)));
}

/// Strides of an operand's matrices over the batch axes of the result, 0 where they are repeated.
std::vector<int64_t> batch_strides(const std::vector<int64_t>& sizes, size_t rank) {
  const std::vector<int64_t> own = row_major(sizes);
  std::vector<int64_t> strides(rank - 2, 0);
  for (size_t i = 0; i + 2 < sizes.size(); ++i) {
    if (sizes[i] != 1) strides[rank - sizes.size() + i] = own[i];
  }
  return strides;
}

BoundLaunch bind_product(const NodeView& node, CudaDevice& device) {
  const std::vector<int64_t> a = node.inputs[0].shape.sizes(), b = node.inputs[1].shape.sizes();
  const std::vector<int64_t> c = node.outputs[0].shape.sizes();
  const bool a_turned = node.node->attrs.flag("transpose_a");
  const bool b_turned = node.node->attrs.flag("transpose_b");
  Product p;
  p.m = c[c.size() - 2];
  p.n = c[c.size() - 1];
  p.k = a[a.size() - (a_turned ? 2 : 1)];
  (a_turned ? p.a_column : p.a_row) = a.back();
  (b_turned ? p.b_column : p.b_row) = b.back();
  const std::vector<int64_t> batch(c.begin(), c.end() - 2);
  if (!make_axes(batch, batch_strides(a, c.size()), batch_strides(b, c.size()), &p.a_batch,
                 &p.b_batch)) {
    return error(ErrorCode::kNoKernel, "a product over more than ", kMaxRank,
                 " separate batch axes; reshape the operands first");
  }
  p.batch = product(batch, 0, batch.size());
  const int64_t tiles = p.batch * ((p.m + kTile - 1) / kTile);
  if (tiles * p.n == 0) return make_launch({}, [](const LaunchArgs&) -> Status { return {}; });
  TF_ASSIGN(Function kernel,
            ready_kernel(device, concat_text("tf_product_", dtype_name(node.inputs[0].dtype))));
  LaunchShape shape;
  shape.block[0] = shape.block[1] = static_cast<unsigned>(kTile);
  shape.grid[0] = static_cast<unsigned>((p.n + kTile - 1) / kTile);
  shape.grid[1] = static_cast<unsigned>(std::min(tiles, kMostBlocks));
  return make_launch({kernel.name}, [=](const LaunchArgs& args) {
    return launch_with(lane_of(args.stream), kernel, shape, args.inputs[0], args.inputs[1],
                       args.outputs[0], p);
  });
}

}  // namespace

std::vector<KernelSpec> int_matmul_kernels() {
  return {{"matmul", "cuda_product", accept_product, bind_product}};
}

}  // namespace tracefire::cuda
