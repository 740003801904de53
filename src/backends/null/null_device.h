// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "backends/api/device_backend.h"

namespace tracefire {

/// What a null device was asked to do.
struct NullCounts {
  uint64_t launches = 0;         ///< kernels run one by one
  uint64_t captures = 0;         ///< graphs captured
  uint64_t captured_kernels = 0; ///< kernels recorded into them
  uint64_t replays = 0;          ///< graphs launched
  uint64_t copies_in = 0, copies_out = 0, copies = 0;
  uint64_t bytes_in = 0, bytes_out = 0;
};

/// A device that computes nothing: whole models are compiled, planned and "run" without hardware.
/// Buffers have addresses that are never touched, and what is copied out is zeros.
class NullDevice : public DeviceBackend {
 public:
  virtual NullCounts counts() const = 0;
};

std::unique_ptr<NullDevice> make_null_device(Device device);

}  // namespace tracefire
