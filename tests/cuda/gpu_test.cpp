// SPDX-License-Identifier: Apache-2.0
// The foundation on a real GPU. Cases are skipped, with the reason, on machines without one.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>

#include "backends/cuda/cuda_device.h"
#include "backends/cuda/cuda_devices.h"
#include "ops/device_run.h"
#include "ops/op_case.h"
#include "support/skip.h"

namespace tracefire::cuda {
namespace {

nvidia::Stack& real_stack() {
  static nvidia::Stack& stack = [&]() -> nvidia::Stack& {
    nvidia::SearchOptions options = nvidia::SearchOptions::from_environment();
    options.loaded = nullptr;  // other tests of this program loaded emulated libraries
    return *new nvidia::Stack(options);
  }();
  return stack;
}

CudaDevices& real_gpus() {
  static CudaDevices& devices = *new CudaDevices(make_cuda_devices(real_stack()));
  return devices;
}

CudaDevice* real_gpu() {
  if (real_gpus().devices.empty()) {
    test::skip(real_gpus().why_not);
    return nullptr;
  }
  return static_cast<CudaDevice*>(real_gpus().devices.front().get());
}

template <class T>
BufferPtr put(CudaDevice& gpu, const std::vector<T>& values) {
  BufferPtr buffer = gpu.allocate(values.size() * sizeof(T), "test").value();
  const Status copied =
      gpu.copy_in(*gpu.stream(0).value(), buffer->data(), values.data(), values.size() * sizeof(T));
  CHECK(copied.ok());
  return buffer;
}
template <class T>
std::vector<T> get(CudaDevice& gpu, const BufferPtr& buffer, size_t count) {
  std::vector<T> values(count);
  const Status copied =
      gpu.copy_out(*gpu.stream(0).value(), values.data(), buffer->data(), count * sizeof(T));
  CHECK(copied.ok());
  return values;
}

TEST_CASE("gpu: bytes go in and out, of every size") {
  CudaDevice* const gpu = real_gpu();
  if (gpu == nullptr) return;
  std::printf("%s, %s, driver %s\n%s", gpu->info().name.c_str(), gpu->info().architecture.c_str(),
              gpu->info().driver.c_str(), real_stack().report().c_str());
  for (const size_t count : {size_t{1}, size_t{1000}, Staging::kBlockBytes, size_t{50} << 20}) {
    std::vector<uint8_t> bytes(count);
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 31 + count);
    const BufferPtr buffer = put(*gpu, bytes);
    CHECK(get<uint8_t>(*gpu, buffer, count) == bytes);
  }
}

TEST_CASE("gpu: a kernel compiled here runs, early where it waits, and replays from a graph") {
  CudaDevice* const gpu = real_gpu();
  if (gpu == nullptr) return;
  constexpr char kSource[] = R"(
extern "C" __global__ void step(float* x, const float* y, int n) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * 0.5f + y[(i + 7) % n];
})";
  const Image image = (*gpu->compiler())->compile("step", kSource).value();
  const auto module = Module::load(gpu->context().value(), image, true).value();
  const Function step = module->function("step").value();
  CHECK(step.waits == (gpu->context().value()->capability() >= 90));
  const int n = 1 << 16;
  std::vector<float> x(n, 1.f), y(n, 0.f);
  const BufferPtr dx = put(*gpu, x), dy = put(*gpu, y);
  const LaunchShape shape{{n / 256, 1, 1}, {256, 1, 1}, 0};
  const auto graph = gpu->capture(*gpu->stream(0).value(), [&](Stream& stream) {
    for (int i = 0; i < 10; ++i) {
      TF_RETURN_IF_ERROR(launch_with(lane_of(stream), step, shape, dx->data(), dy->data(), n));
      TF_RETURN_IF_ERROR(launch_with(lane_of(stream), step, shape, dy->data(), dx->data(), n));
    }
    return Status();
  });
  REQUIRE(graph.ok());
  CHECK((*graph)->nodes() == 20);
  for (int i = 0; i < 3; ++i) REQUIRE((*graph)->launch(*gpu->stream(0).value()).ok());
  for (int i = 0; i < 30; ++i) {
    for (int e = 0; e < n; ++e) x[e] = x[e] * 0.5f + y[(e + 7) % n];
    for (int e = 0; e < n; ++e) y[e] = y[e] * 0.5f + x[(e + 7) % n];
  }
  CHECK(get<float>(*gpu, dx, n) == x);
  CHECK(get<float>(*gpu, dy, n) == y);
}

TEST_CASE("gpu: products agree with double within their precision") {
  CudaDevice* const gpu = real_gpu();
  if (gpu == nullptr) return;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  MatmulProblem p;
  p.m = 65, p.n = 130, p.k = 257;
  std::vector<float> a(static_cast<size_t>(p.m * p.k)), b(static_cast<size_t>(p.k * p.n));
  for (float& v : a) v = normal(random);
  for (float& v : b) v = normal(random);
  const BufferPtr da = put(*gpu, a), db = put(*gpu, b);
  for (const Precision precision : {Precision::kTf32, Precision::kHighest}) {
    p.precision = precision;
    const auto plan = gpu->find_matmul(p, true).value();
    const BufferPtr workspace = gpu->allocate(plan->workspace_bytes(), "workspace").value();
    const BufferPtr dc = gpu->allocate(static_cast<size_t>(p.m * p.n) * 4, "result").value();
    REQUIRE(plan->run(lane_of(*gpu->stream(0).value()), da->data(), db->data(), dc->data(),
                      workspace->data())
                .ok());
    const std::vector<float> c = get<float>(*gpu, dc, static_cast<size_t>(p.m * p.n));
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < p.k; ++k) {
          sum += static_cast<double>(a[static_cast<size_t>(i * p.k + k)]) *
                 b[static_cast<size_t>(k * p.n + j)];
        }
        difference += std::pow(c[static_cast<size_t>(i * p.n + j)] - sum, 2);
        norm += sum * sum;
      }
    }
    const double error = std::sqrt(difference / norm);
    std::printf("product, %s: relative error %.2e\n",
                precision == Precision::kTf32 ? "tf32" : "highest", error);
    CHECK(error < (precision == Precision::kTf32 ? 1e-3 : 1e-6));
  }
}

TEST_CASE("gpu: large products, measured [deep]") {
  CudaDevice* const gpu = real_gpu();
  if (gpu == nullptr) return;
  struct Row {
    const char* name;
    DType dtype;
    Precision precision;
  };
  for (const Row& row : {Row{"f32 highest", DType::kF32, Precision::kHighest},
                         Row{"f32 tf32", DType::kF32, Precision::kTf32},
                         Row{"bf16", DType::kBF16, Precision::kTf32}}) {
    MatmulProblem p;
    p.m = p.n = p.k = 5000;
    p.dtype = row.dtype;
    p.precision = row.precision;
    const size_t bytes = 25000000 * dtype_size(p.dtype);
    std::vector<uint16_t> noise(bytes / 2);
    std::mt19937 random(1);
    // Both a bf16 between 1 and 2 and the upper half of such a float.
    for (uint16_t& v : noise) v = static_cast<uint16_t>(0x3f80 | (random() & 0x7f));
    const BufferPtr a = put(*gpu, noise), b = put(*gpu, noise);
    const BufferPtr c = gpu->allocate(bytes, "result").value();
    Lane& lane = lane_of(*gpu->stream(0).value());
    double best[2] = {0, 0};
    for (const bool tuned : {false, true}) {
      p.alignment = tuned ? 256 : 128;  // two problems for the cache of plans
      const auto plan = gpu->find_matmul(p, tuned).value();
      const BufferPtr workspace = gpu->allocate(plan->workspace_bytes(), "workspace").value();
      for (int round = 0; round < 10; ++round) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < 10; ++i) {
          REQUIRE(plan->run(lane, a->data(), b->data(), c->data(), workspace->data()).ok());
        }
        REQUIRE(lane.synchronize().ok());
        const std::chrono::duration<double> span = std::chrono::steady_clock::now() - start;
        best[tuned ? 1 : 0] = std::max(best[tuned ? 1 : 0], 10 * 2.5e11 / span.count());
      }
    }
    std::printf("5000 x 5000 %s: first choice %.1f, measured choice %.1f TFLOP/s\n", row.name,
                best[0] * 1e-12, best[1] * 1e-12);
    CHECK(best[1] > 0);
  }
}

/// Microseconds of one run of the case's first kernel, among many in a replayed graph.
double measure(CudaDevice& gpu, const test::OpCase& op_case, std::string* kernel_name) {
  constexpr int kRuns = 50;
  const test::BoundNode bound(test::one_node_graph(op_case), gpu);
  std::vector<BufferPtr> buffers;
  std::vector<void*> in, out;
  for (const test::Array& array : test::make_inputs(op_case, 3)) {
    const std::string bytes = ref::bytes_of(array);
    buffers.push_back(gpu.allocate(std::max<size_t>(1, bytes.size()), "input").value());
    in.push_back(buffers.back()->data());
    const Status copied =
        gpu.copy_in(*gpu.stream(0).value(), in.back(), bytes.data(), bytes.size());
    REQUIRE(copied.ok());
  }
  for (const ValueType& type : bound.node().outputs) {
    const int64_t elements = type.shape.is_constant()
                                 ? type.shape.elements().value()
                                 : bound.view().inputs[0].shape.elements().value();
    const size_t bytes = static_cast<size_t>(elements) * dtype_size(type.dtype);
    buffers.push_back(gpu.allocate(std::max<size_t>(1, bytes), "output").value());
    out.push_back(buffers.back()->data());
  }
  for (const Kernel* const kernel : gpu.kernels(bound.node().op)) {
    if (!kernel->accept(bound.view()).accepted) continue;
    *kernel_name = kernel->name();
    const auto launch = kernel->bind(bound.view(), gpu).value();
    const BufferPtr workspace =
        gpu.allocate(std::max<size_t>(1, launch->workspace_bytes()), "workspace").value();
    const auto graph = gpu.capture(*gpu.stream(0).value(), [&](Stream& stream) {
      for (int i = 0; i < kRuns; ++i) {
        TF_RETURN_IF_ERROR(launch->run({stream, in, out, workspace->data(), nullptr, 0}));
      }
      return Status();
    });
    REQUIRE(graph.ok());
    Lane& lane = lane_of(*gpu.stream(0).value());
    double best = 1e9;
    for (int round = 0; round < 10; ++round) {
      const auto start = std::chrono::steady_clock::now();
      REQUIRE((*graph)->launch(lane).ok());
      REQUIRE(lane.synchronize().ok());
      const std::chrono::duration<double> span = std::chrono::steady_clock::now() - start;
      best = std::min(best, span.count() / kRuns);
    }
    return best * 1e6;
  }
  return 0;
}

TEST_CASE("gpu: ready kernels at the sizes of models, measured [deep]") {
  CudaDevice* const gpu = real_gpu();
  if (gpu == nullptr) return;
  using test::InputSpec;
  using test::OpCase;
  using Ints = std::vector<int64_t>;
  const auto x = [](DType dtype, Ints sizes) {
    return InputSpec{dtype, std::move(sizes), 0.1, 1, {}};
  };
  const InputSpec step{DType::kI64, {}, 3, 3, {}}, rate{DType::kF32, {}, 0.01, 0.01, {}};
  const auto labels = [](int64_t rows, int64_t classes) {
    return InputSpec{DType::kI64, {rows}, 0, static_cast<double>(classes - 1), {}};
  };
  std::vector<OpCase> cases;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const Ints& sizes : {Ints{128, 512}, Ints{128, 10}, Ints{4096, 2048}, Ints{64, 65536}}) {
      for (const int64_t axis : {0, 1}) {
        cases.push_back({"reduce_sum", {x(dtype, sizes)}, {{"axes", Ints{axis}}}, {}});
      }
      cases.push_back({"reduce_sum", {x(dtype, sizes)}, {{"axes", Ints{0, 1}}}, {}});
      cases.push_back({"softmax", {x(dtype, sizes)}, {}, {}});
      const InputSpec classes = labels(sizes[0], sizes[1]);
      cases.push_back({"softmax_cross_entropy", {x(dtype, sizes), classes}, {}, {}});
      cases.push_back(
          {"softmax_cross_entropy_grad", {x(dtype, sizes), classes, x(dtype, {sizes[0]})}, {}, {}});
      cases.push_back({"argmax", {x(dtype, sizes)}, {}, {}});
      cases.push_back({"cumsum", {x(dtype, sizes)}, {{"axis", int64_t{1}}}, {}});
      cases.push_back({"top_k", {x(dtype, sizes)}, {{"k", int64_t{10}}}, {}});
    }
    for (const Ints& sizes : {Ints{512}, Ints{784, 512}, Ints{4096, 4096}}) {
      const InputSpec p = x(dtype, sizes);
      cases.push_back({"adam_update", {p, p, p, p, step, rate}, {}, {}});
      cases.push_back({"add", {p, p}, {}, {}});
      cases.push_back({"add", {p, x(dtype, {sizes.back()})}, {}, {}});
      cases.push_back({"exp", {p}, {}, {}});
    }
    cases.push_back({"unique", {{dtype, {1 << 20}, 0, 200, {}}}, {{"size", int64_t{256}}}, {}});
  }
  for (const OpCase& op_case : cases) {
    std::string kernel;
    const double micros = measure(*gpu, op_case, &kernel);
    std::printf("%-20s %9.2f us  %s\n", kernel.c_str(), micros, op_case.label().c_str());
    CHECK(micros > 0);
  }
}

}  // namespace
}  // namespace tracefire::cuda
