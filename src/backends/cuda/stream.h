// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backends/api/device_backend.h"
#include "backends/cuda/context.h"

namespace tracefire::cuda {

/// An event of the driver, destroyed with its owner.
class Event {
 public:
  /// Events take no times unless `timed`, which costs a little.
  static Result<std::unique_ptr<Event>> make(std::shared_ptr<const Context> context,
                                             bool timed = false);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  Status record(CUstream stream);
  /// Waits until the work before the event has finished.
  Status synchronize() const;
  /// True once it has; also where the device is lost, since nothing will use memory any more.
  bool passed() const;
  /// Milliseconds from `start` to this event; both timed and passed.
  Result<float> since(const Event& start) const;
  CUevent handle() const { return event_; }

 private:
  explicit Event(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  const std::shared_ptr<const Context> context_;
  CUevent event_ = nullptr;
};

/// A lane: one stream of the driver.
class Lane final : public Stream {
 public:
  static Result<std::unique_ptr<Lane>> make(std::shared_ptr<const Context> context, int lane);
  ~Lane() override;

  Device device() const override { return context_->device(); }
  int lane() const override { return lane_; }
  Status synchronize() override;
  Status wait_for(Stream& other) override;

  CUstream handle() const { return stream_; }
  const Context& context() const { return *context_; }
  /// True for a lane whose work is recorded into a graph instead of running.
  bool capturing() const { return capturing_; }
  void set_capturing(bool on) { capturing_ = on; }

 private:
  Lane(std::shared_ptr<const Context> context, int lane)
      : context_(std::move(context)), lane_(lane) {}
  const std::shared_ptr<const Context> context_;
  const int lane_;
  CUstream stream_ = nullptr;
  std::mutex mutex_;
  std::unique_ptr<Event> mark_;  // guarded by mutex_; what others wait for
  bool capturing_ = false;
};

/// The lane behind a stream of the contract.
inline Lane& lane_of(Stream& stream) { return static_cast<Lane&>(stream); }

}  // namespace tracefire::cuda
