// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/memory_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "core/base/event.h"

namespace tracefire::cpu {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

std::string megabytes(size_t bytes) {
  char text[32];
  if (bytes < (size_t{1} << 20)) {
    std::snprintf(text, sizeof text, "%.1f KiB", static_cast<double>(bytes) / 1024);
  } else {
    std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / 1048576);
  }
  return text;
}

void* system_allocate(size_t bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : MemoryPool::kAlignment;
  const size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* data = std::aligned_alloc(alignment, whole);
#ifdef MADV_HUGEPAGE
  // Large arrays are walked from end to end: huge pages save most page faults and TLB misses.
  if (data != nullptr && alignment == kHugePage) madvise(data, bytes, MADV_HUGEPAGE);
#endif
  return data;
}

}  // namespace

/// A live buffer; knows its place in the pool's list.
class MemoryPool::Block final : public Buffer {
 public:
  Block(std::shared_ptr<MemoryPool> pool, void* data, size_t bytes, const char* what)
      : Buffer(data, bytes, pool->device_), pool_(std::move(pool)), what_(what) {}
  ~Block() override { pool_->give_back(this); }
  const std::string& what() const { return what_; }

  size_t index = 0;

 private:
  std::shared_ptr<MemoryPool> pool_;
  std::string what_;
};

MemoryPool::~MemoryPool() {
  MutexLock lock(mutex_);
  free_all_cached();
}

size_t MemoryPool::rounded(size_t bytes) {
  bytes = std::max(bytes, kAlignment);
  // Steps of an eighth of the power of two below, but at least the alignment.
  const int exponent = 63 - __builtin_clzll(bytes);
  const size_t step = std::max(kAlignment, size_t{1} << (exponent > 3 ? exponent - 3 : 0));
  return (bytes + step - 1) / step * step;
}

size_t MemoryPool::class_of(size_t rounded_bytes) {
  const int exponent = 63 - __builtin_clzll(rounded_bytes);
  return static_cast<size_t>(exponent) * 8 + ((rounded_bytes >> (exponent - 3)) & 7);
}

void* MemoryPool::take_cached(size_t bytes) {
  std::vector<void*>& blocks = cached_[class_of(bytes)];
  if (blocks.empty()) return nullptr;
  void* data = blocks.back();
  blocks.pop_back();
  return data;
}

void MemoryPool::free_all_cached() {
  for (std::vector<void*>& blocks : cached_) {
    for (void* data : blocks) std::free(data);
    blocks.clear();
  }
  reserved_ = in_use_;
}

Result<BufferPtr> MemoryPool::allocate(size_t bytes, const char* what) {
  // A size whose class would not fit into the machine's address space.
  const bool absurd = bytes > (size_t{1} << 47);
  const size_t size = absurd ? bytes : rounded(bytes);
  MutexLock lock(mutex_);
  void* data = absurd ? nullptr : take_cached(size);
  if (data == nullptr) {
    if (absurd || (limit_ != 0 && in_use_ + size > limit_)) {
      return out_of_memory(bytes, what, !absurd);
    }
    if (limit_ != 0 && reserved_ + size > limit_) free_all_cached();
    data = system_allocate(size);
    if (data == nullptr) {
      free_all_cached();
      data = system_allocate(size);
    }
    if (data == nullptr) return out_of_memory(bytes, what, false);
    reserved_ += size;
  }
  in_use_ += size;
  peak_ = std::max(peak_, in_use_);
  auto block = std::make_shared<Block>(shared_from_this(), data, size, what);
  block->index = live_.size();
  live_.push_back(block.get());
  Events::instance().publish(MemoryEvent{device_, data, size, true, in_use_, block->what()});
  return BufferPtr(std::move(block));
}

void MemoryPool::give_back(Block* block) {
  MutexLock lock(mutex_);
  live_[block->index] = live_.back();
  live_[block->index]->index = block->index;
  live_.pop_back();
  in_use_ -= block->bytes();
  cached_[class_of(block->bytes())].push_back(block->data());
  Events::instance().publish(
      MemoryEvent{device_, block->data(), block->bytes(), false, in_use_, {}});
}

MemoryStats MemoryPool::stats() const {
  MutexLock lock(mutex_);
  return {in_use_, peak_, reserved_, limit_};
}

void MemoryPool::reset_peak() {
  MutexLock lock(mutex_);
  peak_ = in_use_;
}

void MemoryPool::release_cached() {
  MutexLock lock(mutex_);
  free_all_cached();
}

std::string MemoryPool::usage_text() const {
  std::map<std::string, size_t> users;
  for (const Block* block : live_) users[block->what()] += block->bytes();
  std::vector<std::pair<size_t, std::string>> sorted;
  for (const auto& [what, bytes] : users) sorted.emplace_back(bytes, what);
  std::sort(sorted.rbegin(), sorted.rend());
  if (sorted.size() > 5) sorted.resize(5);
  std::string text;
  for (const auto& [bytes, what] : sorted) {
    text += concat_text(text.empty() ? "" : ", ", what.empty() ? "unnamed" : what, " ",
                        megabytes(bytes));
  }
  return text.empty() ? "nothing" : text;
}

Status MemoryPool::out_of_memory(size_t bytes, const char* what, bool at_limit) const {
  const std::string room =
      at_limit ? concat_text("the limit is ", megabytes(limit_), ", so ",
                             megabytes(limit_ > in_use_ ? limit_ - in_use_ : 0), " would fit")
               : std::string("the machine has no memory left for it");
  return error(ErrorCode::kOutOfMemory, "'", what, "' needs ", megabytes(bytes), " on ",
               device_.str(), "; ", megabytes(in_use_), " are in use (largest: ", usage_text(),
               ") and ", room,
               ". Use a smaller batch, drop tensors that are no longer needed, or raise "
               "TRACEFIRE_CPU_MEMORY_LIMIT where it is set.");
}

}  // namespace tracefire::cpu
