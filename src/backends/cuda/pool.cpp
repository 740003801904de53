// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/pool.h"

#include <algorithm>

#include "core/base/event.h"
#include "core/base/settings.h"

namespace tracefire::cuda {
namespace {

// The driver's own granularity is 2 MiB and a call costs about 0.1 ms, so small blocks share
// segments of that size and medium ones share larger ones.
constexpr size_t kSmallSegment = size_t{2} << 20;
constexpr size_t kMediumSegment = size_t{32} << 20;
constexpr size_t kSmallBlock = size_t{1} << 20;
constexpr size_t kMediumBlock = size_t{16} << 20;

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

size_t segment_bytes(size_t block) {
  if (block <= kSmallBlock) return kSmallSegment;
  if (block <= kMediumBlock) return kMediumSegment;
  return round_up(block, kSmallSegment);
}

/// Large free pieces are not cut for small blocks, or they could never be released.
bool fits(size_t piece, size_t block) {
  if (block <= kSmallBlock) return piece <= kSmallSegment;
  if (block <= kMediumBlock) return piece <= kMediumSegment;
  return true;
}

void* host(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace

class Pool::Block final : public Buffer {
 public:
  Block(std::shared_ptr<Pool> pool, CUdeviceptr address, size_t bytes, Device device)
      : Buffer(host(address), bytes, device), pool_(std::move(pool)) {}
  ~Block() override { pool_->give_back(data_); }

 private:
  const std::shared_ptr<Pool> pool_;
};

Pool::~Pool() {
  if (!context_->enter().ok()) return;
  for (const auto& [base, segment] : segments_) context_->api().cuMemFree(base);
}

size_t Pool::limit() const {
  const double fraction = settings::gpu_memory_fraction();
  size_t most = static_cast<size_t>(fraction * static_cast<double>(context_->gpu().memory_bytes));
  const int64_t set = settings::gpu_memory_limit();
  if (set > 0) most = std::min(most, static_cast<size_t>(set));
  return most;
}

Result<BufferPtr> Pool::allocate(size_t bytes, const char* what) {
  TF_RETURN_IF_ERROR(context_->enter());
  const std::lock_guard<std::mutex> lock(mutex_);
  collect_pending();
  if (bytes > size_t{1} << 47) return out_of_memory(bytes, what);  // more than can be addressed
  const size_t size = round_up(std::max<size_t>(bytes, 1), kGranularity);
  CUdeviceptr address = take_free(size);
  if (address == 0) {
    const Status grown = grow(size);
    if (!grown.ok()) {
      return grown.code() == ErrorCode::kOutOfMemory ? out_of_memory(size, what) : grown;
    }
    address = take_free(size);
  }
  in_use_ += size;
  peak_ = std::max(peak_, in_use_);
  Events::instance().publish(
      MemoryEvent{context_->device(), host(address), size, true, in_use_, what});
  return BufferPtr(std::make_shared<Block>(shared_from_this(), address, bytes, context_->device()));
}

CUdeviceptr Pool::take_free(size_t bytes) {
  const auto found = free_.lower_bound({bytes, 0});
  if (found == free_.end() || !fits(found->first, bytes)) return 0;
  const CUdeviceptr address = found->second;
  free_.erase(found);
  Piece& piece = pieces_.at(address);
  piece.free = false;
  const size_t rest = piece.bytes - bytes;
  if (rest > 0) {
    piece.bytes = bytes;
    pieces_[address + bytes] = {rest, piece.segment, true};
    free_.insert({rest, address + bytes});
  }
  return address;
}

Status Pool::grow(size_t bytes) {
  size_t want = segment_bytes(bytes);
  // Near the limit a segment of just the block's size may still fit.
  for (const size_t size : {want, round_up(bytes, Pool::kGranularity)}) {
    if (reserved_ + size > limit()) release_locked();
    if (reserved_ + size > limit()) continue;
    CUdeviceptr base = 0;
    CUresult code = context_->api().cuMemAlloc(&base, size);
    if (code == CUDA_ERROR_OUT_OF_MEMORY && release_locked() > 0) {
      code = context_->api().cuMemAlloc(&base, size);
    }
    if (code == CUDA_ERROR_OUT_OF_MEMORY) continue;
    TF_RETURN_IF_ERROR(context_->check(code, "cuMemAlloc"));
    segments_[base] = {base, size};
    pieces_[base] = {size, base, true};
    free_.insert({size, base});
    reserved_ += size;
    return {};
  }
  return Status(ErrorCode::kOutOfMemory, "");
}

Status Pool::out_of_memory(size_t bytes, const char* what) const {
  size_t device_free = 0;
  size_t device_total = 0;
  context_->api().cuMemGetInfo(&device_free, &device_total);
  const size_t largest = free_.empty() ? 0 : free_.rbegin()->first;
  return error(
      ErrorCode::kOutOfMemory, "no room for ", bytes_text(bytes), " (", what, ") on ",
      context_->device().str(), ": this process uses ", bytes_text(in_use_), " of the ",
      bytes_text(reserved_), " it holds, its limit is ", bytes_text(limit()), ", the GPU has ",
      bytes_text(device_free), " of ", bytes_text(device_total), " free. Expected at most ",
      bytes_text(std::max(largest, std::min(device_free, limit() - std::min(limit(), reserved_)))),
      " in one piece. Use a smaller batch, free tensors, or raise gpu_memory_limit.");
}

void Pool::give_back(void* data) {
  const Token passed = context_->lost() ? Token() : lanes_passed_();
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto piece = pieces_.find(reinterpret_cast<CUdeviceptr>(data));
  in_use_ -= piece->second.bytes;
  Events::instance().publish(
      MemoryEvent{context_->device(), data, piece->second.bytes, false, in_use_, {}});
  if (passed) {
    pending_.push_back({piece->first, passed});
  } else {
    make_free(piece);
  }
}

void Pool::collect_pending() {
  const auto done = std::partition(pending_.begin(), pending_.end(),
                                   [](const Pending& p) { return !p.passed(); });
  for (auto it = done; it != pending_.end(); ++it) make_free(pieces_.find(it->address));
  pending_.erase(done, pending_.end());
}

void Pool::make_free(Pieces::iterator piece) {
  piece->second.free = true;
  const auto join = [&](Pieces::iterator left, Pieces::iterator right) {
    if (!left->second.free || !right->second.free ||
        left->second.segment != right->second.segment) {
      return left;
    }
    free_.erase({left->second.bytes, left->first});
    free_.erase({right->second.bytes, right->first});
    left->second.bytes += right->second.bytes;
    pieces_.erase(right);
    return left;
  };
  if (const auto next = std::next(piece); next != pieces_.end()) join(piece, next);
  if (piece != pieces_.begin()) {
    const auto before = std::prev(piece);
    if (before->second.free && before->second.segment == piece->second.segment) {
      piece = join(before, piece);
    }
  }
  free_.insert({piece->second.bytes, piece->first});
}

size_t Pool::release_locked() {
  size_t released = 0;
  for (auto it = segments_.begin(); it != segments_.end();) {
    const auto piece = pieces_.find(it->first);
    if (!piece->second.free || piece->second.bytes != it->second.bytes) {
      ++it;
      continue;
    }
    free_.erase({piece->second.bytes, piece->first});
    pieces_.erase(piece);
    context_->api().cuMemFree(it->first);
    released += it->second.bytes;
    it = segments_.erase(it);
  }
  reserved_ -= released;
  return released;
}

MemoryStats Pool::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {in_use_, peak_, reserved_, limit()};
}

void Pool::reset_peak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  peak_ = in_use_;
}

void Pool::release_cached() {
  if (!context_->enter().ok()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  collect_pending();
  release_locked();
}

}  // namespace tracefire::cuda
