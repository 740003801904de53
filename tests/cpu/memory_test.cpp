// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstring>
#include <thread>

#include "backends/cpu/memory_pool.h"
#include "core/base/status.h"

namespace tracefire::cpu {
namespace {

constexpr Device kCpu0{Device::kCpu, 0};

TEST_CASE("cpu: blocks are aligned, rounded a little, and reused") {
  const auto pool = std::make_shared<MemoryPool>(kCpu0, 0);
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{65}, size_t{1000}, size_t{123456},
                       size_t{5} << 20}) {
    const size_t rounded = MemoryPool::rounded(bytes);
    CHECK(rounded >= bytes);
    CHECK(rounded % MemoryPool::kAlignment == 0);
    CHECK(rounded <= bytes + bytes / 8 + MemoryPool::kAlignment);
    void* first;
    {
      const BufferPtr buffer = pool->allocate(bytes, "test").value();
      CHECK(reinterpret_cast<uintptr_t>(buffer->data()) % MemoryPool::kAlignment == 0);
      CHECK(buffer->bytes() == rounded);
      CHECK(buffer->device() == kCpu0);
      std::memset(buffer->data(), 1, buffer->bytes());
      first = buffer->data();
    }
    CHECK(pool->allocate(bytes, "test").value()->data() == first);
  }
  CHECK(pool->stats().in_use == 0);
  CHECK(pool->stats().reserved > 0);
  pool->release_cached();
  CHECK(pool->stats().reserved == 0);
}

TEST_CASE("cpu: the pool counts what is in use, and its peak") {
  const auto pool = std::make_shared<MemoryPool>(kCpu0, 0);
  BufferPtr a = pool->allocate(1024, "a").value();
  {
    const BufferPtr b = pool->allocate(2048, "b").value();
    CHECK(pool->stats().in_use == 3072);
  }
  CHECK(pool->stats().in_use == 1024);
  CHECK(pool->stats().peak == 3072);
  pool->reset_peak();
  CHECK(pool->stats().peak == 1024);
  // A buffer may live longer than the device that made it.
  std::weak_ptr<MemoryPool> watch = pool;
  auto shared = std::make_shared<MemoryPool>(kCpu0, 0);
  const BufferPtr orphan = shared->allocate(64, "orphan").value();
  shared.reset();
  std::memset(orphan->data(), 0, 64);
}

TEST_CASE("cpu: out of memory says who needs what, what is in use and what would fit") {
  const auto pool = std::make_shared<MemoryPool>(kCpu0, size_t{10} << 20);
  const BufferPtr kernel = pool->allocate(size_t{4} << 20, "dense/kernel").value();
  const BufferPtr moment = pool->allocate(size_t{2} << 20, "adam/m").value();
  const auto refused = pool->allocate(size_t{5} << 20, "dense_1/matmul");
  REQUIRE(!refused.ok());
  CHECK(refused.status().code() == ErrorCode::kOutOfMemory);
  const std::string text = refused.status().message();
  for (const char* part : {"'dense_1/matmul' needs 5.0 MiB on /CPU:0", "6.0 MiB are in use",
                           "dense/kernel 4.0 MiB, adam/m 2.0 MiB", "the limit is 10.0 MiB",
                           "4.0 MiB would fit", "TRACEFIRE_CPU_MEMORY_LIMIT"}) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(pool->allocate(size_t{4} << 20, "fits").ok());
  // Cached blocks of other sizes make room.
  CHECK(pool->allocate(size_t{3} << 20, "fits too").ok());
  const auto absurd = pool->allocate(SIZE_MAX / 2, "absurd");
  CHECK(absurd.status().code() == ErrorCode::kOutOfMemory);
}

TEST_CASE("cpu: the pool serves several threads [threads]") {
  const auto pool = std::make_shared<MemoryPool>(kCpu0, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (size_t i = 1; i < 400; ++i) {
        const BufferPtr buffer = pool->allocate(i * 37, "thread").value();
        std::memset(buffer->data(), t, i * 37);
        if (static_cast<char*>(buffer->data())[i * 36] != t) std::abort();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(pool->stats().in_use == 0);
}

}  // namespace
}  // namespace tracefire::cpu
