// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tracefire/device.h"
#include "tracefire/export.h"

namespace tracefire {

struct DeviceDescription {
  Device device;
  std::string name;          ///< "NVIDIA H200"
  std::string architecture;  ///< "sm_90"
  uint64_t memory_bytes = 0;
  std::string driver;
};

/// Usable devices of this process, GPUs first.
TRACEFIRE_API std::vector<DeviceDescription> list_devices();
/// Why no GPU is used and how to cure it, in one line; empty where one is.
TRACEFIRE_API std::string why_no_gpu();
TRACEFIRE_API Device default_device();
/// Report of every NVIDIA library that was looked for: places, versions, outcome.
TRACEFIRE_API std::string library_report();

/// A library that this process computes with, as it was found when the process ran.
struct LibraryDescription {
  std::string name;     ///< "cuBLASLt", "NVIDIA driver", "oneDNN"
  std::string version;  ///< as the library tells it, "13.1.0"; empty where it does not
  std::string path;     ///< its file
  std::string origin;   ///< by which rule it was found: "Python package", "linked", …
};
/// Libraries in use, the driver first. Starts the devices. Those that are looked for and missing
/// are in library_report().
TRACEFIRE_API std::vector<LibraryDescription> list_libraries();
/// Where else to look for NVIDIA libraries (site-packages of an embedding Python); before any work.
TRACEFIRE_API void add_library_root(const std::string& directory);

/// How many virtual CPU devices there are, 1 to 64; before any work only, else kBadSetting.
TRACEFIRE_API void set_cpu_devices(int count);
/// Soft: an operation its device cannot run goes to the CPU and says so. Strict: it is an error.
TRACEFIRE_API void set_soft_device_placement(bool soft);
/// TensorFlow's placement log on stderr, op by op in call order.
TRACEFIRE_API void set_log_device_placement(bool log);
/// Whether f32 products may use TF32 on GPUs (the default, as TensorFlow).
TRACEFIRE_API void set_tensor_float_32(bool allowed);
/// Hides ops from a device kind ("GPU", "NULL") as if it had no kernel: tests of placement. Throws
/// kUnknownDevice and kUnknownOp for names that there are not.
TRACEFIRE_API void mask_ops(const std::string& device_kind, const std::vector<std::string>& ops);

/// Gives a setting (`tracefire settings` lists them) a value written as text ("true", "256",
/// "strict"). Throws kBadSetting with what is allowed.
TRACEFIRE_API void change_setting(const std::string& name, const std::string& value);
/// The value of a setting as text.
TRACEFIRE_API std::string setting(const std::string& name);

/// Bytes of a device's memory.
struct MemoryInfo {
  uint64_t in_use = 0;    ///< in live values and programs
  uint64_t peak = 0;      ///< most that was in use
  uint64_t reserved = 0;  ///< held by the pool
  uint64_t limit = 0;     ///< most that the pool may hold; 0: all there is
};
/// Throws kUnknownDevice.
TRACEFIRE_API MemoryInfo memory_info(Device device);

/// Operations recorded on this thread while it lives go to `device`, by the user's wish. What is
/// pending fires when it ends. Scopes of a thread end in the order opposite to their beginning.
/// Throws kUnknownDevice, with the devices that there are; a device that is not set changes nothing.
class TRACEFIRE_API DeviceScope {
 public:
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Device before_;
};

/// Prefixes node names: "dense/matmul".
class TRACEFIRE_API NameScope {
 public:
  explicit NameScope(const std::string& name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;
};

/// Front ends tell where the user's program is: called when an operation is recorded. Gives false
/// where it does not know; the text of `file` must live as long as the process.
using LocationSource = bool (*)(const char** file, int32_t* line);
TRACEFIRE_API void set_location_source(LocationSource source);

/// Asked on the calling thread before the first step of a long loop and between its replays; true
/// stops it with kCancelled, with every variable in the state of the last finished step. Set it
/// before any work.
TRACEFIRE_API void set_interrupt_check(std::function<bool()> check);

/// Fires what is pending on this thread. Throws the failure of a print, assert or host_call that no
/// value carries; each such failure is thrown once, here, in synchronize() or where a value is next
/// observed on this thread.
TRACEFIRE_API void flush();
/// flush(), then waits for all devices; throws the first device failure.
TRACEFIRE_API void synchronize();

}  // namespace tracefire
