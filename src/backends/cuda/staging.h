// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <mutex>

#include "backends/cuda/stream.h"

namespace tracefire::cuda {

/// Copies between the host and one GPU. Small copies go through a few pinned blocks, so that the
/// caller may reuse its memory at once while the device is still busy with earlier work; large ones
/// are handed to the driver, whose own staging is as fast as one host thread.
class Staging {
 public:
  explicit Staging(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  ~Staging();

  /// `source` may be reused when the call returns.
  Status copy_in(Lane& lane, void* target, const void* source, size_t bytes);
  /// Complete when the call returns.
  Status copy_out(Lane& lane, void* target, const void* source, size_t bytes);

  static constexpr size_t kBlockBytes = size_t{1} << 20;

 private:
  struct Block {
    void* data = nullptr;
    std::unique_ptr<Event> free_at;  ///< passed once the device has read the block
  };
  Result<Block*> next_block();  // requires mutex_

  const std::shared_ptr<const Context> context_;
  std::mutex mutex_;
  std::array<Block, 4> blocks_;  // guarded by mutex_
  size_t next_ = 0;              // guarded by mutex_
};

}  // namespace tracefire::cuda
