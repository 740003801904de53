// SPDX-License-Identifier: Apache-2.0
// A machine with one emulated GPU, for tests of the CUDA backend.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/cuda/cuda_device.h"
#include "backends/cuda/cuda_devices.h"
#include "core/base/settings.h"
#include "core/ops/op_table.h"
#include "nvidia/emulator/emulator.h"
#include "nvidia/emulator_setup.h"
#include "support/paths.h"
#include "support/skip.h"

namespace tracefire::test {

/// What the emulated NVRTC puts before a kernel's text.
inline std::string emulator_prelude() {
  return source_dir() + "/tests/nvidia/emulator/device_prelude.h";
}

/// The ready kernels as built for the host.
inline std::string host_kernels() { return binary_dir() + "/tests/libtf_emulated_kernels.so"; }

/// Marks the running case as skipped, and is true, where the emulated GPU has no ready kernels: the
/// test programs alone were carried to another machine. The caller returns then.
inline bool skip_without_kernels() {
  if (std::filesystem::exists(host_kernels())) return false;
  skip("needs the ready kernels as built for the host, " + host_kernels());
  return true;
}

/// The same where the emulated NVRTC has no compiler, or not the header that it puts before
/// kernels.
inline bool skip_without_compiler() {
  static const bool compiles = std::system("c++ --version >/dev/null 2>&1") == 0;
  const bool header = std::filesystem::exists(emulator_prelude());
  if (!compiles) skip("needs c++ on PATH, with which the emulated NVRTC compiles");
  if (compiles && !header) skip("needs the source tree, " + emulator_prelude());
  return !compiles || !header;
}

/// Driver, NVRTC 13 and cuBLASLt 13 of one emulator with a state of its own, and a device on them.
class EmulatedGpu {
 public:
  /// Compiled kernels are shared by all emulated GPUs of this process, or start from nothing.
  enum class DiskCache { kShared, kOwn };

  explicit EmulatedGpu(int gpus = 1, DiskCache cache = DiskCache::kShared)
      : gpus_("TF_EMU_GPUS", std::to_string(gpus)),
        kernels_("TF_EMU_READY_KERNELS", host_kernels()),
        prelude_("TF_EMU_PRELUDE", emulator_prelude()) {
    place_copy(dir_, "lib/libcuda.so.1");
    for (const char* name : {"libnvrtc.so.13", "libcublasLt.so.13", "libnvidia-ml.so.1"}) {
      std::filesystem::create_hard_link(dir_.path("lib/libcuda.so.1"), dir_.path("lib/") + name);
    }
    nvidia::SearchOptions options = nothing_else();
    options.explicit_dirs = {dir_.path("lib")};
    stack_ = std::make_unique<nvidia::Stack>(options, dir_.path());
    static const TempDir shared;
    const std::string folder = (cache == DiskCache::kOwn ? dir_ : shared).path("cache");
    CHECK(set_setting("cache_directory", folder).ok());
    restart();
  }
  ~EmulatedGpu() {
    devices_.devices.clear();
    reset_settings();
  }

  /// Forgets the devices and makes them anew, as a new process would.
  void restart() {
    devices_.devices.clear();
    devices_ = cuda::make_cuda_devices(*stack_);
    REQUIRE(devices_.why_not == "");
  }

  cuda::CudaDevice& device(size_t index = 0) {
    return static_cast<cuda::CudaDevice&>(*devices_.devices.at(index));
  }
  size_t device_count() const { return devices_.devices.size(); }
  nvidia::Stack& stack() { return *stack_; }
  const TempDir& dir() const { return dir_; }
  Stream& stream(int lane = 0) { return *device().stream(lane).value(); }

  /// Counts of this emulator.
  const TfEmuCounts& counts() {
    const Result<nvidia::OpenLibrary> driver = stack_->library(nvidia::Library::kDriver);
    return *reinterpret_cast<TfEmuCounts* (*)()>(driver->symbol("tf_emu_counts"))();
  }

  template <class T>
  BufferPtr put(const std::vector<T>& values) {
    BufferPtr buffer =
        device().allocate(std::max<size_t>(1, values.size() * sizeof(T)), "test").value();
    const Status copied =
        device().copy_in(stream(), buffer->data(), values.data(), values.size() * sizeof(T));
    CHECK(copied.ok());
    return buffer;
  }
  template <class T>
  std::vector<T> get(const BufferPtr& buffer, size_t count) {
    std::vector<T> values(count);
    const Status copied =
        device().copy_out(stream(), values.data(), buffer->data(), count * sizeof(T));
    CHECK(copied.ok());
    return values;
  }

 private:
  TempDir dir_;
  ScopedEnv gpus_, kernels_, prelude_;
  std::unique_ptr<nvidia::Stack> stack_;
  cuda::CudaDevices devices_;
};

}  // namespace tracefire::test
