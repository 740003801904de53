// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "backends/nvidia/stack.h"
#include "core/base/status.h"
#include "tracefire/device.h"

namespace tracefire::cuda {

/// The primary context of one GPU, shared with other frameworks in the process, and its state of
/// health. After a sticky error (an illegal address, an ECC error, …) the driver refuses every
/// further call, also after a reset; the GPU is then lost to this process, which lives on.
class Context {
 public:
  /// Takes hold of the primary context of `gpu`. Errors: kCudaCall, kOutOfMemory.
  static Result<std::unique_ptr<Context>> make(const nvidia::DriverApi& api, const nvidia::Gpu& gpu,
                                               Device device);

  const nvidia::DriverApi& api() const { return api_; }
  const nvidia::Gpu& gpu() const { return gpu_; }
  Device device() const { return device_; }
  int capability() const { return gpu_.capability; }

  /// Makes the context current in the calling thread; kDeviceLost where the GPU is lost. Every
  /// entrance of the backend begins with it, because other libraries change the current context.
  Status enter() const;

  /// OK for CUDA_SUCCESS; else what `call` returned as an error: kDeviceLost for sticky errors (the
  /// GPU is marked lost), kOutOfMemory, or kCudaCall.
  Status check(CUresult code, const char* call) const;

  /// OK, or why the GPU is lost.
  Status health() const;
  bool lost() const { return lost_.load(std::memory_order_acquire); }

 private:
  Context(const nvidia::DriverApi& api, nvidia::Gpu gpu, Device device)
      : api_(api), gpu_(std::move(gpu)), device_(device) {}
  Status mark_lost(CUresult code, const char* call) const;
  std::string words(CUresult code) const;

  const nvidia::DriverApi& api_;
  const nvidia::Gpu gpu_;
  const Device device_;
  CUcontext context_ = nullptr;
  mutable std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  mutable Status why_lost_;  // guarded by mutex_
};

/// True for errors after which a CUDA context cannot be used any more.
bool is_sticky(CUresult code);

/// "1.5 GiB", "312 MiB", "17 bytes".
std::string bytes_text(size_t bytes);

/// Returns from the function where a call of the driver fails: TF_CUDA(context, cuMemFree, p).
#define TF_CUDA(context, function, ...) \
  TF_RETURN_IF_ERROR((context).check((context).api().function(__VA_ARGS__), #function))

}  // namespace tracefire::cuda
