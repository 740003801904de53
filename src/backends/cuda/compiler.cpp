// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compiler.h"

#include <algorithm>
#include <cstdlib>

namespace tracefire::cuda {
namespace {

constexpr int kFirstWithWait = 90;

}  // namespace

Result<std::unique_ptr<Compiler>> Compiler::make(const nvidia::NvrtcApi& api, int capability,
                                                 DiskCache cache) {
  std::unique_ptr<Compiler> made(new Compiler(api, std::move(cache)));
  int major = 0;
  int minor = 0;
  int count = 0;
  if (api.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS ||
      api.nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0) {
    return error(ErrorCode::kNoGpu,
                 "NVRTC was found, but does not tell its version or architectures. Expected a "
                 "working libnvrtc.");
  }
  std::vector<int> known(static_cast<size_t>(count));
  if (api.nvrtcGetSupportedArchs(known.data()) != NVRTC_SUCCESS) {
    return error(ErrorCode::kNoGpu,
                 "NVRTC was found, but does not list its architectures. Expected a working "
                 "libnvrtc.");
  }
  made->version_ = std::to_string(major) + "." + std::to_string(minor);
  for (const int architecture : known) {
    if (architecture <= capability)
      made->architecture_ = std::max(made->architecture_, architecture);
  }
  if (made->architecture_ == 0) {
    return error(ErrorCode::kLibraryWrongVersion, "NVRTC ", made->version_,
                 " makes no code for compute capability ", capability / 10, ".", capability % 10,
                 ", its oldest is ", known.front() / 10, ".", known.front() % 10,
                 ". Expected an NVRTC that knows this GPU; for Volta that is NVRTC 12, from "
                 "`python3 -m pip install nvidia-cuda-nvrtc-cu12 nvidia-cublas-cu12`.");
  }
  made->cubin_ = made->architecture_ == capability;
  made->target_ = (made->cubin_ ? "sm_" : "compute_") + std::to_string(made->architecture_);
  return made;
}

Result<Image> Compiler::compile(const std::string& name, const std::string& source,
                                const std::vector<std::string>& options) const {
  std::vector<std::string> all = {"--gpu-architecture=" + target_, "--std=c++17",
                                  "-default-device"};
  all.insert(all.end(), options.begin(), options.end());
  std::string key = "nvrtc " + version_;
  for (const std::string& option : all) key += " " + option;
  key += "\n" + source;
  if (std::optional<std::string> kept = cache_.find(key)) {
    return Image{std::move(*kept), architecture_};
  }
  TF_ASSIGN(std::string bytes, run(name, source, all));
  cache_.put(key, bytes);
  return Image{std::move(bytes), architecture_};
}

Result<std::string> Compiler::run(const std::string& name, const std::string& source,
                                  const std::vector<std::string>& options) const {
  nvrtcProgram program = nullptr;
  const auto failed = [&](const char* call, nvrtcResult code) {
    std::string log;
    size_t size = 0;
    if (program != nullptr && api_.nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS &&
        size > 1) {
      log.resize(size);
      api_.nvrtcGetProgramLog(program, log.data());
      log.resize(size - 1);
    }
    if (program != nullptr) api_.nvrtcDestroyProgram(&program);
    if (code == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE) {
      // No fault of the kernel: NVRTC opens libnvrtc-builtins while it compiles.
      return error(
          ErrorCode::kNoGpu, "NVRTC ", version_,
          " was found, but cannot compile: ", api_.nvrtcGetErrorString(code),
          log.empty() ? "" : " (", log, log.empty() ? "" : ")",
          ". Expected libnvrtc-builtins of the same version beside it. ",
          nvidia::how_to_install(nvidia::Library::kNvrtc, std::atoi(version_.c_str()), true));
    }
    return error(ErrorCode::kKernelCompile, call, " of kernels '", name, "' for ", target_,
                 " with NVRTC ", version_, " failed: ", api_.nvrtcGetErrorString(code), "\n", log);
  };
  nvrtcResult code =
      api_.nvrtcCreateProgram(&program, source.c_str(), name.c_str(), 0, nullptr, nullptr);
  if (code != NVRTC_SUCCESS) return failed("nvrtcCreateProgram", code);
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  code = api_.nvrtcCompileProgram(program, static_cast<int>(texts.size()), texts.data());
  if (code != NVRTC_SUCCESS) return failed("nvrtcCompileProgram", code);
  size_t size = 0;
  code = cubin_ ? api_.nvrtcGetCUBINSize(program, &size) : api_.nvrtcGetPTXSize(program, &size);
  std::string bytes(size, '\0');
  if (code == NVRTC_SUCCESS) {
    code = cubin_ ? api_.nvrtcGetCUBIN(program, bytes.data())
                  : api_.nvrtcGetPTX(program, bytes.data());
  }
  if (code != NVRTC_SUCCESS || size == 0) return failed("reading the code", code);
  api_.nvrtcDestroyProgram(&program);
  return bytes;
}

Result<std::shared_ptr<Module>> Module::load(std::shared_ptr<const Context> context,
                                             const Image& image, bool waits) {
  TF_RETURN_IF_ERROR(context->enter());
  std::shared_ptr<Module> made(new Module(std::move(context)));
  // PTX has to end with a zero byte; a cubin does not mind one.
  TF_CUDA(*made->context_, cuModuleLoadDataEx, &made->module_, image.bytes.c_str(), 0, nullptr,
          nullptr);
  made->waits_ = waits && image.architecture >= kFirstWithWait;
  return made;
}

Module::~Module() {
  if (module_ != nullptr && context_->enter().ok()) context_->api().cuModuleUnload(module_);
}

Result<Function> Module::function(const std::string& name) const {
  TF_RETURN_IF_ERROR(context_->enter());
  Function found;
  const CUresult code = context_->api().cuModuleGetFunction(&found.handle, module_, name.c_str());
  if (code == CUDA_ERROR_NOT_FOUND) {
    return error(ErrorCode::kInternal, "no kernel '", name,
                 "' in its module. Expected every kernel that was compiled. Please report it.");
  }
  TF_RETURN_IF_ERROR(context_->check(code, "cuModuleGetFunction"));
  found.module = shared_from_this();
  found.waits = waits_;
  found.name = name;
  return found;
}

Status launch(Lane& lane, const Function& function, const LaunchShape& shape, void** arguments) {
  const Context& context = lane.context();
  TF_RETURN_IF_ERROR(context.enter());
  constexpr unsigned kDefaultShared = 48 * 1024;
  if (shape.shared_bytes > kDefaultShared) {
    TF_CUDA(context, cuFuncSetAttribute, function.handle,
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shape.shared_bytes));
  }
  CUlaunchConfig config{};
  config.gridDimX = shape.grid[0];
  config.gridDimY = shape.grid[1];
  config.gridDimZ = shape.grid[2];
  config.blockDimX = shape.block[0];
  config.blockDimY = shape.block[1];
  config.blockDimZ = shape.block[2];
  config.sharedMemBytes = shape.shared_bytes;
  config.hStream = lane.handle();
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  if (function.waits) {
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  const CUresult code =
      context.api().cuLaunchKernelEx(&config, function.handle, arguments, nullptr);
  if (code == CUDA_SUCCESS) return {};
  return context.check(code, "cuLaunchKernelEx")
      .prefixed("kernel " + function.name + " with " + std::to_string(shape.grid[0]) + " x " +
                std::to_string(shape.grid[1]) + " x " + std::to_string(shape.grid[2]) +
                " blocks of " + std::to_string(shape.block[0] * shape.block[1] * shape.block[2]) +
                " threads: ");
}

}  // namespace tracefire::cuda
