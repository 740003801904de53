// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace tracefire::inject {

/// Viewers draw one row a track and drop what overlaps on it in part. Kernels of a CUDA graph that
/// is traced by node may run at once on one stream: then a stream gets several tracks.
class Tracks {
 public:
  static constexpr size_t kMost = 32;  ///< a stream

  /// Which track of `lane` an event goes to; events of a lane come by their start.
  size_t place(uint32_t lane, uint64_t start, uint64_t end) {
    std::vector<uint64_t>& ends = ends_[lane];
    size_t at = 0;
    while (at < ends.size() && ends[at] > start && at + 1 < kMost) ++at;
    if (at == ends.size()) ends.push_back(0);
    ends[at] = end;
    return at;
  }
  size_t count(uint32_t lane) const {
    const auto found = ends_.find(lane);
    return found == ends_.end() ? 0 : found->second.size();
  }

 private:
  std::map<uint32_t, std::vector<uint64_t>> ends_;
};

}  // namespace tracefire::inject
