// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <doctest/doctest.h>

#include "backends/nvidia/machine.h"
#include "nvidia/emulator_setup.h"

namespace tracefire::nvidia {
namespace {

using tracefire::test::ScopedEnv;
using tracefire::test::TempDir;

/// A machine whose driver side is in order.
MachineFacts sound() {
  MachineFacts m;
  m.nvidia_gpus = 1;
  m.kernel_driver = "580.159.04";
  m.device_nodes = m.control_node = m.uvm_node = true;
  return m;
}

std::string kind(const MachineFacts& machine, int init_code) {
  DriverFailure failure;
  failure.init_code = init_code;
  failure.init_words = "CUDA_ERROR";
  failure.library_path = "/usr/lib/x86_64-linux-gnu/libcuda.so.1";
  const NoGpuReason reason = explain_no_gpu(machine, failure);
  CHECK_FALSE(reason.reason.empty());
  CHECK_FALSE(reason.cure.empty());
  CHECK(reason.line().find('\n') == std::string::npos);
  return reason.kind;
}

std::string kind_without_library(const MachineFacts& machine) {
  DriverFailure failure;
  failure.library_missing = true;
  return explain_no_gpu(machine, failure).kind;
}

TEST_CASE("nvidia: without libcuda the reason comes from the machine") {
  MachineFacts m;
  CHECK(kind_without_library(m) == "no-gpu");
  m.nvidia_gpus = 1;
  CHECK(kind_without_library(m) == "kernel-module-missing");
  m.secure_boot = true;
  CHECK(kind_without_library(m) == "secure-boot");
  m.nouveau = true;
  CHECK(kind_without_library(m) == "nouveau-loaded");
  m.nouveau = false;
  m.nova = true;
  CHECK(kind_without_library(m) == "nova-loaded");
  m.nova = m.secure_boot = false;
  m.container = true;
  CHECK(kind_without_library(m) == "container-no-gpu");

  MachineFacts loaded = sound();
  CHECK(kind_without_library(loaded) == "driver-library-missing");
  loaded.container = true;
  CHECK(kind_without_library(loaded) == "container-no-gpu");

  MachineFacts wsl;
  wsl.wsl = true;
  CHECK(kind_without_library(wsl) == "wsl-no-driver");
}

TEST_CASE("nvidia: no device") {
  MachineFacts m = sound();
  CHECK(kind(m, CUDA_ERROR_NO_DEVICE) == "driver-unsupported-gpu");
  m.nodes_denied = true;
  CHECK(kind(m, CUDA_ERROR_NO_DEVICE) == "dev-permissions");
  m.nodes_denied = false;
  m.container = true;
  CHECK(kind(m, CUDA_ERROR_NO_DEVICE) == "cgroup-devices-lost");
  m.device_nodes = false;
  CHECK(kind(m, CUDA_ERROR_NO_DEVICE) == "container-no-gpu");
  m = sound();
  m.visible_devices = "-1";
  CHECK(kind(m, CUDA_ERROR_NO_DEVICE) == "cuda-visible-devices");
  m = MachineFacts();
  CHECK(kind(m, CUDA_ERROR_NO_DEVICE) == "no-gpu");
  m.wsl = true;
  CHECK(kind(m, CUDA_ERROR_NO_DEVICE) == "wsl-wrong-driver");
}

TEST_CASE("nvidia: codes of cuInit") {
  MachineFacts m = sound();
  CHECK(kind(m, CUDA_ERROR_STUB_LIBRARY) == "stub-library");
  CHECK(kind(m, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH) == "driver-lib-mismatch");
  CHECK(kind(m, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE) == "forward-compat-804");
  CHECK(kind(m, CUDA_ERROR_SYSTEM_NOT_READY) == "fabric-manager");
  CHECK(kind(m, CUDA_ERROR_DEVICE_UNAVAILABLE) == "compute-mode-exclusive");
  CHECK(kind(m, CUDA_ERROR_UNKNOWN) == "driver-failed");
  m.uvm_node = false;
  CHECK(kind(m, CUDA_ERROR_UNKNOWN) == "uvm-missing");
  m.kernel_driver.clear();
  CHECK(kind(m, CUDA_ERROR_UNKNOWN) == "kernel-module-missing");
}

TEST_CASE("nvidia: facts are read from the system's files") {
  TempDir dir;
  dir.write("proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\n"
            "GCC version:  gcc version 12.2.0\n");
  dir.write("proc/modules", "nvidia_uvm 1 0\nnouveau 2 1 - Live\n");
  dir.write("proc/version", "Linux version 6.1.0-microsoft-standard-WSL2\n");
  dir.write("dev/nvidia0", "");
  dir.write(".dockerenv", "");
  dir.write("sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
            std::string("\x06\0\0\0\x01", 5));
  dir.write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  dir.write("sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n");
  dir.write("sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n");
  dir.write("sys/bus/pci/devices/0000:01:00.1/class", "0x040300\n");  // the GPU's sound
  dir.write("sys/bus/pci/devices/0000:02:00.0/vendor", "0x1002\n");
  dir.write("sys/bus/pci/devices/0000:02:00.0/class", "0x030000\n");
  const ScopedEnv visible("CUDA_VISIBLE_DEVICES", "");
  const MachineFacts m = MachineFacts::read(dir.path());
  CHECK(m.kernel_driver == "570.124.06");
  CHECK(m.nouveau);
  CHECK_FALSE(m.nova);
  CHECK(m.wsl);
  CHECK_FALSE(m.wsl_driver);
  CHECK(m.container);
  CHECK(m.secure_boot);
  CHECK(m.device_nodes);
  CHECK_FALSE(m.uvm_node);
  CHECK(m.nvidia_gpus == 1);
  REQUIRE(m.visible_devices);
  CHECK(m.visible_devices->empty());
}

TEST_CASE("nvidia: a machine without anything") {
  TempDir dir;
  const MachineFacts m = MachineFacts::read(dir.path());
  CHECK(m.nvidia_gpus == 0);
  CHECK(m.kernel_driver.empty());
  CHECK_FALSE(m.device_nodes);
  CHECK_FALSE(m.wsl);
}

}  // namespace
}  // namespace tracefire::nvidia
