// SPDX-License-Identifier: Apache-2.0
// Why no GPU can be used: one reason, one cure.
#include <cuda.h>

#include "backends/nvidia/library.h"
#include "backends/nvidia/machine.h"

namespace tracefire::nvidia {
namespace {

constexpr char kRunInContainer[] =
    "Start the container with --gpus all and the NVIDIA container toolkit";

/// The kernel side of the driver is not there: why?
NoGpuReason no_kernel_driver(const MachineFacts& m) {
  if (m.nouveau) {
    return {"nouveau-loaded", "the open driver nouveau holds the GPU, so NVIDIA's driver cannot",
            "Blacklist nouveau, rebuild the initramfs and reboot"};
  }
  if (m.nova) {
    return {"nova-loaded", "the kernel driver nova_core holds the GPU, so NVIDIA's driver cannot",
            "Blacklist nova_core and nova_drm, rebuild the initramfs and reboot"};
  }
  if (m.container) {
    return {"container-no-gpu", "this container was started without access to the GPU",
            kRunInContainer};
  }
  if (m.secure_boot) {
    return {"secure-boot", "Secure Boot is on and NVIDIA's kernel module is not loaded",
            "Enrol the key that signs the module (mokutil), install a signed driver package, or "
            "turn Secure Boot off"};
  }
  return {"kernel-module-missing",
          "the machine has an NVIDIA GPU, but NVIDIA's kernel module is not loaded",
          "Install the driver with the headers of the running kernel, then reboot"};
}

NoGpuReason no_library(const MachineFacts& m) {
  if (m.wsl && !m.wsl_driver) {
    return {"wsl-no-driver", "WSL has no NVIDIA driver (/usr/lib/wsl/lib/libcuda.so.1 is missing)",
            "Install the current NVIDIA driver in Windows, run `wsl --update` and restart WSL"};
  }
  if (m.kernel_driver.empty() && !m.device_nodes) {
    if (m.nvidia_gpus == 0) {
      return {"no-gpu", "this machine has no NVIDIA GPU", kNothingToDo};
    }
    return no_kernel_driver(m);
  }
  if (m.container) {
    return {"container-no-gpu", "this container has no libcuda.so.1: the driver was not passed in",
            kRunInContainer};
  }
  return {"driver-library-missing",
          "the kernel module " + m.kernel_driver + " is loaded, but libcuda.so.1 was not found",
          "Install the driver's user-space package of the same version, or add its folder to "
          "LD_LIBRARY_PATH"};
}

NoGpuReason no_device(const MachineFacts& m, const DriverFailure& f) {
  if (m.visible_devices) {
    return {
        "cuda-visible-devices",
        "CUDA_VISIBLE_DEVICES=\"" + *m.visible_devices + "\" hides every GPU",
        "Unset CUDA_VISIBLE_DEVICES, or set it to a number or UUID that `nvidia-smi -L` prints"};
  }
  if (m.wsl && f.library_path.find("/wsl/") == std::string::npos) {
    return {"wsl-wrong-driver",
            "a Linux driver (" + f.library_path + ") inside WSL hides the driver of Windows",
            "Remove the Linux driver packages inside WSL, or put /usr/lib/wsl/lib first in "
            "LD_LIBRARY_PATH"};
  }
  if (f.mig_empty) {
    return {"mig-no-instance", "MIG is on and no instance exists or was given to this process",
            "Create a GPU and a compute instance (nvidia-smi mig), or request one from the "
            "scheduler"};
  }
  if (m.nodes_denied) {
    return {"dev-permissions", "this user may not open the GPU's device files /dev/nvidia*",
            "Add the user to the group that owns them (often video or render), then log in again"};
  }
  if (m.wsl) {
    return {"wsl-no-driver", "the driver of Windows shows no GPU to WSL",
            "Update the NVIDIA driver in Windows, run `wsl --update` and restart WSL"};
  }
  if (m.container && m.device_nodes) {
    return {
        "cgroup-devices-lost",
        "the GPU's device files exist in this container, but the driver cannot open them",
        "Restart the container; to prevent it, run `nvidia-ctk system create-dev-char-symlinks` "
        "on the host"};
  }
  if (m.container) return {"container-no-gpu", "this container has no GPU", kRunInContainer};
  if (m.kernel_driver.empty() && m.nvidia_gpus > 0) return no_kernel_driver(m);
  if (m.nvidia_gpus == 0) {
    return {"no-gpu", "the driver is installed, but this machine has no NVIDIA GPU",
            kNothingToDo};
  }
  return {"driver-unsupported-gpu", "the driver " + m.kernel_driver + " does not drive this GPU",
          "Look for NVRM lines in `dmesg`; install the driver branch (and for Blackwell the open "
          "flavour) that supports it"};
}

NoGpuReason init_failed(const MachineFacts& m, const DriverFailure& f) {
  const std::string words = f.init_words + " (" + std::to_string(f.init_code) + ")";
  switch (f.init_code) {
    case CUDA_ERROR_STUB_LIBRARY:
      return {"stub-library", f.library_path + " is a stub to link against, not the driver",
              "Remove the folder of stubs from LD_LIBRARY_PATH"};
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return {"driver-lib-mismatch",
              "the loaded kernel module " + m.kernel_driver +
                  " and the driver's libraries are of different versions",
              "Reboot (or reload the module) after the driver's update"};
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return {"forward-compat-804",
              "a compatibility libcuda newer than the host's driver is in use, which this GPU does "
              "not allow",
              "Update the host's driver, or remove /usr/local/cuda/compat from LD_LIBRARY_PATH"};
    case CUDA_ERROR_SYSTEM_NOT_READY:
      return {"fabric-manager", "the NVSwitch fabric is not initialised (error 802)",
              "Install and start nvidia-fabricmanager of exactly the driver's version"};
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
      return {"compute-mode-exclusive", "another process holds the GPU exclusively",
              "End that process, or choose another GPU with CUDA_VISIBLE_DEVICES"};
    default:
      break;
  }
  if (m.nodes_denied) return no_device(m, f);
  if (m.kernel_driver.empty() && !m.wsl) {
    return m.nvidia_gpus == 0 && !m.container
               ? NoGpuReason{"no-gpu",
                             "the driver is installed, but this machine has no NVIDIA GPU",
                             kNothingToDo}
               : no_kernel_driver(m);
  }
  if (m.device_nodes && !m.uvm_node) {
    return {"uvm-missing", "/dev/nvidia-uvm is missing, so CUDA cannot start: " + words,
            "Run `sudo nvidia-modprobe -u -c=0` (it loads nvidia_uvm and makes the file)"};
  }
  if (m.wsl && m.container) {
    return {"wsl-docker", "the libcuda in this container does not fit the driver of WSL: " + words,
            "Update Docker Desktop and the NVIDIA container toolkit"};
  }
  return {"driver-failed", "the NVIDIA driver could not start: " + words,
          "Look for NVRM and Xid lines in `dmesg`, then reboot"};
}

}  // namespace

NoGpuReason explain_no_gpu(const MachineFacts& machine, const DriverFailure& failure) {
  if (failure.library_missing) return no_library(machine);
  if (failure.init_code == CUDA_ERROR_NO_DEVICE) return no_device(machine, failure);
  if (failure.init_code != 0) return init_failed(machine, failure);
  if (failure.cuda_version != 0 && failure.cuda_version < 12000) {
    const std::string version = machine.kernel_driver.empty() ? "" : machine.kernel_driver + " ";
    return {"driver-too-old",
            "the NVIDIA driver " + version + "supports CUDA " +
                version_text(Library::kDriver, failure.cuda_version) +
                " and Tracefire needs 12.0 or newer",
            "Update the NVIDIA driver to 525 or newer (580 or newer for CUDA 13)"};
  }
  return no_device(machine, failure);
}

}  // namespace tracefire::nvidia
