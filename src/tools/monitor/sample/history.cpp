// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/sample/history.h"

#include <algorithm>
#include <limits>

namespace tracefire::monitor {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
constexpr size_t kMaxSeries = 2 * kMaxGpus;

float value(const Reading& reading) {
  return reading.ok() ? static_cast<float>(reading.value) : kMissing;
}

float sum(const Reading& a, const Reading& b) {
  return a.ok() && b.ok() ? static_cast<float>(a.value + b.value) : kMissing;
}

Point point_of(const Snapshot& snapshot, const Gpu& gpu) {
  Point p;
  p.unix_us = snapshot.unix_us;
  p.steady_us = snapshot.steady_us;
  p.busy = value(gpu[Metric::kBusy]);
  p.sm = value(gpu[Metric::kSmActivity]);
  const Reading& total = gpu[Metric::kMemoryTotal];
  const Reading& used = gpu[Metric::kMemoryUsed];
  p.memory = total.ok() && used.ok() && total.value > 0
                 ? static_cast<float>(used.value / total.value)
                 : kMissing;
  p.power = value(gpu[Metric::kPower]);
  p.temperature = value(gpu[Metric::kTemperature]);
  p.clock = value(gpu[Metric::kClockSm]);
  p.pcie = sum(gpu[Metric::kPcieTx], gpu[Metric::kPcieRx]);
  p.nvlink = sum(gpu[Metric::kNvlinkTx], gpu[Metric::kNvlinkRx]);
  p.throttled = gpu.throttle_code == Reading::kOk && (gpu.throttle & throttle_fault_bits()) != 0;
  p.has_job =
      std::any_of(gpu.processes.begin(), gpu.processes.end(),
                  [](const GpuProcess& process) { return process.kind != ProcessKind::kGraphics; });
  return p;
}

}  // namespace

std::string history_key(const Gpu& gpu) {
  return gpu.uuid.empty() ? "index:" + std::to_string(gpu.index) : gpu.uuid;
}

void History::add(std::shared_ptr<const Snapshot> snapshot) {
  {
    MutexLock lock(mutex_);
    for (const Gpu& gpu : snapshot->gpus) {
      const std::string key = history_key(gpu);
      if (series_.size() >= kMaxSeries && series_.count(key) == 0) continue;
      std::deque<Point>& points = series_[key];
      points.push_back(point_of(*snapshot, gpu));
      while (points.size() > most_) points.pop_front();
    }
    latest_ = std::move(snapshot);
  }
  changed_.notify_all();
}

std::shared_ptr<const Snapshot> History::latest() const {
  MutexLock lock(mutex_);
  return latest_;
}

std::vector<Point> History::points(const std::string& key, size_t most) const {
  MutexLock lock(mutex_);
  const auto found = series_.find(key);
  if (found == series_.end()) return {};
  const size_t count = std::min(most, found->second.size());
  return {found->second.end() - static_cast<std::ptrdiff_t>(count), found->second.end()};
}

std::shared_ptr<const Snapshot> History::wait_for(uint64_t sequence,
                                                  std::chrono::milliseconds longest) {
  const auto deadline = std::chrono::steady_clock::now() + longest;
  MutexLock lock(mutex_);
  while (!stopped_ && (latest_ == nullptr || latest_->sequence <= sequence)) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= std::chrono::milliseconds(0)) return nullptr;
    changed_.wait_for(mutex_, left);
  }
  return latest_ != nullptr && latest_->sequence > sequence ? latest_ : nullptr;
}

void History::stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

}  // namespace tracefire::monitor
