// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "backends/api/buffer.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace tracefire::cpu {

/// Blocks of host memory for one CPU device: 64-byte aligned, in size classes an eighth of a power
/// of two apart, kept for reuse when freed. Thread-safe. Outlives its buffers, which share it.
class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  static constexpr size_t kAlignment = 64;

  /// `limit` bytes of blocks at most; 0: no limit but the machine's memory.
  MemoryPool(Device device, size_t limit) : device_(device), limit_(limit) {}
  ~MemoryPool();

  /// kOutOfMemory with what is in use and what would fit.
  Result<BufferPtr> allocate(size_t bytes, const char* what);
  MemoryStats stats() const;
  void reset_peak();
  void release_cached();

  /// Bytes of the size class that holds `bytes`.
  static size_t rounded(size_t bytes);

 private:
  class Block;
  static constexpr size_t kClasses = 8 * 64;
  static size_t class_of(size_t rounded_bytes);

  void* take_cached(size_t bytes) TF_REQUIRES(mutex_);
  void free_all_cached() TF_REQUIRES(mutex_);
  void give_back(Block* block);
  std::string usage_text() const TF_REQUIRES(mutex_);
  Status out_of_memory(size_t bytes, const char* what, bool at_limit) const TF_REQUIRES(mutex_);

  const Device device_;
  const size_t limit_;
  mutable Mutex mutex_;
  std::array<std::vector<void*>, kClasses> cached_ TF_GUARDED_BY(mutex_);
  std::vector<Block*> live_ TF_GUARDED_BY(mutex_);
  size_t in_use_ TF_GUARDED_BY(mutex_) = 0;
  size_t peak_ TF_GUARDED_BY(mutex_) = 0;
  size_t reserved_ TF_GUARDED_BY(mutex_) = 0;
};

}  // namespace tracefire::cpu
