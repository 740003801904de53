// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "tools/monitor/sample/history.h"
#include "tools/monitor/sample/source.h"

namespace tracefire::monitor {

/// Reads a source again and again on a thread of its own, on a grid of the monotonic clock: a slow
/// read delays the next one but does not shift those after it. Readers never wait for the source.
class Sampler {
 public:
  /// The thread owns `source` and `history`, so that it may outlive everything else.
  Sampler(std::shared_ptr<Source> source, std::shared_ptr<History> history,
          std::chrono::milliseconds interval);
  /// Waits up to two seconds for the thread; a read that hangs in the driver is left behind.
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  void start();
  void set_interval(std::chrono::milliseconds interval);
  std::chrono::milliseconds interval() const;
  /// Seconds since the read that is under way began; 0 between reads. Large: the driver hangs.
  double stuck_seconds() const;

 private:
  struct State;
  static void run(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
  std::thread thread_;
};

/// One read, with its times filled in.
std::shared_ptr<const Snapshot> take_snapshot(Source& source, uint64_t sequence);

}  // namespace tracefire::monitor
