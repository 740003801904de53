// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/staging.h"

#include <cstring>

namespace tracefire::cuda {
namespace {

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

Status not_while_capturing(const Lane& lane, const char* what) {
  if (!lane.capturing()) return {};
  return error(
      ErrorCode::kInternal, what, " on ", lane.device().str(),
      " while its work was being recorded. Expected no copy with the host inside a captured "
      "segment. Please report it.");
}

}  // namespace

Staging::~Staging() {
  if (!context_->enter().ok()) return;
  for (Block& block : blocks_) {
    if (block.free_at != nullptr && !block.free_at->synchronize().ok()) return;
    if (block.data != nullptr) context_->api().cuMemFreeHost(block.data);
  }
}

Result<Staging::Block*> Staging::next_block() {
  Block& block = blocks_[next_];
  next_ = (next_ + 1) % blocks_.size();
  if (block.data == nullptr) {
    void* data = nullptr;
    TF_CUDA(*context_, cuMemHostAlloc, &data, kBlockBytes, CU_MEMHOSTALLOC_PORTABLE);
    block.data = data;
    TF_ASSIGN(block.free_at, Event::make(context_));
    return &block;
  }
  TF_RETURN_IF_ERROR(block.free_at->synchronize());
  return &block;
}

Status Staging::copy_in(Lane& lane, void* target, const void* source, size_t bytes) {
  if (bytes == 0) return {};
  TF_RETURN_IF_ERROR(context_->enter());
  TF_RETURN_IF_ERROR(not_while_capturing(lane, "a host array was copied in"));
  if (bytes > kBlockBytes) {
    TF_CUDA(*context_, cuMemcpyHtoDAsync, address(target), source, bytes, lane.handle());
    // The driver reads pageable memory before it returns, but pinned memory of the caller's own
    // (a NumPy array over it) only later.
    return lane.synchronize();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  TF_ASSIGN(Block* const block, next_block());
  std::memcpy(block->data, source, bytes);
  TF_CUDA(*context_, cuMemcpyHtoDAsync, address(target), block->data, bytes, lane.handle());
  return block->free_at->record(lane.handle());
}

Status Staging::copy_out(Lane& lane, void* target, const void* source, size_t bytes) {
  if (bytes == 0) return lane.synchronize();
  TF_RETURN_IF_ERROR(context_->enter());
  TF_RETURN_IF_ERROR(not_while_capturing(lane, "a value was read"));
  if (bytes > kBlockBytes) {
    TF_CUDA(*context_, cuMemcpyDtoHAsync, target, address(source), bytes, lane.handle());
    return lane.synchronize();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  TF_ASSIGN(Block* const block, next_block());
  TF_CUDA(*context_, cuMemcpyDtoHAsync, block->data, address(source), bytes, lane.handle());
  TF_RETURN_IF_ERROR(block->free_at->record(lane.handle()));
  TF_RETURN_IF_ERROR(block->free_at->synchronize());
  std::memcpy(target, block->data, bytes);
  return {};
}

}  // namespace tracefire::cuda
