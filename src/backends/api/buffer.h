// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "tracefire/device.h"

namespace tracefire {

/// One block of a device's memory. Freed (returned to its pool) with the last reference; the pool
/// keeps stream order, so a block may be dropped while work that uses it is still in flight.
class Buffer {
 public:
  virtual ~Buffer() = default;
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

 protected:
  Buffer(void* data, size_t bytes, Device device) : data_(data), bytes_(bytes), device_(device) {}
  void* data_;
  size_t bytes_;
  Device device_;
};
using BufferPtr = std::shared_ptr<Buffer>;

/// A dense row-major array inside a buffer. A string array's buffer holds std::string objects.
struct Storage {
  BufferPtr buffer;
  size_t offset = 0;
  void* data() const { return static_cast<char*>(buffer->data()) + offset; }
  explicit operator bool() const { return buffer != nullptr; }
};

struct MemoryStats {
  size_t in_use = 0;    ///< bytes of live buffers
  size_t peak = 0;      ///< highest in_use since reset
  size_t reserved = 0;  ///< bytes the pool holds from the device
  size_t limit = 0;     ///< bytes it may hold; 0: the whole device
};

/// What a failed check left behind. Zero before a run; kernels set it once, by compare-and-swap on
/// `step_plus_one`, so the first failure stays. Lives in the run's device memory.
struct ErrorWord {
  uint32_t step_plus_one = 0;
  uint32_t code = 0;   ///< ErrorCode number
  int64_t detail = 0;  ///< the offending value or index
};

}  // namespace tracefire
