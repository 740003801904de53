// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "backends/api/device_backend.h"
#include "backends/null/null_device.h"

namespace tracefire {
namespace {

TEST_CASE("registry: the CPU is always there, and last in the list") {
  Backends& backends = Backends::instance();
  const std::vector<DeviceBackend*> devices = backends.devices();
  REQUIRE(!devices.empty());
  CHECK(devices.back()->device().kind == Device::kCpu);
  const DeviceInfo& info = backends.find(Device{Device::kCpu, 0}).value()->info();
  CHECK(!info.name.empty());
  CHECK(!info.architecture.empty());
  CHECK(info.memory_bytes > 0);
  CHECK((backends.why_no_gpu().empty() == (devices.front()->device().kind == Device::kGpu)));
  CHECK(backends.default_device() == devices.front()->device());
}

TEST_CASE("registry: a device that does not exist is named with those that do") {
  Backends& backends = Backends::instance();
  const auto far = backends.find(Device{Device::kCpu, 77});
  REQUIRE(!far.ok());
  CHECK(far.status().code() == ErrorCode::kUnknownDevice);
  CHECK(far.status().message().find("/CPU:77 does not exist") != std::string::npos);
  CHECK(far.status().message().find("/CPU:0 (") != std::string::npos);
  const auto gpu = backends.find(Device{Device::kGpu, 99});
  REQUIRE(!gpu.ok());
  const std::string why = backends.why_no_gpu();
  const std::string wanted =
      why.empty() ? "counted from 0" : "No GPU is among them: " + why.substr(0, why.find(". "));
  CHECK(gpu.status().message().find(wanted) != std::string::npos);
  CHECK(gpu.status().message().find("Nothing to do") == std::string::npos);
  const auto odd = backends.find(Device{register_device_kind("TOASTER"), 0});
  CHECK(odd.status().code() == ErrorCode::kUnknownDevice);
  CHECK(!backends.find(Device{}).ok());
}

TEST_CASE("registry: masks hide ops of one kind only") {
  Backends& backends = Backends::instance();
  const uint8_t kind = register_device_kind("NULL");
  backends.mask(kind, {"matmul", "add"});
  CHECK(backends.masked(kind, "matmul"));
  CHECK(!backends.masked(kind, "sub"));
  CHECK(!backends.masked(Device::kCpu, "matmul"));
  backends.mask(kind, {});
  CHECK(!backends.masked(kind, "matmul"));
}

TEST_CASE("registry: the number of CPU devices is set before anything runs") {
  Backends& backends = Backends::instance();
  backends.devices();
  CHECK(backends.set_cpu_devices(0).code() == ErrorCode::kBadSetting);
  CHECK(backends.set_cpu_devices(63).code() == ErrorCode::kBadSetting);
}

TEST_CASE("null: a device on first mention that counts and computes nothing") {
  const Device device{register_device_kind("NULL"), 3};
  DeviceBackend* backend = Backends::instance().find(device).value();
  CHECK(Backends::instance().find(device).value() == backend);
  NullDevice* null = dynamic_cast<NullDevice*>(backend);
  REQUIRE(null != nullptr);
  CHECK(backend->can_capture());
  CHECK(!backend->host_addressable());
  Stream* stream = backend->stream(0).value();

  const size_t before = backend->memory().in_use;
  {
    const BufferPtr a = backend->allocate(1000, "a").value(), b = backend->allocate(10, "b").value();
    CHECK(a->data() != b->data());
    CHECK(backend->memory().in_use == before + 1024 + 512);
    int32_t host[4] = {1, 2, 3, 4};
    CHECK(backend->copy_in(*stream, a->data(), host, sizeof host).ok());
    CHECK(backend->copy_out(*stream, host, a->data(), sizeof host).ok());
    CHECK(host[2] == 0);
  }
  CHECK(backend->memory().in_use == before);
  CHECK(backend->memory().peak >= before + 1536);

  const OpId add = OpTable::instance().id("add");
  Node node;
  node.op = add;
  const ValueType type{DType::kF32, Shape{4}};
  const std::vector<ValueType> inputs(2, type), outputs(1, type);
  NodeView view;
  view.node = &node;
  view.inputs = inputs;
  view.outputs = outputs;
  const Kernel* kernel = backend->kernels(add)[0];
  CHECK(kernel->accept(view).accepted);
  const std::unique_ptr<Launch> launch = kernel->bind(view, *backend).value();
  const NullCounts start = null->counts();
  const LaunchArgs args{*stream, {}, {}, nullptr, nullptr, 0};
  CHECK(launch->run(args).ok());
  const auto graph = backend->capture(*stream, [&](Stream& lane) {
    for (int i = 0; i < 5; ++i) TF_RETURN_IF_ERROR(launch->run({lane, {}, {}, nullptr, nullptr, 0}));
    // What would wait for the device is an error while it is captured.
    CHECK(!lane.synchronize().ok());
    int32_t host = 1;
    CHECK(!backend->copy_out(lane, &host, nullptr, sizeof host).ok());
    return Status();
  });
  REQUIRE(graph.ok());
  CHECK((*graph)->nodes() == 5);
  CHECK((*graph)->launch(*stream).ok());
  const NullCounts end = null->counts();
  CHECK(end.launches == start.launches + 1);
  CHECK(end.captured_kernels == start.captured_kernels + 5);
  CHECK(end.captures == start.captures + 1);
  CHECK(end.replays == start.replays + 1);

  const std::vector<ValueType> symbolic(2, ValueType{DType::kF32, Shape{Dim::fresh("N")}});
  view.inputs = symbolic;
  CHECK(!kernel->bind(view, *backend).ok());
  CHECK(backend->kernels(OpTable::instance().id("string_upper")).empty());
}

}  // namespace
}  // namespace tracefire
