// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/cpu_device.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/memory_pool.h"
#include "backends/cpu/tile/tile_table.h"
#include "core/base/settings.h"
#include "core/base/thread_pool.h"

namespace tracefire {
namespace {

/// Work runs before the call that asks for it returns, so there is never anything to wait for.
class CpuStream final : public Stream {
 public:
  CpuStream(Device device, int lane) : device_(device), lane_(lane) {}
  Device device() const override { return device_; }
  int lane() const override { return lane_; }
  Status synchronize() override { return {}; }
  Status wait_for(Stream&) override { return {}; }

 private:
  Device device_;
  int lane_;
};

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(':');
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(std::min(line.size(), colon + 2));
    }
  }
  return "CPU";
}

std::string architecture() {
#if defined(__x86_64__)
  const char* isa = cpu::best_isa() == cpu::Isa::kAvx512 ? " avx512"
                    : cpu::best_isa() == cpu::Isa::kAvx2 ? " avx2"
                                                         : "";
  return std::string("x86-64") + isa;
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "generic";
#endif
}

size_t machine_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(page) : 0;
}

/// A megabyte a chunk: below, a second thread does not pay.
constexpr int64_t kCopyGrain = 1 << 20;

void copy_bytes(void* target, const void* source, size_t bytes) {
  parallel_for(static_cast<int64_t>(bytes), kCopyGrain, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(target) + begin, static_cast<const char*>(source) + begin,
                static_cast<size_t>(end - begin));
  });
}

class CpuDevice final : public DeviceBackend {
 public:
  explicit CpuDevice(int index) {
    info_.device = Device{Device::kCpu, static_cast<uint8_t>(index)};
    info_.name = processor_name();
    info_.architecture = architecture();
    info_.memory_bytes = machine_memory();
    pool_ = std::make_shared<cpu::MemoryPool>(
        info_.device, static_cast<size_t>(settings::cpu_memory_limit()));
  }

  const DeviceInfo& info() const override { return info_; }
  Result<BufferPtr> allocate(size_t bytes, const char* what) override {
    return pool_->allocate(bytes, what);
  }
  MemoryStats memory() const override { return pool_->stats(); }
  void reset_peak() override { pool_->reset_peak(); }
  void release_cached() override { pool_->release_cached(); }
  bool host_addressable() const override { return true; }

  Result<Stream*> stream(int lane) override {
    MutexLock lock(mutex_);
    std::unique_ptr<CpuStream>& stream = streams_[lane];
    if (!stream) stream = std::make_unique<CpuStream>(info_.device, lane);
    return stream.get();
  }
  Status copy_in(Stream&, void* target, const void* source, size_t bytes) override {
    copy_bytes(target, source, bytes);
    return {};
  }
  Status copy_out(Stream&, void* target, const void* source, size_t bytes) override {
    copy_bytes(target, source, bytes);
    return {};
  }
  Status copy(Stream&, void* target, const void* source, size_t bytes) override {
    copy_bytes(target, source, bytes);
    return {};
  }
  Status fill_zero(Stream&, void* target, size_t bytes) override {
    if (bytes != 0) std::memset(target, 0, bytes);
    return {};
  }
  const KernelList& kernels(OpId op) const override { return cpu::kernel_table()[op]; }
  Status prepare(std::span<const NodeView>) override { return {}; }

 private:
  DeviceInfo info_;
  std::shared_ptr<cpu::MemoryPool> pool_;
  Mutex mutex_;
  std::map<int, std::unique_ptr<CpuStream>> streams_ TF_GUARDED_BY(mutex_);
};

}  // namespace

std::vector<std::unique_ptr<DeviceBackend>> make_cpu_devices(int count) {
  std::vector<std::unique_ptr<DeviceBackend>> devices;
  for (int i = 0; i < count; ++i) devices.push_back(std::make_unique<CpuDevice>(i));
  return devices;
}

}  // namespace tracefire
