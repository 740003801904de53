// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/nvidia/cublaslt_api.h"
#include "backends/nvidia/driver_api.h"
#include "backends/nvidia/machine.h"
#include "backends/nvidia/nvml_api.h"
#include "backends/nvidia/nvrtc_api.h"
#include "backends/nvidia/search.h"

namespace tracefire::nvidia {

/// One GPU as the driver shows it. Asking for it makes no context and costs no GPU memory.
struct Gpu {
  int index = 0;       ///< the driver's number, after CUDA_VISIBLE_DEVICES
  std::string name;    ///< "NVIDIA H200"
  int capability = 0;  ///< 90 for compute capability 9.0
  size_t memory_bytes = 0;
  std::string uuid;  ///< "GPU-…", as nvidia-smi prints it
  std::string pci;   ///< "0000:01:00.0"
  int multiprocessors = 0;
  int clock_khz = 0;
  int l2_bytes = 0;
  int shared_bytes_per_block = 0;  ///< the most that a kernel may ask for
  std::string refusal;             ///< why this GPU is not used; empty where it is

  /// "sm_90".
  std::string architecture() const { return "sm_" + std::to_string(capability); }
  /// Float32 operations a second at the highest clock, a fused multiply-add counted as two, without
  /// tensor cores. Volta, Turing and A100 have 64 units a multiprocessor, all others 128.
  double peak_flops_f32() const {
    return 2e3 * clock_khz * multiprocessors * (capability <= 80 ? 64 : 128);
  }
};

/// The GPUs of this process, or why there is none.
struct Inventory {
  std::string driver_version;  ///< "580.159.04"; empty where unknown
  int cuda_version = 0;        ///< newest CUDA that the driver supports: 13000
  std::vector<Gpu> gpus;
  std::optional<NoGpuReason> problem;  ///< set where no GPU can be used

  bool usable() const { return !problem.has_value(); }
  Status status() const;  ///< kNoGpu or kDriverTooOld with reason and cure where not usable
};

/// Oldest compute capability that our kernels run on (Volta).
inline constexpr int kOldestCapability = 70;

/// NVIDIA's software as this process uses it: opened on first use, kept for the process's life.
/// Every answer is computed once; an error is repeated, not tried again. Thread-safe.
class Stack {
 public:
  /// `root` is for tests: it goes before the paths of the operating system's files.
  explicit Stack(SearchOptions options, std::string root = "");
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  /// The stack of this process, with SearchOptions::from_environment().
  static Stack& instance();

  const Inventory& inventory();
  /// The driver, initialised. Errors: what inventory().status() says.
  Result<const DriverApi*> driver();
  /// NVML, initialised.
  Result<const NvmlApi*> nvml();

  /// 13 or 12: the newest CUDA that driver, GPUs and installed libraries agree on; what another
  /// framework already loaded into this process wins. Errors: those of driver(), kLibraryNotFound,
  /// kLibraryWrongVersion, kDriverTooOld.
  Result<int> cuda_major();
  Result<const NvrtcApi*> nvrtc();
  Result<const CublasLtApi*> cublaslt();
  /// Any library of the chosen CUDA major, opened.
  Result<OpenLibrary> library(Library library);

  /// Every place searched so far, one a line, and what was chosen.
  std::string report();
  Search& search() { return search_; }

 private:
  void start_driver();                                  // requires mutex_
  void list_gpus(const DriverApi& api);                 // requires mutex_
  bool mig_without_instance();                          // requires mutex_
  Result<const NvmlApi*> nvml_locked();                 // requires mutex_
  Result<int> major_locked();                           // requires mutex_
  Result<OpenLibrary> library_locked(Library library);  // requires mutex_

  Search search_;
  const std::string root_;
  std::recursive_mutex mutex_;
  std::optional<Inventory> inventory_;
  std::optional<DriverApi> driver_;
  std::optional<Result<NvmlApi>> nvml_;
  std::optional<Result<int>> major_;
  std::optional<Result<NvrtcApi>> nvrtc_;
  std::optional<Result<CublasLtApi>> cublaslt_;
  std::map<Library, Result<OpenLibrary>> libraries_;
};

/// CUDA majors that a driver and the oldest GPU in use allow, newest first; empty if none.
/// CUDA 13 needs driver 580 and Turing, CUDA 12 needs driver 525.
std::vector<int> allowed_majors(int driver_cuda_version, int oldest_capability);

}  // namespace tracefire::nvidia
