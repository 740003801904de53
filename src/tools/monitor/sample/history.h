// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "tools/monitor/sample/snapshot.h"

namespace tracefire::monitor {

/// What is kept of a GPU at one time; NaN for what was missing.
struct Point {
  int64_t unix_us = 0;
  int64_t steady_us = 0;
  float busy = 0;          ///< 0 to 1
  float sm = 0;            ///< 0 to 1
  float memory = 0;        ///< used over total
  float power = 0;         ///< watts
  float temperature = 0;   ///< degrees Celsius
  float clock = 0;         ///< of the multiprocessors, hertz
  float pcie = 0;          ///< bytes a second, both directions
  float nvlink = 0;        ///< bytes a second, both directions
  bool throttled = false;  ///< by heat or the power supply
  bool has_job = false;    ///< a compute process holds the GPU
};

/// The name under which a GPU's history is kept: its UUID, or its index where it has none.
std::string history_key(const Gpu& gpu);

/// The newest snapshot and the last points of every GPU. Bounded: the oldest points go first.
/// Thread-safe: one writer, any number of readers.
class History {
 public:
  explicit History(size_t points_per_gpu = 3600) : most_(points_per_gpu) {}

  void add(std::shared_ptr<const Snapshot> snapshot);
  /// Null before the first.
  std::shared_ptr<const Snapshot> latest() const;
  /// Points of a GPU, oldest first, at most `most` of the newest.
  std::vector<Point> points(const std::string& key, size_t most) const;
  /// Waits until there is a snapshot newer than `sequence`, or for `longest`. Null: none came.
  std::shared_ptr<const Snapshot> wait_for(uint64_t sequence, std::chrono::milliseconds longest);
  /// Wakes up everyone who waits; wait_for() answers at once from now on.
  void stop();

 private:
  const size_t most_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopped_ TF_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const Snapshot> latest_ TF_GUARDED_BY(mutex_);
  std::map<std::string, std::deque<Point>> series_ TF_GUARDED_BY(mutex_);
};

}  // namespace tracefire::monitor
