// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backends/api/device_backend.h"

namespace tracefire {

/// Reads of device memory that belong together: the host waits once for each device, not once for
/// each value. Values of one device are copied next to each other on it, in stream order, and
/// travel as one block; where the host addresses a device's memory nothing is copied at all.
class HostReader {
 public:
  /// Wants `bytes` of `source`, where `target` is given copied there. Returns the number that
  /// data() takes.
  size_t add(Storage source, size_t bytes, void* target = nullptr);
  /// Reads what was added; on return everything enqueued on these devices before is done. Once.
  Status run();
  /// The bytes of one read. `owner` keeps them where they are; on a device that the host addresses
  /// it is the device's buffer, whose bytes may be written again unless their payload is kept, too.
  const char* data(size_t read) const { return reads_[read].data; }
  const std::shared_ptr<void>& owner(size_t read) const { return reads_[read].owner; }
  /// Whether data() is a copy.
  bool copied(size_t read) const { return reads_[read].copied; }
  /// Whether run() waited for `device`.
  bool waited_for(Device device) const { return by_device_.count(device) != 0; }

 private:
  struct Read {
    Storage source;
    size_t bytes = 0;
    void* target = nullptr;
    const char* data = nullptr;
    std::shared_ptr<void> owner;
    bool copied = false;
  };
  Status run_on(DeviceBackend& backend, Stream& stream, const std::vector<size_t>& reads);
  Status read_block(DeviceBackend& backend, Stream& stream, const std::vector<size_t>& reads);
  static Status read_alone(DeviceBackend& backend, Stream& stream, Read* read);

  std::vector<Read> reads_;
  std::map<Device, std::vector<size_t>> by_device_;
};

}  // namespace tracefire
