// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/sorted_rows.h"

#include <algorithm>
#include <utility>

#include "backends/cuda/ready_kernels.h"

namespace tracefire::cuda {
namespace {

constexpr int64_t kLongestTile = 2048;  // as the arrays of sort_tiles in kernels/search.cu

}  // namespace

Result<SortedRows> SortedRows::make(const Sort& sort, DType dtype, CudaDevice& device) {
  SortedRows made;
  made.sort_ = sort;
  made.items_ = static_cast<size_t>(sort.outer * sort.inner * sort.size);
  if (sort.size >= (int64_t{1} << 32) - 1) {
    return error(ErrorCode::kNoKernel, "rows of ", sort.size,
                 " elements are too long to be sorted on a GPU; at most 2^32 - 2 fit.");
  }
  made.sort_.run = 2;
  while (made.sort_.run < std::min(sort.size, kLongestTile)) made.sort_.run *= 2;
  TF_ASSIGN(made.tiles_, ready_kernel(device, concat_text("tf_sort_tiles_", dtype_name(dtype))));
  TF_ASSIGN(made.merge_, ready_kernel(device, "tf_sort_merge"));
  const int64_t tiles = (sort.size + made.sort_.run - 1) / made.sort_.run;
  made.tile_shape_.block[0] = static_cast<unsigned>(std::max<int64_t>(32, made.sort_.run / 2));
  made.tile_shape_.grid[0] = static_cast<unsigned>(sort.outer * sort.inner * tiles);
  made.merge_shape_ = grid_over(static_cast<int64_t>(made.items_), device);
  return made;
}

std::vector<std::string> SortedRows::symbols() const {
  std::vector<std::string> names = {tiles_.name};
  for (int64_t run = sort_.run; run < sort_.size; run *= 2) names.push_back(merge_.name);
  return names;
}

SortedRows::Sorted SortedRows::half(void* workspace, size_t number) const {
  char* const at = static_cast<char*>(workspace) + number * half_bytes();
  return {reinterpret_cast<uint64_t*>(at), reinterpret_cast<uint32_t*>(at + items_ * 8)};
}

Result<SortedRows::Sorted> SortedRows::run(Lane& lane, const void* input, void* workspace) const {
  Sorted now = half(workspace, 0), next = half(workspace, 1);
  TF_RETURN_IF_ERROR(launch_with(lane, tiles_, tile_shape_, input, now.keys, now.places, sort_));
  for (Sort sort = sort_; sort.run < sort.size; sort.run *= 2) {
    TF_RETURN_IF_ERROR(launch_with(lane, merge_, merge_shape_, now.keys, now.places, next.keys,
                                   next.places, sort));
    std::swap(now, next);
  }
  return now;
}

}  // namespace tracefire::cuda
