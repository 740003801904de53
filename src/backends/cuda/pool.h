// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "backends/api/buffer.h"
#include "backends/cuda/context.h"

namespace tracefire::cuda {

/// Memory of one GPU. Segments are taken from the driver as they are needed and kept; blocks are
/// cut from them, best fit first, and merged with free neighbours when they come back.
///
/// Blocks are reused in stream order. While the device has one lane, a block that comes back may be
/// given out at once, since later work of the lane runs after the work that still uses it. With
/// more lanes it waits until every lane has passed the point at which it came back.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  /// `lanes_passed()` returns a token for "now" in all lanes, null where there is one lane only;
  /// the token tells whether that point was passed.
  using Token = std::function<bool()>;
  using LanesPassed = std::function<Token()>;

  Pool(std::shared_ptr<const Context> context, LanesPassed lanes_passed)
      : context_(std::move(context)), lanes_passed_(std::move(lanes_passed)) {}
  ~Pool();

  /// Rounds up to 512 bytes. `what` names the user in an out-of-memory error (kOutOfMemory).
  Result<BufferPtr> allocate(size_t bytes, const char* what);
  MemoryStats stats() const;
  void reset_peak();
  /// Gives segments without a block in use back to the driver.
  void release_cached();

  static constexpr size_t kGranularity = 512;

 private:
  class Block;
  struct Segment {
    CUdeviceptr base;
    size_t bytes;
  };
  /// A piece of a segment, in use or free.
  struct Piece {
    size_t bytes;
    CUdeviceptr segment;
    bool free;
  };
  using Pieces = std::map<CUdeviceptr, Piece>;
  struct Pending {
    CUdeviceptr address;
    Token passed;
  };

  void give_back(void* data);              // from a Block's destructor
  void make_free(Pieces::iterator piece);  // requires mutex_
  void collect_pending();                  // requires mutex_
  CUdeviceptr take_free(size_t bytes);     // requires mutex_; 0 where none fits
  Status grow(size_t bytes);               // requires mutex_
  size_t release_locked();                 // requires mutex_; bytes released
  size_t limit() const;
  Status out_of_memory(size_t bytes, const char* what) const;  // requires mutex_

  const std::shared_ptr<const Context> context_;
  const LanesPassed lanes_passed_;
  mutable std::mutex mutex_;
  std::map<CUdeviceptr, Segment> segments_;
  Pieces pieces_;
  std::set<std::pair<size_t, CUdeviceptr>> free_;  // by size
  std::vector<Pending> pending_;
  size_t in_use_ = 0;
  size_t peak_ = 0;
  size_t reserved_ = 0;
};

}  // namespace tracefire::cuda
