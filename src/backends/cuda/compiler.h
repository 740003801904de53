// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/context.h"
#include "backends/cuda/disk_cache.h"
#include "backends/cuda/stream.h"

namespace tracefire::cuda {

/// Code for a GPU: a cubin, or PTX that the driver still has to translate.
struct Image {
  std::string bytes;
  int architecture = 0;  ///< 90 for sm_90 or compute_90
};

/// Compiles CUDA C++ text with NVRTC. Thread-safe; several threads may compile at once.
class Compiler {
 public:
  /// Chooses the target: a cubin for the GPU's own architecture where NVRTC knows it, else PTX for
  /// the newest architecture it knows that is older (a GPU newer than NVRTC).
  /// Errors: kCudaCall, kLibraryWrongVersion where NVRTC knows no architecture that old.
  static Result<std::unique_ptr<Compiler>> make(const nvidia::NvrtcApi& api, int capability,
                                                DiskCache cache);

  /// `name` is for messages. Equal source and options come from the disk cache.
  /// Errors: kKernelCompile with the compiler's log.
  Result<Image> compile(const std::string& name, const std::string& source,
                        const std::vector<std::string>& options = {}) const;

  /// "sm_90", or "compute_90" where PTX is made.
  const std::string& target() const { return target_; }
  const std::string& version() const { return version_; }  ///< "13.0"

 private:
  Compiler(const nvidia::NvrtcApi& api, DiskCache cache) : api_(api), cache_(std::move(cache)) {}
  Result<std::string> run(const std::string& name, const std::string& source,
                          const std::vector<std::string>& options) const;

  const nvidia::NvrtcApi& api_;
  const DiskCache cache_;
  std::string target_;
  std::string version_;
  int architecture_ = 0;
  bool cubin_ = true;
};

/// A kernel that can be launched.
struct Function {
  CUfunction handle = nullptr;
  std::shared_ptr<const class Module> module;  ///< holds the code
  /// The code begins with griddepcontrol.wait, so it may start before its predecessor has ended.
  /// Without the wait such a launch gives wrong results.
  bool waits = false;
  std::string name;
  explicit operator bool() const { return handle != nullptr; }
};

/// A loaded image. Its kernels are named with extern "C".
class Module : public std::enable_shared_from_this<Module> {
 public:
  /// `waits`: every kernel of the source begins with TF_WAIT (common.cuh), which takes effect from
  /// architecture 90 on.
  static Result<std::shared_ptr<Module>> load(std::shared_ptr<const Context> context,
                                              const Image& image, bool waits);
  ~Module();
  Result<Function> function(const std::string& name) const;

 private:
  explicit Module(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  const std::shared_ptr<const Context> context_;
  CUmodule module_ = nullptr;
  bool waits_ = false;
};

struct LaunchShape {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;  ///< dynamic
};

/// Enqueues a kernel; `arguments[i]` points to the value of parameter i, which is copied.
Status launch(Lane& lane, const Function& function, const LaunchShape& shape, void** arguments);

/// launch() for arguments that are at hand, of exactly the parameters' types.
template <class... Arguments>
Status launch_with(Lane& lane, const Function& function, const LaunchShape& shape,
                   Arguments... arguments) {
  void* pointers[] = {static_cast<void*>(&arguments)...};
  return launch(lane, function, shape, pointers);
}

}  // namespace tracefire::cuda
