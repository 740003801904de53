// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "cuda/emulated_gpu.h"

namespace tracefire::cuda {
namespace {

using test::EmulatedGpu;
using test::ScopedEnv;

TEST_CASE("cuda pool: blocks are reused, split and merged") {
  EmulatedGpu gpu;
  CudaDevice& device = gpu.device();
  BufferPtr a = device.allocate(1000, "a").value();
  BufferPtr b = device.allocate(1000, "b").value();
  BufferPtr c = device.allocate(1000, "c").value();
  CHECK(gpu.counts().allocations == 1);  // one segment for all
  CHECK(reinterpret_cast<uintptr_t>(a->data()) % Pool::kGranularity == 0);
  CHECK(device.memory().in_use == 3 * 1024);
  CHECK(device.memory().reserved == size_t{2} << 20);
  void* const first = a->data();
  a.reset();
  b.reset();
  BufferPtr d = device.allocate(2048, "d").value();  // fits the two merged neighbours
  CHECK(d->data() == first);
  c.reset();
  d.reset();
  CHECK(device.memory().in_use == 0);
  CHECK(device.memory().peak == 3 * 1024);
  device.reset_peak();
  CHECK(device.memory().peak == 0);
  // All pieces became one again.
  BufferPtr whole = device.allocate(size_t{1} << 20, "whole").value();
  CHECK(whole->data() == first);
  CHECK(gpu.counts().allocations == 1);
}

TEST_CASE("cuda pool: segments go back to the driver on request") {
  EmulatedGpu gpu;
  BufferPtr kept = gpu.device().allocate(100, "kept").value();
  BufferPtr dropped = gpu.device().allocate(size_t{100} << 20, "dropped").value();
  dropped.reset();
  CHECK(gpu.device().memory().reserved == (size_t{102} << 20));
  gpu.device().release_cached();
  CHECK(gpu.device().memory().reserved == (size_t{2} << 20));
  CHECK(gpu.counts().live_bytes == (2 << 20));
  kept.reset();
  gpu.device().release_cached();
  CHECK(gpu.counts().live_bytes == 0);
}

TEST_CASE("cuda pool: the limit holds and the error names what would fit") {
  EmulatedGpu gpu;
  REQUIRE(set_setting("gpu_memory_limit", std::to_string(64 << 20)).ok());
  BufferPtr a = gpu.device().allocate(size_t{40} << 20, "weights").value();
  const Result<BufferPtr> b = gpu.device().allocate(size_t{30} << 20, "dense/kernel");
  REQUIRE_FALSE(b.ok());
  CHECK(b.status().code() == ErrorCode::kOutOfMemory);
  const std::string& text = b.status().message();
  CHECK(text.find("no room for 30 MiB (dense/kernel) on /GPU:0") != std::string::npos);
  CHECK(text.find("uses 40 MiB") != std::string::npos);
  CHECK(text.find("its limit is 64 MiB") != std::string::npos);
  CHECK(text.find("Expected at most 24 MiB") != std::string::npos);
  CHECK(gpu.device().allocate(size_t{24} << 20, "fits").ok());
  CHECK(gpu.device().memory().limit == size_t{64} << 20);
}

TEST_CASE("cuda pool: the fraction of the device holds") {
  EmulatedGpu gpu;
  REQUIRE(set_setting("gpu_memory_fraction", "0.25").ok());
  CHECK(gpu.device().memory().limit == 0);  // not started yet
  CHECK(gpu.device().allocate(size_t{250} << 20, "most").ok());
  CHECK(gpu.device().memory().limit == size_t{256} << 20);
  CHECK_FALSE(gpu.device().allocate(size_t{300} << 20, "more").ok());
}

TEST_CASE("cuda pool: when the driver has no memory left, unused segments are given up first") {
  EmulatedGpu gpu;
  const ScopedEnv small("TF_EMU_MEMORY", std::to_string(100 << 20));
  BufferPtr a = gpu.device().allocate(size_t{60} << 20, "a").value();
  a.reset();
  CHECK(gpu.device().allocate(size_t{80} << 20, "b").ok());
  const Result<BufferPtr> too_much = gpu.device().allocate(size_t{200} << 20, "c");
  REQUIRE_FALSE(too_much.ok());
  CHECK(too_much.status().code() == ErrorCode::kOutOfMemory);
  CHECK(gpu.device().health().ok());
}

TEST_CASE("cuda pool: blocks given out at the same time never overlap") {
  EmulatedGpu gpu;
  std::mt19937 random(5);
  std::vector<BufferPtr> live;
  for (int i = 0; i < 2000; ++i) {
    if (!live.empty() && random() % 2 == 0) {
      live.erase(live.begin() + static_cast<long>(random() % live.size()));
    } else {
      const size_t bytes = random() % 8 == 0 ? random() % (8 << 20) : random() % 20000;
      live.push_back(gpu.device().allocate(bytes, "block").value());
    }
  }
  std::map<char*, char*> ranges;
  size_t total = 0;
  for (const BufferPtr& buffer : live) {
    char* begin = static_cast<char*>(buffer->data());
    ranges[begin] = begin + buffer->bytes();
    total += (std::max<size_t>(1, buffer->bytes()) + 511) / 512 * 512;
  }
  CHECK(ranges.size() == live.size());
  char* end = nullptr;
  for (const auto& [begin, stop] : ranges) {
    CHECK(begin >= end);
    end = stop;
  }
  CHECK(gpu.device().memory().in_use == total);
  live.clear();
  gpu.device().release_cached();
  CHECK(gpu.device().memory().reserved == 0);
}

}  // namespace
}  // namespace tracefire::cuda
