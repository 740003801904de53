// SPDX-License-Identifier: Apache-2.0
#include "backends/nvidia/stack.h"

#include <doctest/doctest.h>

#include <thread>

#include "nvidia/emulator_setup.h"

namespace tracefire::nvidia {
namespace {

using tracefire::test::nothing_else;
using tracefire::test::place_copy;
using tracefire::test::ScopedEnv;
using tracefire::test::TempDir;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A machine with a driver, and the libraries of the given CUDA majors.
struct Machine {
  TempDir dir;
  SearchOptions options = nothing_else();
  explicit Machine(const std::vector<int>& majors) {
    place_copy(dir, "driver/libcuda.so.1");
    place_copy(dir, "driver/libnvidia-ml.so.1");
    options.driver_dirs = {dir.path("driver")};
    options.python_roots = {dir.path()};
    for (const int major : majors) {
      const std::string number = std::to_string(major);
      place_copy(dir, "nvidia/cu" + number + "/lib/libnvrtc.so." + number);
      place_copy(dir, "nvidia/cu" + number + "/lib/libcublasLt.so." + number);
    }
    dir.write(
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n");
    dir.write("dev/nvidia0", "");
    dir.write("dev/nvidiactl", "");
    dir.write("dev/nvidia-uvm", "");
    dir.write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
    dir.write("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
  }
};

TEST_CASE("nvidia: devices are described without a context") {
  Machine machine({13});
  const ScopedEnv gpus("TF_EMU_GPUS", "2");
  Stack stack(machine.options, machine.dir.path());
  const Inventory& inventory = stack.inventory();
  REQUIRE(inventory.usable());
  CHECK(inventory.driver_version == "580.159.04");
  CHECK(inventory.cuda_version == 13000);
  REQUIRE(inventory.gpus.size() == 2);
  const Gpu& gpu = inventory.gpus[1];
  CHECK(gpu.name == "Emulated GPU");
  CHECK(gpu.capability == 90);
  CHECK(gpu.architecture() == "sm_90");
  CHECK(gpu.peak_flops_f32() == doctest::Approx(2e3 * gpu.clock_khz * gpu.multiprocessors * 128));
  CHECK(gpu.memory_bytes == size_t{1} << 30);
  CHECK(gpu.uuid == "GPU-01020304-0506-0708-090a-0b0c0d0e0f10");
  CHECK(gpu.pci == "0000:02:00.0");
  CHECK(gpu.refusal.empty());
  CHECK(stack.driver().ok());
}

TEST_CASE("nvidia: the CUDA major follows driver, GPU and what is installed") {
  SUBCASE("both are there: 13") {
    Machine machine({12, 13});
    Stack stack(machine.options, machine.dir.path());
    const Result<int> major = stack.cuda_major();
    REQUIRE(major.ok());
    CHECK(*major == 13);
    CHECK(stack.nvrtc().ok());
    CHECK(stack.cublaslt().ok());
    CHECK(
        contains(stack.report(), "chosen: " + machine.dir.path("nvidia/cu13/lib/libnvrtc.so.13")));
  }
  SUBCASE("only 12 is installed") {
    Machine machine({12});
    Stack stack(machine.options, machine.dir.path());
    const Result<int> major = stack.cuda_major();
    REQUIRE(major.ok());
    CHECK(*major == 12);
  }
  SUBCASE("the driver knows 12.2 only") {
    Machine machine({12, 13});
    const ScopedEnv driver("TF_EMU_CUDA", "12020");
    Stack stack(machine.options, machine.dir.path());
    const Result<int> major = stack.cuda_major();
    REQUIRE(major.ok());
    CHECK(*major == 12);
  }
  SUBCASE("Volta has no CUDA 13") {
    Machine machine({12, 13});
    const ScopedEnv volta("TF_EMU_CAPABILITY", "70");
    Stack stack(machine.options, machine.dir.path());
    const Result<int> major = stack.cuda_major();
    REQUIRE(major.ok());
    CHECK(*major == 12);
  }
  SUBCASE("Volta with CUDA 13 alone") {
    Machine machine({13});
    const ScopedEnv volta("TF_EMU_CAPABILITY", "70");
    Stack stack(machine.options, machine.dir.path());
    const Result<int> major = stack.cuda_major();
    REQUIRE_FALSE(major.ok());
    CHECK(major.status().code() == ErrorCode::kLibraryWrongVersion);
    CHECK(contains(major.status().message(), "libnvrtc.so.13"));
    CHECK(contains(major.status().message(), "Expected libnvrtc.so.12"));
  }
  SUBCASE("nothing is installed: the newest that the driver allows is asked for") {
    Machine machine({});
    Stack stack(machine.options, machine.dir.path());
    const Result<const CublasLtApi*> api = stack.cublaslt();
    REQUIRE_FALSE(api.ok());
    CHECK(api.status().code() == ErrorCode::kLibraryNotFound);
    CHECK(contains(api.status().message(), "pip install nvidia-cuda-nvrtc`"));
    // The answer is repeated, not searched for again.
    const size_t attempts = stack.search().attempts().size();
    CHECK_FALSE(stack.cublaslt().ok());
    CHECK(stack.search().attempts().size() == attempts);
  }
}

TEST_CASE("nvidia: allowed majors") {
  CHECK(allowed_majors(13010, 90) == std::vector<int>{13, 12});
  CHECK(allowed_majors(13000, 70) == std::vector<int>{12});
  CHECK(allowed_majors(12000, 120) == std::vector<int>{12});
  CHECK(allowed_majors(11080, 80).empty());
}

TEST_CASE("nvidia: what another framework loaded decides the major") {
  Machine machine({12, 13});
  static std::string torch_has;
  torch_has = machine.dir.path("nvidia/cu12/lib/libcublasLt.so.12");
  machine.options.loaded = [](std::string_view stem) {
    return stem == "libcublasLt.so" ? std::vector<std::string>{torch_has}
                                    : std::vector<std::string>();
  };
  Stack stack(machine.options, machine.dir.path());
  const Result<int> major = stack.cuda_major();
  REQUIRE(major.ok());
  CHECK(*major == 12);
  const Result<OpenLibrary> cublaslt = stack.library(Library::kCublasLt);
  REQUIRE(cublaslt.ok());
  CHECK(cublaslt->origin == "already loaded");
}

TEST_CASE("nvidia: a driver that is too old is refused with the cure") {
  Machine machine({12, 13});
  const ScopedEnv driver("TF_EMU_CUDA", "11040");
  machine.dir.write("proc/driver/nvidia/version",
                    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May\n");
  Stack stack(machine.options, machine.dir.path());
  const Result<const DriverApi*> api = stack.driver();
  REQUIRE_FALSE(api.ok());
  CHECK(api.status().code() == ErrorCode::kDriverTooOld);
  CHECK(contains(api.status().message(), "470.256.02"));
  CHECK(contains(api.status().message(), "11.4"));
  CHECK(contains(api.status().message(), "525 or newer"));
  CHECK_FALSE(stack.cuda_major().ok());
}

TEST_CASE("nvidia: a GPU older than Volta is not used, and the reason says so") {
  Machine machine({12});
  const ScopedEnv pascal("TF_EMU_CAPABILITY", "61");
  Stack stack(machine.options, machine.dir.path());
  CHECK_FALSE(stack.inventory().usable());
  CHECK(stack.inventory().problem->kind == "cc-too-old");
  CHECK(contains(stack.inventory().status().message(), "6.1"));
}

TEST_CASE("nvidia: a driver without a function is called damaged") {
  Machine machine({13});
  const ScopedEnv hidden("TF_EMU_NO_SYMBOL", "cuGraphLaunch");
  Stack stack(machine.options, machine.dir.path());
  CHECK(stack.inventory().problem->kind == "driver-damaged");
  CHECK(contains(stack.inventory().problem->reason, "cuGraphLaunch"));
}

TEST_CASE("nvidia: NVML opens by itself") {
  Machine machine({});
  {
    Stack stack(machine.options, machine.dir.path());
    const Result<const NvmlApi*> nvml = stack.nvml();
    REQUIRE(nvml.ok());
    char version[80];
    CHECK((*nvml)->nvmlSystemGetDriverVersion(version, sizeof version) == 0);
    CHECK(std::string(version) == "580.159.04");
    CHECK(((*nvml)->nvmlDeviceGetPowerUsage == nullptr));  // this NVML has none
  }
  const ScopedEnv broken("TF_EMU_NVML", "18");
  Stack stack(machine.options, machine.dir.path());
  const Result<const NvmlApi*> nvml = stack.nvml();
  REQUIRE_FALSE(nvml.ok());
  CHECK(contains(nvml.status().message(), "version mismatch"));
}

TEST_CASE("nvidia: MIG without an instance is told apart") {
  Machine machine({});
  const ScopedEnv none("TF_EMU_INIT", "100");
  const ScopedEnv mig("TF_EMU_MIG", "1");
  Stack stack(machine.options, machine.dir.path());
  CHECK(stack.inventory().problem->kind == "mig-no-instance");
}

TEST_CASE("nvidia: many threads may ask at once [threads]") {
  Machine machine({13});
  Stack stack(machine.options, machine.dir.path());
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      if (stack.cublaslt().ok() && stack.driver().ok() && stack.inventory().usable()) ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 8);
}

}  // namespace
}  // namespace tracefire::nvidia
