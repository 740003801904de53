// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/compiler.h"
#include "backends/cuda/emit/loop_source.h"

namespace tracefire::cuda {

/// A loop's kernel, ready to be launched.
struct LoopKernel {
  Function function;
  std::vector<int> index_axes;
  bool reports = false;
};

/// Kernels of loops on one device, compiled once each. Thread-safe.
class LoopKernels {
 public:
  struct Wanted {
    const LoopProgram* program;
    LoopVariant variant;
  };

  LoopKernels(std::shared_ptr<const Context> context, const Compiler& compiler)
      : context_(std::move(context)), compiler_(compiler) {}

  /// Compiles what is missing, many kernels in one piece, and returns when all are there.
  Status prepare(const std::vector<Wanted>& wanted);
  /// True where the kernel is there or being compiled.
  bool has(const LoopProgram& program, const LoopVariant& variant);
  /// The kernel; compiles it where prepare() did not.
  Result<LoopKernel> find(const LoopProgram& program, const LoopVariant& variant);

 private:
  using Answer = Result<LoopKernel>;
  struct Job {
    LoopSource source;
    std::promise<Answer> promise;
  };
  void compile(std::vector<Job> jobs) const;

  const std::shared_ptr<const Context> context_;
  const Compiler& compiler_;
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Answer>> kernels_;  // guarded by mutex_
};

}  // namespace tracefire::cuda
