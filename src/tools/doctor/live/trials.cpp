// SPDX-License-Identifier: Apache-2.0
//
// Trial computations, each in a limited process of its own and checked against the CPU.
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include "backends/nvidia/stack.h"
#include "tools/doctor/libraries.h"
#include "tools/doctor/live/child.h"
#include "tools/doctor/live/live.h"
#include "tools/doctor/live/trial.h"
#include "tools/doctor/text.h"

namespace tracefire::doctor {

namespace {

constexpr int kTrialSeconds = 30;

std::string number(double value, const char* format = "%.3g") {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

/// Folders that may be opened: as root none that another user could have changed.
std::vector<std::string> trusted(const std::vector<std::string>& dirs) {
  std::vector<std::string> out;
  for (const std::string& dir : dirs)
    if (::access(dir.c_str(), R_OK) == 0 && (::geteuid() != 0 || trusted_file(dir)))
      out.push_back(dir);
  return out;
}

/// Where the trials look for libraries: what the frameworks of the environments get, then the
/// system.
nvidia::SearchOptions search_options(const Survey& survey) {
  nvidia::SearchOptions options;
  options.loaded = nullptr;
  std::vector<std::string> sites, folders;
  for (bool active : {true, false})
    for (const Surveyed& surveyed : survey.environments) {
      if (surveyed.env.active != active) continue;
      sites.insert(sites.end(), surveyed.env.sites.begin(), surveyed.env.sites.end());
    }
  options.python_roots = trusted(sites);
  options.path_dirs = trusted(survey.machine.ld_dirs);
  folders = {"/usr/local/cuda"};
  options.toolkit_roots = trusted(folders);
  options.driver_dirs =
      trusted({parent_of(survey.machine.libcuda.path), "/usr/lib/wsl/lib", "/usr/lib64-nvidia",
               "/usr/local/nvidia/lib64", "/run/opengl-driver/lib"});
  // The loader itself looks into LD_LIBRARY_PATH, whoever may write there.
  bool all_trusted = options.path_dirs.size() == survey.machine.ld_dirs.size();
  options.loader = ::geteuid() != 0 || all_trusted;
  if (const char* path = std::getenv("LD_LIBRARY_PATH")) options.loader_path = path;
  return options;
}

}  // namespace

void GpuTrial::check(int code, const char* what) {
  if (code == 0) return;
  const char* name = nullptr;
  const char* words = nullptr;
  api.cuGetErrorName(static_cast<CUresult>(code), &name);
  api.cuGetErrorString(static_cast<CUresult>(code), &words);
  throw std::runtime_error(std::string(what) +
                           " failed: " + (name == nullptr ? std::to_string(code) : name) +
                           (words == nullptr ? "" : std::string(": ") + words));
}

GpuTrial::GpuTrial(nvidia::Stack* the_stack) : stack(the_stack) {
  Result<const nvidia::DriverApi*> driver = stack->driver();
  if (!driver.ok()) throw std::runtime_error(driver.status().message());
  api = **driver;
  CUdevice device = 0;
  check(api.cuDeviceGet(&device, 0), "cuDeviceGet");
  check(api.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(api.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  check(api.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
        "cuStreamCreateWithPriority");
}

CUdeviceptr GpuTrial::allocate(size_t bytes) {
  CUdeviceptr address = 0;
  check(api.cuMemAlloc(&address, bytes), "cuMemAlloc");
  return address;
}

void GpuTrial::upload(CUdeviceptr to, const void* from, size_t bytes) {
  check(api.cuMemcpyHtoDAsync(to, from, bytes, stream), "cuMemcpyHtoDAsync");
  wait();
}

void GpuTrial::download(void* to, CUdeviceptr from, size_t bytes) {
  check(api.cuMemcpyDtoHAsync(to, from, bytes, stream), "cuMemcpyDtoHAsync");
  wait();
}

void GpuTrial::wait() { check(api.cuStreamSynchronize(stream), "cuStreamSynchronize"); }

std::vector<float> trial_numbers(size_t count, unsigned seed) {
  std::vector<float> out(count);
  for (float& value : out) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(seed >> 8) / 16777216.0f - 0.5f;
  }
  return out;
}

namespace {

std::string start_driver(GpuTrial& gpu) {
  const nvidia::Inventory& inventory = gpu.stack->inventory();
  return inventory.gpus.empty()
             ? "the driver started"
             : inventory.gpus[0].name +
                   (inventory.driver_version.empty() ? "" : ", driver " + inventory.driver_version);
}

std::string try_memory(GpuTrial& gpu) {
  size_t free = 0, total = 0;
  gpu.check(gpu.api.cuMemGetInfo(&free, &total), "cuMemGetInfo");
  CUdeviceptr block = gpu.allocate(64 << 20);
  gpu.check(gpu.api.cuMemFree(block), "cuMemFree");
  return "64 MiB allocated, " + std::to_string(free >> 20) + " of " + std::to_string(total >> 20) +
         " MiB free";
}

std::string try_copies(GpuTrial& gpu) {
  std::vector<float> data = trial_numbers(1 << 20, 1), back(data.size());
  CUdeviceptr a = gpu.allocate(data.size() * 4), b = gpu.allocate(data.size() * 4);
  gpu.upload(a, data.data(), data.size() * 4);
  gpu.check(gpu.api.cuMemcpyDtoDAsync(b, a, data.size() * 4, gpu.stream), "cuMemcpyDtoDAsync");
  gpu.download(back.data(), b, data.size() * 4);
  if (data != back) throw std::runtime_error("4 MiB copied to the GPU and back came back changed");
  return "4 MiB to the GPU, on it and back are unchanged";
}

std::string try_kernel(GpuTrial& gpu) {
  Result<const nvidia::NvrtcApi*> nvrtc = gpu.stack->nvrtc();
  if (!nvrtc.ok()) throw TrialSkipped("NVRTC was not found, which compiles the kernel");
  const char* text =
      "extern \"C\" __global__ void scale(const float* x, float* y, float a, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = a * x[i] + 1.0f;\n}\n";
  const nvidia::NvrtcApi& compiler = **nvrtc;
  nvrtcProgram program = nullptr;
  if (compiler.nvrtcCreateProgram(&program, text, "trial.cu", 0, nullptr, nullptr) != 0)
    throw std::runtime_error("nvrtcCreateProgram failed");
  std::string arch = "--gpu-architecture=" + gpu.stack->inventory().gpus.at(0).architecture();
  const char* options[] = {arch.c_str()};
  if (nvrtcResult code = compiler.nvrtcCompileProgram(program, 1, options); code != 0)
    throw std::runtime_error(std::string("NVRTC cannot compile for ") + arch.substr(19) + ": " +
                             compiler.nvrtcGetErrorString(code));
  size_t size = 0;
  compiler.nvrtcGetCUBINSize(program, &size);
  std::vector<char> image(size + 1);
  compiler.nvrtcGetCUBIN(program, image.data());
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  gpu.check(gpu.api.cuModuleLoadDataEx(&module, image.data(), 0, nullptr, nullptr),
            "cuModuleLoadDataEx");
  gpu.check(gpu.api.cuModuleGetFunction(&function, module, "scale"), "cuModuleGetFunction");
  int count = 100003;
  float factor = 3.0f;
  std::vector<float> x = trial_numbers(static_cast<size_t>(count), 7), y(x.size());
  CUdeviceptr dx = gpu.allocate(x.size() * 4), dy = gpu.allocate(x.size() * 4);
  gpu.upload(dx, x.data(), x.size() * 4);
  void* arguments[] = {&dx, &dy, &factor, &count};
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned>((count + 255) / 256);
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 256;
  config.hStream = gpu.stream;
  gpu.check(gpu.api.cuLaunchKernelEx(&config, function, arguments, nullptr), "cuLaunchKernelEx");
  gpu.download(y.data(), dy, y.size() * 4);
  for (size_t i = 0; i < x.size(); ++i)
    if (std::fabs(y[i] - (factor * x[i] + 1.0f)) > 1e-5f)
      throw std::runtime_error("a kernel gave " + number(y[i], "%.9g") + " where the CPU gives " +
                               number(factor * x[i] + 1.0f, "%.9g"));
  return "a kernel over 100,003 numbers agrees with the CPU";
}

std::string try_product(GpuTrial& gpu) {
  Result<const nvidia::CublasLtApi*> found = gpu.stack->cublaslt();
  if (!found.ok()) throw TrialSkipped("cuBLASLt was not found");
  const nvidia::CublasLtApi& blas = **found;
  auto check = [&](cublasStatus_t code, const char* what) {
    if (code != CUBLAS_STATUS_SUCCESS)
      throw std::runtime_error(std::string(what) +
                               " failed: " + blas.cublasLtGetStatusString(code));
  };
  constexpr int n = 192;
  std::vector<float> a = trial_numbers(n * n, 3), b = trial_numbers(n * n, 5), c(n * n);
  CUdeviceptr da = gpu.allocate(a.size() * 4), db = gpu.allocate(b.size() * 4),
              dc = gpu.allocate(c.size() * 4);
  gpu.upload(da, a.data(), a.size() * 4);
  gpu.upload(db, b.data(), b.size() * 4);
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t layout = nullptr;
  check(blas.cublasLtCreate(&handle), "cublasLtCreate");
  check(blas.cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  check(blas.cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, n, n, n),
        "cublasLtMatrixLayoutCreate");
  float one = 1, zero = 0;
  auto pointer = [](CUdeviceptr address) {
    return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
  };
  check(blas.cublasLtMatmul(handle, operation, &one, pointer(da), layout, pointer(db), layout,
                            &zero, pointer(dc), layout, pointer(dc), layout, nullptr, nullptr, 0,
                            reinterpret_cast<cudaStream_t>(gpu.stream)),
        "cublasLtMatmul");
  gpu.download(c.data(), dc, c.size() * 4);
  double worst = 0;
  for (int column = 0; column < n; column += 7)
    for (int row = 0; row < n; row += 5) {
      double sum = 0;
      for (int k = 0; k < n; ++k) sum += static_cast<double>(a[k * n + row]) * b[column * n + k];
      worst = std::max(worst, std::fabs(sum - c[column * n + row]));
    }
  if (!(worst < 1e-3))
    throw std::runtime_error("a cuBLAS product of 192x192 differs from the CPU's by " +
                             number(worst));
  return "a product of 192x192 agrees with the CPU (largest difference " + number(worst) + ")";
}

std::string try_bandwidth(GpuTrial& gpu) {
  size_t free = 0, total = 0;
  gpu.check(gpu.api.cuMemGetInfo(&free, &total), "cuMemGetInfo");
  size_t bytes = std::min<size_t>(256 << 20, free / 8);
  if (bytes < (16 << 20)) throw TrialSkipped("too little memory is free");
  CUdeviceptr a = gpu.allocate(bytes), b = gpu.allocate(bytes);
  double best = 0;
  for (int round = 0; round < 6; ++round) {
    gpu.wait();
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 4; ++i)
      gpu.check(gpu.api.cuMemcpyDtoDAsync(b, a, bytes, gpu.stream), "cuMemcpyDtoDAsync");
    gpu.wait();
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, 8.0 * static_cast<double>(bytes) / seconds);
  }
  CUdevice device = 0;
  int clock = 0, bits = 0;
  gpu.check(gpu.api.cuDeviceGet(&device, 0), "cuDeviceGet");
  gpu.api.cuDeviceGetAttribute(&clock, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device);
  gpu.api.cuDeviceGetAttribute(&bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device);
  double limit = 2.0 * clock * 1e3 * bits / 8;
  std::string text = number(best / 1e9, "%.0f") + " GB/s copied within its memory";
  if (limit > 1e9)
    text += ", " + number(100 * best / limit, "%.0f") + " % of the device's limit of " +
            number(limit / 1e9, "%.0f") + " GB/s";
  return text;
}

struct Trial {
  const char* name;
  std::string (*run)(GpuTrial&);
};
constexpr Trial kTrials[] = {
    {"driver start", start_driver},  {"allocation", try_memory},
    {"copies", try_copies},          {"kernel", try_kernel},
    {"cuBLAS product", try_product}, {"cuDNN convolution", try_convolution},
    {"bandwidth", try_bandwidth}};

}  // namespace

LiveResults run_live_tests(const Root& root, const Survey& survey, const std::string& framework) {
  LiveResults out;
  const Machine& m = survey.machine;
  if (m.gpu != Presence::kPresent) return out;
  if (m.libcuda.path.empty()) {
    out.lines.push_back("The GPU was not tried out: no libcuda.so.1 was found.");
    return out;
  }
  nvidia::SearchOptions options = search_options(survey);
  bool started = false;
  for (const Trial& trial : kTrials) {
    ChildResult child = run_child(
        [&]() -> std::string {
          nvidia::Stack stack(options);
          try {
            GpuTrial gpu(&stack);
            return "ok " + trial.run(gpu);
          } catch (const TrialSkipped& reason) {
            return std::string("skip ") + reason.what();
          }
        },
        kTrialSeconds);
    std::string trouble = child.trouble(kTrialSeconds);
    std::string name = std::string("Trial of ") + trial.name;
    std::string words =
        child.output.size() > 3 ? child.output.substr(child.output.find(' ') + 1) : "";
    if (trouble.empty() && child.status == 0 && child.output.rfind("ok ", 0) == 0) {
      started = true;
      out.lines.push_back(name + ": " + words + ".");
      continue;
    }
    if (trouble.empty() && child.status == 0) {
      out.lines.push_back(name + ": left out, because " + words + ".");
      continue;
    }
    std::string problem =
        trouble.empty() ? (child.output.empty() ? "its process failed" : child.output) : trouble;
    while (!problem.empty() && (problem.back() == '.' || problem.back() == '\n'))
      problem.pop_back();
    out.lines.push_back(name + ": failed, " + problem + ".");
    out.errors += name + ": " + problem + "\n";
    Finding finding;
    finding.kind = "live-test";
    finding.severity = "error";
    finding.confidence = 0.9;
    finding.verdict = "gpu-broken";
    finding.order = 129;
    finding.evidence = {name + " failed: " + problem + "."};
    finding.fix = "Reboot the machine and try again; if it fails again, update the driver (" +
                  survey.facts.get("cmd.driver") +
                  ") and read the kernel's log: sudo dmesg | grep -i -e nvrm -e xid";
    finding.drop_if = {"fabric-manager",         "ecc-uncorrectable",   "xid-79",
                       "compute-mode-exclusive", "gpu-memory-held",     "forward-compat-804",
                       "driver-lib-mismatch",    "cgroup-devices-lost", "uvm-missing",
                       "dev-permissions"};
    out.findings.push_back(std::move(finding));
    if (!started) break;  // without a driver the others fail for the same reason
  }
  if (started) try_frameworks(root, survey, framework, &out);
  return out;
}

}  // namespace tracefire::doctor
