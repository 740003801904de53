// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "cuda/emulated_gpu.h"

namespace tracefire::cuda {
namespace {

using test::EmulatedGpu;
using test::ScopedEnv;

TEST_CASE("cuda graph: recorded work runs at each launch and not before") {
  EmulatedGpu gpu;
  CudaDevice& device = gpu.device();
  const BufferPtr a = gpu.put(std::vector<int>{1, 2});
  const BufferPtr b = gpu.put(std::vector<int>{0, 0});
  const Result<std::unique_ptr<CapturedGraph>> graph =
      device.capture(gpu.stream(), [&](Stream& stream) {
        TF_RETURN_IF_ERROR(device.copy(stream, b->data(), a->data(), 8));
        return device.fill_zero(stream, a->data(), 4);
      });
  REQUIRE(graph.ok());
  CHECK((*graph)->nodes() == 2);
  CHECK(gpu.get<int>(b, 2) == std::vector<int>{0, 0});
  REQUIRE((*graph)->launch(gpu.stream()).ok());
  CHECK(gpu.get<int>(b, 2) == std::vector<int>{1, 2});
  REQUIRE((*graph)->launch(gpu.stream()).ok());
  CHECK(gpu.get<int>(b, 2) == std::vector<int>{0, 2});
  CHECK(gpu.counts().graph_launches == 2);
}

TEST_CASE("cuda graph: the device hands its recording lanes to the recording thread") {
  EmulatedGpu gpu;
  CudaDevice& device = gpu.device();
  const BufferPtr a = gpu.put(std::vector<int>{5});
  const BufferPtr b = gpu.put(std::vector<int>{0});
  const BufferPtr other = gpu.put(std::vector<int>{9});
  Stream* const real = &gpu.stream();
  const Result<std::unique_ptr<CapturedGraph>> graph =
      device.capture(gpu.stream(), [&](Stream& stream) {
        CHECK(device.stream(0).value() == &stream);
        CHECK(&stream != real);
        // Another thread's work runs at once, on the real lane.
        std::thread([&] {
          CHECK(device.stream(0).value() == real);
          CHECK(device.fill_zero(*real, other->data(), 4).ok());
        }).join();
        // A second lane joins the recording.
        Stream* const second = device.stream(1).value();
        TF_RETURN_IF_ERROR(device.copy(*second, b->data(), a->data(), 4));
        return stream.wait_for(*second);
      });
  REQUIRE(graph.ok());
  CHECK((*graph)->nodes() == 1);
  CHECK(gpu.get<int>(other, 1)[0] == 0);
  CHECK(gpu.get<int>(b, 1)[0] == 0);
  REQUIRE((*graph)->launch(gpu.stream()).ok());
  CHECK(gpu.get<int>(b, 1)[0] == 5);
  CHECK(device.stream(0).value() == real);
}

TEST_CASE("cuda graph: memory taken while recording stays with the graph") {
  EmulatedGpu gpu;
  CudaDevice& device = gpu.device();
  const BufferPtr a = gpu.put(std::vector<int>{5});
  void* staged = nullptr;
  Result<std::unique_ptr<CapturedGraph>> graph = device.capture(gpu.stream(), [&](Stream& stream) {
    const BufferPtr temporary = device.allocate(4, "temporary").value();
    staged = temporary->data();
    return device.copy(stream, temporary->data(), a->data(), 4);
  });
  REQUIRE(graph.ok());
  CHECK(device.allocate(4, "other").value()->data() != staged);
  *graph = nullptr;
  CHECK(device.allocate(4, "other").value()->data() == staged);
}

TEST_CASE("cuda graph: what cannot be recorded is an error that leaves the device usable") {
  EmulatedGpu gpu;
  CudaDevice& device = gpu.device();
  const BufferPtr a = gpu.put(std::vector<int>{5});
  int value = 3;
  for (const auto& body : std::vector<std::function<Status(Stream&)>>{
           [&](Stream& stream) { return device.copy_in(stream, a->data(), &value, 4); },
           [&](Stream& stream) { return device.copy_out(stream, &value, a->data(), 4); },
           [&](Stream& stream) { return stream.synchronize(); },
           [&](Stream& stream) {
             return device.capture(stream, [](Stream&) { return Status(); }).status();
           }}) {
    const Result<std::unique_ptr<CapturedGraph>> graph = device.capture(gpu.stream(), body);
    REQUIRE_FALSE(graph.ok());
    CHECK(graph.status().code() == ErrorCode::kInternal);
    CHECK(gpu.get<int>(a, 1)[0] == 5);
  }
  CHECK(value == 3);
  CHECK_THROWS_AS(
      (void)device.capture(gpu.stream(), [](Stream&) -> Status { throw std::runtime_error("no"); }),
      std::runtime_error);
  CHECK(device.capture(gpu.stream(), [](Stream&) { return Status(); }).ok());
  const ScopedEnv fault("TF_EMU_FAIL", "cuGraphInstantiateWithFlags=2");
  const Result<std::unique_ptr<CapturedGraph>> graph =
      device.capture(gpu.stream(), [](Stream&) { return Status(); });
  REQUIRE_FALSE(graph.ok());
  CHECK(graph.status().code() == ErrorCode::kOutOfMemory);
}

TEST_CASE("cuda lanes: with a second lane, blocks wait until all lanes have passed") {
  EmulatedGpu gpu;
  Stream& first = gpu.stream(0);
  Stream& second = gpu.stream(1);
  CHECK(second.lane() == 1);
  CHECK(second.wait_for(first).ok());
  CHECK(second.wait_for(second).ok());
  BufferPtr block = gpu.device().allocate(4096, "block").value();
  void* const place = block->data();
  block.reset();
  // The emulator's lanes run at once, so the block is free again at the next call.
  CHECK(gpu.device().allocate(4096, "next").value()->data() == place);
}

}  // namespace
}  // namespace tracefire::cuda
