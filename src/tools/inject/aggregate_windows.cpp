// SPDX-License-Identifier: Apache-2.0
// The window file: which events are kept, and their bytes.
#include <algorithm>

#include "tools/inject/aggregate.h"

namespace tracefire::inject {
namespace {

constexpr uint64_t kSecond = 1000000000;
constexpr uint64_t kForever = ~uint64_t{0};
constexpr size_t kLongestEvent = 160;
constexpr uint64_t kSmallestWindow = 2048;  // bytes
constexpr size_t kChunkTarget = size_t{256} << 10;

}  // namespace

bool Aggregate::wanted(uint64_t start) const {
  return window_open_ && start >= window_first_ && start <= window_last_;
}

int Aggregate::lane(uint32_t device, uint32_t context, uint32_t stream) {
  for (int i = 1; i < lane_count_; ++i) {
    const Lane& l = lanes_[i];
    if (l.device == device && l.stream == stream && l.context == context) return i;
  }
  if (lane_count_ == kMaxLanes) return 0;
  lanes_[lane_count_] = {device, context, stream};
  if (!chunk_open_) open_chunk(now_.cupti);
  Packer out(chunk_, kMaxChunkBytes);
  out.cut_to(chunk_size_);
  out.number(static_cast<uint64_t>(Event::kLane));
  out.number(static_cast<uint64_t>(lane_count_));
  out.number(device);
  out.number(context);
  out.number(stream);
  chunk_size_ = out.size();
  return lane_count_++;
}

int Aggregate::thread(uint32_t id) {
  for (int i = 1; i < thread_count_; ++i) {
    if (threads_[i] == id) return i;
  }
  if (thread_count_ == kMaxThreads) return 0;
  threads_[thread_count_] = id;
  if (!chunk_open_) open_chunk(now_.cupti);
  Packer out(chunk_, kMaxChunkBytes);
  out.cut_to(chunk_size_);
  out.number(static_cast<uint64_t>(Event::kThread));
  out.number(static_cast<uint64_t>(thread_count_));
  out.number(id);
  chunk_size_ = out.size();
  return thread_count_++;
}

void Aggregate::open_chunk(uint64_t base) {
  Packer out(chunk_, kMaxChunkBytes);
  out.fixed32(kChunkMagic);
  out.fixed32(0);  // length and sum are known when it is closed
  out.fixed32(0);
  out.fixed32(static_cast<uint32_t>(window_count_ - 1));
  out.fixed64(base);
  chunk_size_ = out.size();
  previous_start_ = base;
  previous_correlation_ = 0;
  chunk_open_ = true;
}

void Aggregate::close_chunk() {
  if (!chunk_open_) return;
  chunk_open_ = false;
  if (chunk_size_ == kChunkHeaderBytes) return;
  const auto length = static_cast<uint32_t>(chunk_size_ - kChunkHeaderBytes);
  std::memcpy(chunk_ + 4, &length, sizeof(length));
  const uint32_t sum = crc32(chunk_ + kChunkSummed, chunk_size_ - kChunkSummed);
  std::memcpy(chunk_ + 8, &sum, sizeof(sum));
  if (!sink_failed_ && sink_ != nullptr && sink_(sink_context_, chunk_, chunk_size_)) {
    written_ += chunk_size_;
    window_bytes_ += chunk_size_;
    return;
  }
  sink_failed_ = true;
  window_open_ = false;
  if (window_count_ > 0) windows_[window_count_ - 1].cut = true;
}

/// Begins an event: tag, start, duration. Lanes and threads have been named before.
void Aggregate::event(Event kind, uint64_t start, uint64_t end) {
  if (!chunk_open_) open_chunk(start);
  Packer out(chunk_, kMaxChunkBytes);
  out.cut_to(chunk_size_);
  event_begin_ = chunk_size_;
  out.number(static_cast<uint64_t>(kind));
  out.signed_number(static_cast<int64_t>(start - previous_start_));
  out.number(end - start);
  previous_start_ = start;
  chunk_size_ = out.size();
}

void Aggregate::correlate(uint32_t correlation) {
  Packer out(chunk_, kMaxChunkBytes);
  out.cut_to(chunk_size_);
  out.signed_number(static_cast<int32_t>(correlation - previous_correlation_));
  previous_correlation_ = correlation;
  chunk_size_ = out.size();
}

void Aggregate::event_done() {
  ++events_;
  ++windows_[window_count_ - 1].events;
  if (chunk_size_ >= kChunkTarget || kMaxChunkBytes - chunk_size_ < kLongestEvent) close_chunk();
  const uint64_t unwritten = chunk_open_ ? chunk_size_ : 0;
  if (window_open_ && window_bytes_ + unwritten > window_hard_) {
    // Too much even for the reserve: the window ends with holes, which its mark tells.
    close_chunk();
    windows_[window_count_ - 1].cut = true;
    windows_[window_count_ - 1].last = std::min(window_last_, newest_gpu_start_);
    window_open_ = false;
    window_ended_ = now_.cupti;
    work_at_end_ = kernels_ + copies_ + sets_;
    ++events_cut_;
  }
}

void Aggregate::step_windows(uint64_t now) {
  if (sink_failed_ || window_count_ == 0) return;
  if (window_open_) {
    const bool head = window_count_ == 1;
    if (window_last_ == kForever &&
        (window_bytes_ >= window_budget_ || (!head && now - window_first_ >= 2 * kSecond))) {
      window_last_ = now;
      windows_[window_count_ - 1].last = now;
    }
    // Work that began in the window may be delivered long after.
    if (window_last_ != kForever &&
        (newest_gpu_start_ > window_last_ || now - window_last_ >= 5 * kSecond)) {
      window_open_ = false;
      window_ended_ = now;
      work_at_end_ = kernels_ + copies_ + sets_;
    }
    return;
  }
  // Distances grow with the work done, not with time: compiling and waiting need no windows. Each
  // window takes a part of the bytes that are left, so that there is always something left.
  const uint64_t work = kernels_ + copies_ + sets_;
  const uint64_t budget = window_limit_ > written_ ? (window_limit_ - written_) / 12 : 0;
  if (window_count_ == kMaxWindows || now - window_ended_ < kSecond / 3 ||
      work - work_at_end_ < work_at_end_ / 2 || budget < kSmallestWindow) {
    return;
  }
  window_open_ = true;
  window_first_ = now;
  window_last_ = kForever;
  window_budget_ = budget;
  window_hard_ = std::min(window_limit_ - written_, budget + window_limit_ / 8);
  window_bytes_ = 0;
  windows_[window_count_++] = {now, kForever, 0, false};
}

void Aggregate::beat(const Clocks& clocks) {
  const uint64_t newest = std::max(clocks.cupti, now_.cupti);
  now_ = clocks;
  now_.cupti = newest;
  if (clocks.cpu > last_cpu_ && clocks.cupti > last_cpu_at_) {
    // CPU time is read once a beat; it is spread evenly over it.
    uint64_t left = clocks.cpu - last_cpu_;
    const uint64_t span = clocks.cupti - last_cpu_at_;
    uint64_t start = last_cpu_at_;
    bucket(clocks.cupti);
    while (start < clocks.cupti) {
      const int b = bucket(start);
      const uint64_t edge = first_.cupti + (static_cast<uint64_t>(b) + 1) * bucket_ns_;
      const uint64_t stop = std::min(clocks.cupti, edge);
      const auto part =
          static_cast<uint64_t>(static_cast<double>(clocks.cpu - last_cpu_) *
                                static_cast<double>(stop - start) / static_cast<double>(span));
      host_[b].cpu += std::min(part, left);
      left -= std::min(part, left);
      start = stop;
    }
  }
  last_cpu_ = clocks.cpu;
  last_cpu_at_ = clocks.cupti;
  step_windows(clocks.cupti);
}

void Aggregate::finish(const Clocks& clocks) {
  beat(clocks);
  close_chunk();
  if (window_count_ > 0 && windows_[window_count_ - 1].last == kForever) {
    windows_[window_count_ - 1].last = clocks.cupti;
  }
  window_open_ = false;
  clean_end_ = true;
}

}  // namespace tracefire::inject
