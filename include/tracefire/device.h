// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tracefire/export.h"

namespace tracefire {

/// Where a value lives or a step runs: a kind and an index, written "/CPU:0", "/GPU:1".
///
/// Kinds beyond CPU and GPU exist only where a build registers them by name (test devices).
struct TRACEFIRE_API Device {
  static constexpr uint8_t kUnset = 255;
  static constexpr uint8_t kCpu = 0;
  static constexpr uint8_t kGpu = 1;

  uint8_t kind = kUnset;
  uint8_t index = 0;

  static constexpr Device cpu(uint8_t index = 0) { return {kCpu, index}; }
  static constexpr Device gpu(uint8_t index = 0) { return {kGpu, index}; }

  bool is_set() const { return kind != kUnset; }
  /// "/GPU:0"; "" where unset.
  std::string str() const;

  friend bool operator==(Device a, Device b) { return a.kind == b.kind && a.index == b.index; }
  friend bool operator!=(Device a, Device b) { return !(a == b); }
  friend bool operator<(Device a, Device b) {
    return a.kind != b.kind ? a.kind < b.kind : a.index < b.index;
  }
};

/// Parses "/GPU:0", "GPU:0", "gpu", "cpu:1", "/device:GPU:0" and TensorFlow's full form
/// "/job:localhost/replica:0/task:0/device:GPU:0". Throws Error (unknown device) with the list of
/// known kinds; does not check that the device exists on this machine.
TRACEFIRE_API Device parse_device(std::string_view text);

/// Gives `name` ("NULL") a kind number; the same name gets the same number. Upper case.
TRACEFIRE_API uint8_t register_device_kind(std::string_view name);
TRACEFIRE_API std::string device_kind_name(uint8_t kind);

}  // namespace tracefire
