// SPDX-License-Identifier: Apache-2.0
#include "cuda/emulated_gpu.h"

namespace tracefire::cuda {
namespace {

using test::EmulatedGpu;
using test::ScopedEnv;
using test::TempDir;

constexpr char kScale[] = R"(
extern "C" __global__ void scale(float* x, float by, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}
extern "C" __global__ void block_sum(const float* x, float* out, int n) {
  TF_SHARED_FLOATS(part);
  part[threadIdx.x] = threadIdx.x < n ? x[blockIdx.x * n + threadIdx.x] : 0.f;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  float w = part[0];
  for (int m = 16; m > 0; m /= 2) w = __shfl_xor_sync(0xffffffffu, w, m);
  if (threadIdx.x == 0) out[blockIdx.x] = w;
}
extern "C" __global__ void broken(float* x) { if (x[0] > 0) __trap(); }
)";
constexpr char kPrelude[] = "#define TF_SHARED_FLOATS(name) TF_DYNAMIC_SHARED(float, name)\n";

TEST_CASE("cuda compiler: kernels are compiled, loaded and launched") {
  if (test::skip_without_compiler()) return;
  EmulatedGpu gpu;
  const Result<const Compiler*> compiler = gpu.device().compiler();
  REQUIRE(compiler.ok());
  CHECK((*compiler)->target() == "sm_90");
  CHECK((*compiler)->version() == "13.0");
  const Result<Image> image = (*compiler)->compile("test", std::string(kPrelude) + kScale);
  REQUIRE(image.ok());
  CHECK(image->architecture == 90);
  const std::shared_ptr<const Context> context = gpu.device().context().value();
  const std::shared_ptr<Module> module = Module::load(context, *image, false).value();
  const Function scale = module->function("scale").value();
  CHECK_FALSE(scale.waits);
  std::vector<float> x(1000, 3.f);
  const BufferPtr data = gpu.put(x);
  LaunchShape shape{{4, 1, 1}, {256, 1, 1}, 0};
  REQUIRE(launch_with(lane_of(gpu.stream()), scale, shape, data->data(), 2.f,
                      static_cast<long long>(x.size()))
              .ok());
  CHECK(gpu.get<float>(data, 1000) == std::vector<float>(1000, 6.f));

  const Function sum = module->function("block_sum").value();
  const BufferPtr out = gpu.put(std::vector<float>(4, 0.f));
  shape.shared_bytes = 1024;
  REQUIRE(launch_with(lane_of(gpu.stream()), sum, shape, data->data(), out->data(), 250).ok());
  CHECK(gpu.get<float>(out, 4) == std::vector<float>(4, 1500.f));
}

TEST_CASE("cuda compiler: only kernels that wait are launched early") {
  if (test::skip_without_compiler()) return;
  EmulatedGpu gpu;
  const Image image =
      (*gpu.device().compiler())->compile("test", std::string(kPrelude) + kScale).value();
  const std::shared_ptr<const Context> context = gpu.device().context().value();
  const BufferPtr data = gpu.put(std::vector<float>(4, 1.f));
  const auto launched_early = [&](const Image& code, bool waits) {
    const std::shared_ptr<Module> module = Module::load(context, code, waits).value();
    const int64_t before = gpu.counts().pdl_launches;
    const LaunchShape shape{{1, 1, 1}, {32, 1, 1}, 0};
    CHECK(launch_with(lane_of(gpu.stream()), module->function("scale").value(), shape, data->data(),
                      1.f, 4LL)
              .ok());
    return gpu.counts().pdl_launches > before;
  };
  CHECK(launched_early(image, true));
  CHECK_FALSE(launched_early(image, false));
  Image older = image;
  older.architecture = 75;  // its code has no wait, whatever the source says
  CHECK_FALSE(launched_early(older, true));
}

TEST_CASE("cuda compiler: a source that is wrong gives the compiler's log") {
  if (test::skip_without_compiler()) return;
  EmulatedGpu gpu;
  const Result<Image> image =
      (*gpu.device().compiler())
          ->compile("wrong", "extern \"C\" __global__ void f() { nonsense; }");
  REQUIRE_FALSE(image.ok());
  CHECK(image.status().code() == ErrorCode::kKernelCompile);
  CHECK(image.status().message().find("nonsense") != std::string::npos);
  CHECK(image.status().message().find("'wrong' for sm_90") != std::string::npos);
}

TEST_CASE("cuda compiler: equal sources come from the disk") {
  if (test::skip_without_compiler()) return;
  EmulatedGpu gpu(1, EmulatedGpu::DiskCache::kOwn);
  const std::string source = std::string(kPrelude) + kScale;
  REQUIRE((*gpu.device().compiler())->compile("test", source).ok());
  CHECK(gpu.counts().compiles == 1);
  gpu.restart();
  REQUIRE((*gpu.device().compiler())->compile("test", source).ok());
  CHECK(gpu.counts().compiles == 1);
  REQUIRE((*gpu.device().compiler())->compile("test", source, {"-DOTHER=1"}).ok());
  CHECK(gpu.counts().compiles == 2);
}

TEST_CASE("cuda compiler: a GPU that NVRTC does not know gets PTX of an older architecture") {
  const ScopedEnv newer("TF_EMU_CAPABILITY", "103");
  EmulatedGpu gpu;
  CHECK((*gpu.device().compiler())->target() == "compute_90");
}

TEST_CASE("cuda compiler: a GPU too old for NVRTC is refused") {
  EmulatedGpu gpu;
  const Result<const nvidia::NvrtcApi*> nvrtc = gpu.stack().nvrtc();
  REQUIRE(nvrtc.ok());
  const Result<std::unique_ptr<Compiler>> compiler = Compiler::make(**nvrtc, 70, DiskCache("", 0));
  REQUIRE_FALSE(compiler.ok());
  CHECK(compiler.status().code() == ErrorCode::kLibraryWrongVersion);
  CHECK(compiler.status().message().find("compute capability 7.0") != std::string::npos);
}

TEST_CASE("cuda compiler: a kernel that faults loses the device") {
  if (test::skip_without_compiler()) return;
  EmulatedGpu gpu;
  const Image image =
      (*gpu.device().compiler())->compile("test", std::string(kPrelude) + kScale).value();
  const std::shared_ptr<Module> module =
      Module::load(gpu.device().context().value(), image, false).value();
  const BufferPtr data = gpu.put(std::vector<float>(1, 1.f));
  REQUIRE(launch_with(lane_of(gpu.stream()), module->function("broken").value(), LaunchShape{},
                      data->data())
              .ok());
  CHECK(gpu.stream().synchronize().code() == ErrorCode::kDeviceLost);
}

TEST_CASE("cuda compiler: launches are checked") {
  if (test::skip_without_compiler()) return;
  EmulatedGpu gpu;
  const Image image =
      (*gpu.device().compiler())->compile("test", std::string(kPrelude) + kScale).value();
  const std::shared_ptr<Module> module =
      Module::load(gpu.device().context().value(), image, false).value();
  CHECK(module->function("absent").status().code() == ErrorCode::kInternal);
  const BufferPtr data = gpu.put(std::vector<float>(1, 1.f));
  const LaunchShape shape{{1, 1, 1}, {2048, 1, 1}, 0};
  const Status status = launch_with(lane_of(gpu.stream()), module->function("scale").value(), shape,
                                    data->data(), 1.f, 1LL);
  REQUIRE_FALSE(status.ok());
  CHECK(status.message().find("kernel scale with 1 x 1 x 1 blocks of 2048 threads") !=
        std::string::npos);
}

TEST_CASE("cuda disk cache: entries are found by their whole key, and the oldest go first") {
  TempDir dir;
  const DiskCache cache(dir.path("kernels"), 3000);
  CHECK_FALSE(cache.find("a").has_value());
  cache.put("a", std::string(1000, 'x'));
  cache.put("b", std::string("with\0zero", 9));
  CHECK(cache.find("a") == std::string(1000, 'x'));
  CHECK(cache.find("b") == std::string("with\0zero", 9));
  CHECK_FALSE(cache.find("ab").has_value());
  cache.put("a", "new");
  CHECK(cache.find("a") == "new");

  const auto files = [&] {
    std::vector<std::filesystem::path> list;
    for (const auto& entry : std::filesystem::directory_iterator(dir.path("kernels"))) {
      list.push_back(entry.path());
    }
    return list;
  };
  REQUIRE(files().size() == 2);
  // A file that was cut short counts as absent.
  for (const auto& file : files()) {
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  }
  CHECK_FALSE(cache.find("a").has_value());
  CHECK_FALSE(cache.find("b").has_value());

  // So does one of which the disk changed a byte: the driver would refuse such a kernel.
  cache.put("b", "value");
  {
    const auto changed = files();
    for (const auto& file : changed) {
      std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
      bytes.seekp(-1, std::ios::end);
      bytes.put('E');
    }
  }
  CHECK_FALSE(cache.find("b").has_value());

  cache.put("old", std::string(1000, 'o'));
  const auto past = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& file : files()) std::filesystem::last_write_time(file, past);
  cache.put("newer", std::string(1000, 'n'));
  cache.put("newest", std::string(1500, 'm'));
  CHECK_FALSE(cache.find("old").has_value());
  CHECK(cache.find("newest").has_value());
}

TEST_CASE("cuda disk cache: a place that cannot be written is no error") {
  const DiskCache nowhere("/proc/tracefire", 1000);
  nowhere.put("a", "b");
  CHECK_FALSE(nowhere.find("a").has_value());
  const DiskCache off("", 0);
  off.put("a", "b");
  CHECK_FALSE(off.find("a").has_value());
}

}  // namespace
}  // namespace tracefire::cuda
