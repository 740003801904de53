// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tracefire::nvidia {

/// What the operating system tells about NVIDIA GPUs, read from files alone.
struct MachineFacts {
  int nvidia_gpus = 0;        ///< NVIDIA display or compute devices on the PCI bus
  std::string kernel_driver;  ///< "580.159.04" from /proc/driver/nvidia/version, "" if not loaded
  bool nouveau = false;       ///< the open driver nouveau is loaded
  bool nova = false;          ///< the in-kernel driver nova_core is loaded
  bool secure_boot = false;
  bool device_nodes = false;  ///< /dev/nvidia0 … exist
  bool control_node = false;  ///< /dev/nvidiactl exists
  bool uvm_node = false;      ///< /dev/nvidia-uvm exists
  bool nodes_denied = false;  ///< a device node exists and may not be opened by this user
  bool wsl = false;           ///< Windows subsystem for Linux
  bool wsl_driver = false;    ///< /usr/lib/wsl/lib/libcuda.so.1 exists
  bool container = false;
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES, where set

  /// `root` goes before every path ("" for this machine); the environment is this process's.
  static MachineFacts read(const std::string& root = "");
};

/// The cure where there is nothing to cure.
inline constexpr const char* kNothingToDo = "Nothing to do: work runs on the CPU";

/// Why no GPU can be used, and what to do.
struct NoGpuReason {
  std::string kind;    ///< "no-gpu", "nouveau-loaded", "driver-too-old", …
  std::string reason;  ///< one sentence without a full stop
  std::string cure;    ///< one sentence without a full stop
  std::string line() const { return reason + ". " + cure + "."; }
};

/// Which step failed.
struct DriverFailure {
  bool library_missing = false;  ///< libcuda.so.1 was not found
  std::string library_path;
  int init_code = 0;       ///< what cuInit returned
  int cuda_version = 0;    ///< as cuDriverGetVersion tells it, 0 if unknown
  int devices = 0;         ///< devices that the driver shows
  bool mig_empty = false;  ///< MIG is on and no instance exists
  std::string init_words;  ///< the driver's name for init_code
};

/// The most specific reason that fits.
NoGpuReason explain_no_gpu(const MachineFacts& machine, const DriverFailure& failure);

}  // namespace tracefire::nvidia
