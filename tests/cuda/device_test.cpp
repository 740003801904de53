// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "cuda/emulated_gpu.h"

namespace tracefire::cuda {
namespace {

using test::EmulatedGpu;
using test::ScopedEnv;

TEST_CASE("cuda: a device describes itself before its context exists") {
  EmulatedGpu gpu(2);
  REQUIRE(gpu.device_count() == 2);
  const DeviceInfo& info = gpu.device(1).info();
  CHECK(info.device.str() == "/GPU:1");
  CHECK(info.name == "Emulated GPU");
  CHECK(info.architecture == "sm_90");
  CHECK(info.memory_bytes == size_t{1} << 30);
  CHECK(info.driver == "CUDA 13.0");
  CHECK(info.peak_flops_f32 == doctest::Approx(1.98e9 * 4 * 256));
  CHECK(gpu.device(1).memory().reserved == 0);
  CHECK_FALSE(gpu.device().host_addressable());
  CHECK(gpu.device().health().ok());
}

TEST_CASE("cuda: bytes go in, across and out") {
  EmulatedGpu gpu;
  std::vector<int> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i * 7);
  const BufferPtr a = gpu.put(values);
  const BufferPtr b = gpu.device().allocate(4000, "test").value();
  REQUIRE(gpu.device().copy(gpu.stream(), b->data(), a->data(), 4000).ok());
  CHECK(gpu.get<int>(b, 1000) == values);
  REQUIRE(gpu.device().fill_zero(gpu.stream(), static_cast<char*>(b->data()) + 400, 8).ok());
  values[100] = values[101] = 0;
  CHECK(gpu.get<int>(b, 1000) == values);
  CHECK(a->device() == gpu.device().device());
  CHECK(a->bytes() == 4000);
}

TEST_CASE("cuda: copies of every size keep their bytes") {
  EmulatedGpu gpu;
  for (const size_t count : {size_t{0}, size_t{1}, Staging::kBlockBytes - 1, Staging::kBlockBytes,
                             Staging::kBlockBytes + 1, 5 * Staging::kBlockBytes + 3}) {
    std::vector<uint8_t> bytes(count);
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 31 + count);
    const BufferPtr buffer = gpu.put(bytes);
    CHECK(gpu.get<uint8_t>(buffer, count) == bytes);
  }
  // Small copies share four pinned blocks.
  for (int i = 0; i < 20; ++i) gpu.put(std::vector<int>{i});
  CHECK(gpu.counts().host_allocations <= 4);
}

TEST_CASE("cuda: a copy beyond a block's memory is an error, not a crash") {
  EmulatedGpu gpu;
  const BufferPtr buffer = gpu.device().allocate(16, "test").value();
  char* end = static_cast<char*>(buffer->data()) + (size_t{64} << 20);
  const Status status = gpu.device().fill_zero(gpu.stream(), end, 16);
  REQUIRE_FALSE(status.ok());
  CHECK(status.code() == ErrorCode::kCudaCall);
  CHECK(status.message().find("cuMemsetD8Async") != std::string::npos);
  CHECK(status.message().find("CUDA_ERROR_INVALID_VALUE") != std::string::npos);
  CHECK(gpu.device().health().ok());
}

TEST_CASE("cuda: a sticky error loses the device and nothing else") {
  EmulatedGpu gpu;
  const BufferPtr buffer = gpu.put(std::vector<int>{1, 2, 3});
  {
    const ScopedEnv fault("TF_EMU_FAIL", "cuStreamSynchronize=700");
    const Status first = gpu.stream().synchronize();
    REQUIRE_FALSE(first.ok());
    CHECK(first.code() == ErrorCode::kDeviceLost);
    CHECK(first.message().find("CUDA_ERROR_ILLEGAL_ADDRESS") != std::string::npos);
  }
  // Everything afterwards repeats the first cause.
  const Status health = gpu.device().health();
  CHECK(health.code() == ErrorCode::kDeviceLost);
  const Result<BufferPtr> more = gpu.device().allocate(16, "test");
  REQUIRE_FALSE(more.ok());
  CHECK(more.status().message() == health.message());
  int value = 0;
  const Status read = gpu.device().copy_out(gpu.stream(), &value, buffer->data(), 4);
  CHECK(read.code() == ErrorCode::kDeviceLost);
}

TEST_CASE("cuda: the context cannot be made") {
  EmulatedGpu gpu;
  const ScopedEnv fault("TF_EMU_FAIL", "cuDevicePrimaryCtxRetain=2");
  const Result<BufferPtr> buffer = gpu.device().allocate(16, "test");
  REQUIRE_FALSE(buffer.ok());
  CHECK(buffer.status().code() == ErrorCode::kOutOfMemory);
  CHECK_FALSE(gpu.device().health().ok());
}

TEST_CASE("cuda: without libraries there is a reason") {
  test::TempDir dir;
  test::place_copy(dir, "lib/libcuda.so.1");
  nvidia::SearchOptions options = test::nothing_else();
  options.explicit_dirs = {dir.path("lib")};
  nvidia::Stack stack(options, dir.path());
  const CudaDevices made = make_cuda_devices(stack);
  CHECK(made.devices.empty());
  CHECK(made.why_not.find("libnvrtc.so.13 was not found") != std::string::npos);

  const ScopedEnv none("TF_EMU_INIT", "100");
  const ScopedEnv hidden("CUDA_VISIBLE_DEVICES", "-1");
  nvidia::Stack second(options, dir.path());
  CHECK(make_cuda_devices(second).why_not.find("CUDA_VISIBLE_DEVICES=\"-1\" hides") !=
        std::string::npos);
}

TEST_CASE("cuda: many threads allocate, copy and drop [threads]") {
  EmulatedGpu gpu;
  gpu.stream();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::vector<int> values(static_cast<size_t>(100 + i * 13), t * 1000 + i);
        BufferPtr buffer = gpu.device().allocate(values.size() * 4, "test").value();
        Stream& lane = *gpu.device().stream(0).value();
        std::vector<int> back(values.size());
        if (!gpu.device().copy_in(lane, buffer->data(), values.data(), values.size() * 4).ok() ||
            !gpu.device().copy_out(lane, back.data(), buffer->data(), values.size() * 4).ok() ||
            back != values) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(gpu.device().memory().in_use == 0);
}

}  // namespace
}  // namespace tracefire::cuda
