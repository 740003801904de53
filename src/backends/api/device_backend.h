// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/api/kernel.h"

namespace tracefire {

struct DeviceInfo {
  Device device;
  std::string name;          ///< "NVIDIA H200", "AMD EPYC 9R14"
  std::string architecture;  ///< "sm_90", "x86-64 avx512"
  size_t memory_bytes = 0;
  std::string driver;        ///< "580.159.04 (CUDA 13.0)"; empty on the CPU
  double peak_flops_f32 = 0; ///< 0 where unknown
};

/// One ordered queue of a device. The CPU's runs work before the call returns.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Device device() const = 0;
  virtual int lane() const = 0;
  /// Waits for everything enqueued so far; returns the device's sticky error where it has one.
  virtual Status synchronize() = 0;
  /// Makes later work of this stream wait for what `other` (same device) has enqueued so far.
  virtual Status wait_for(Stream& other) = 0;
};

/// Recorded launches that one call replays (a CUDA graph). Owns no buffers: its instance does.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  virtual Status launch(Stream& stream) = 0;
  virtual size_t nodes() const = 0;
};

/// A device that can hold values and run kernels. Thread-safe.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  virtual const DeviceInfo& info() const = 0;
  Device device() const { return info().device; }

  /// Rounds up to the pool's granularity. `what` names the user in an out-of-memory error.
  virtual Result<BufferPtr> allocate(size_t bytes, const char* what) = 0;
  virtual MemoryStats memory() const = 0;
  virtual void reset_peak() = 0;
  /// Gives blocks nobody uses back to the device.
  virtual void release_cached() = 0;
  /// True where the host may read and write buffers directly once the stream is synchronised.
  virtual bool host_addressable() const = 0;

  virtual Result<Stream*> stream(int lane) = 0;
  /// From host memory; `source` may be reused when the call returns.
  virtual Status copy_in(Stream& stream, void* target, const void* source, size_t bytes) = 0;
  /// To host memory; complete when the call returns.
  virtual Status copy_out(Stream& stream, void* target, const void* source, size_t bytes) = 0;
  /// Inside the device, in stream order.
  virtual Status copy(Stream& stream, void* target, const void* source, size_t bytes) = 0;
  virtual Status fill_zero(Stream& stream, void* target, size_t bytes) = 0;

  virtual const KernelList& kernels(OpId op) const = 0;
  /// Told once a program is compiled: all nodes it placed here, so that kernels which must be
  /// generated are compiled together. Later bind() calls find them ready.
  virtual Status prepare(std::span<const NodeView> nodes) = 0;

  virtual bool can_capture() const { return false; }
  /// Runs `body` with `stream` in capture mode and instantiates what it enqueued.
  virtual Result<std::unique_ptr<CapturedGraph>> capture(
      Stream& stream, const std::function<Status(Stream&)>& body);
  /// OK, or why the device is lost.
  virtual Status health() const { return {}; }
};

/// Starts the backends of this build; the only place that names them is backends/registry.cpp.
class Backends {
 public:
  static Backends& instance();

  /// Devices that work on this machine, GPUs first. Test devices are made on first mention.
  std::vector<DeviceBackend*> devices();
  /// kUnknownDevice with the list of devices and, for a GPU, the reason and the cure.
  Result<DeviceBackend*> find(Device device);
  /// The first GPU where one can be used, else the CPU.
  Device default_device();
  /// Why no GPU is used, in one line with the cure; empty where one is.
  std::string why_no_gpu();
  /// Every NVIDIA library that was looked for, where, and with what outcome.
  std::string library_report();
  /// Another folder that holds Python packages (nvidia/*/lib). Before first use of a GPU.
  void add_library_root(const std::string& directory);
  /// How many virtual CPU devices exist (tests use 2). Before first use of the CPU only.
  Status set_cpu_devices(int count);
  /// Masks ops on a device kind, as if no kernel accepted them: tests of placement.
  void mask(uint8_t kind, std::vector<std::string> ops);
  bool masked(uint8_t kind, std::string_view op) const;
  /// Goes up with each mask(): a graph may be placed in another way from then on.
  uint64_t masks_generation() const;

 private:
  Backends();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tracefire
