// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/context.h"

#include <cstdio>

namespace tracefire::cuda {

bool is_sticky(CUresult code) {
  switch (code) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_EXTERNAL_DEVICE:
      return true;
    default:
      return false;
  }
}

std::string bytes_text(size_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  const bool whole =
      unit == 0 || value >= 100 || value == static_cast<double>(static_cast<int>(value));
  std::snprintf(text, sizeof text, whole ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

Result<std::unique_ptr<Context>> Context::make(const nvidia::DriverApi& api, const nvidia::Gpu& gpu,
                                               Device device) {
  std::unique_ptr<Context> made(new Context(api, gpu, device));
  CUdevice handle = 0;
  TF_CUDA(*made, cuDeviceGet, &handle, gpu.index);
  TF_CUDA(*made, cuDevicePrimaryCtxRetain, &made->context_, handle);
  TF_RETURN_IF_ERROR(made->enter());
  return made;
}

Status Context::enter() const {
  if (lost()) return health();
  return check(api_.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
}

std::string Context::words(CUresult code) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (api_.cuGetErrorName(code, &name) != CUDA_SUCCESS || name == nullptr) {
    return "error " + std::to_string(static_cast<int>(code));
  }
  std::string words = name;
  if (api_.cuGetErrorString(code, &text) == CUDA_SUCCESS && text != nullptr) {
    words += std::string(" (") + text + ")";
  }
  return words;
}

Status Context::check(CUresult code, const char* call) const {
  if (code == CUDA_SUCCESS) return {};
  if (lost()) return health();
  if (is_sticky(code)) return mark_lost(code, call);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    return error(
        ErrorCode::kOutOfMemory, call, " found no memory on ", device_.str(), " (", gpu_.name, ", ",
        bytes_text(gpu_.memory_bytes),
        "). Expected room for it. Free tensors, use a smaller batch, or end other programs "
        "that use this GPU.");
  }
  return error(ErrorCode::kCudaCall, call, " failed on ", device_.str(), " (", gpu_.name,
               "): ", words(code), ". Expected CUDA_SUCCESS. Please report it with this text.");
}

Status Context::mark_lost(CUresult code, const char* call) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!lost_.load(std::memory_order_relaxed)) {
    why_lost_ =
        error(ErrorCode::kDeviceLost, device_.str(), " (", gpu_.name, ") is lost: ", call,
              " reported ", words(code),
              ". Expected a healthy device. Values on it are gone, values elsewhere live on; "
              "restart the process to use the GPU again.");
    lost_.store(true, std::memory_order_release);
  }
  return why_lost_;
}

Status Context::health() const {
  if (!lost()) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  return why_lost_;
}

}  // namespace tracefire::cuda
