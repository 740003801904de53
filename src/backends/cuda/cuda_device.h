// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "backends/api/device_backend.h"
#include "backends/cuda/compiler.h"
#include "backends/cuda/emit/loop_kernels.h"
#include "backends/cuda/graph.h"
#include "backends/cuda/matmul_plans.h"
#include "backends/cuda/pool.h"
#include "backends/cuda/staging.h"

namespace tracefire::cuda {

/// One GPU. Its context, lanes and compiler come into being on first use.
class CudaDevice final : public DeviceBackend {
 public:
  CudaDevice(nvidia::Stack& stack, nvidia::Gpu gpu, Device device);
  ~CudaDevice() override;

  const DeviceInfo& info() const override { return info_; }
  Result<BufferPtr> allocate(size_t bytes, const char* what) override;
  MemoryStats memory() const override;
  void reset_peak() override;
  void release_cached() override;
  bool host_addressable() const override { return false; }
  Result<Stream*> stream(int lane) override;
  Status copy_in(Stream& stream, void* target, const void* source, size_t bytes) override;
  Status copy_out(Stream& stream, void* target, const void* source, size_t bytes) override;
  Status copy(Stream& stream, void* target, const void* source, size_t bytes) override;
  Status fill_zero(Stream& stream, void* target, size_t bytes) override;
  const KernelList& kernels(OpId op) const override;
  Status prepare(std::span<const NodeView> nodes) override;
  bool can_capture() const override { return true; }
  Result<std::unique_ptr<CapturedGraph>> capture(
      Stream& stream, const std::function<Status(Stream&)>& body) override;
  Status health() const override;

  /// For this backend's kernels. Errors: those of the first use of the device.
  Result<std::shared_ptr<const Context>> context();
  Result<const Compiler*> compiler();
  Result<LoopKernels*> loop_kernels();
  /// What loop_kernels() gave before; null where nobody has asked yet, so that no compiler is
  /// opened.
  LoopKernels* made_loop_kernels();
  Result<MatmulPlans*> matmul_plans();
  /// A plan for the problem; with `tune`, large ones are measured, unless work is being recorded.
  Result<std::shared_ptr<const MatmulPlan>> find_matmul(const MatmulProblem& problem, bool tune);
  const nvidia::Gpu& gpu() const { return gpu_; }
  nvidia::Stack& stack() { return stack_; }

 private:
  /// What exists once the device was used. Its parts go in reverse order.
  struct Running {
    std::shared_ptr<const Context> context;
    std::mutex mutex;
    std::map<int, std::unique_ptr<Lane>> lanes;  // guarded by mutex
    std::shared_ptr<Pool> pool;
    std::unique_ptr<Staging> staging;
    std::unique_ptr<Compiler> compiler;         // guarded by mutex
    std::unique_ptr<LoopKernels> loop_kernels;  // guarded by mutex
    std::unique_ptr<MatmulPlans> matmul_plans;  // guarded by mutex
  };
  Result<Running*> running();
  Result<std::unique_ptr<Running>> start();
  static Pool::Token lanes_passed(Running& running);
  /// What a library that was found answered instead of working, with its file and what to do.
  Status with_cure(const Status& failure, nvidia::Library library);

  nvidia::Stack& stack_;
  const nvidia::Gpu gpu_;
  DeviceInfo info_;
  mutable std::mutex mutex_;
  std::optional<Result<std::unique_ptr<Running>>> running_;  // guarded by mutex_
};

}  // namespace tracefire::cuda
