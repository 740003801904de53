// SPDX-License-Identifier: Apache-2.0
//
// The ready kernels: src/backends/cuda/kernels/*.cu as compiled while building
// (cmake/Kernels.cmake).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tracefire::cuda {

/// One file of ready kernels, compiled for one target.
struct ReadyImage {
  std::string_view file;                      ///< "movement.cu"
  int capability;                             ///< 90 for sm_90 and compute_90
  bool is_ptx;                                ///< PTX text with a zero at the end; else a cubin
  std::string_view nvrtc;                     ///< version that made it, "12.0"
  std::span<const std::string_view> kernels;  ///< names of its `extern "C" __global__` functions
  std::span<const unsigned char> data;        ///< what cuModuleLoadData takes
};

/// Every file for every target. A cubin runs on GPUs of its own major capability with the same or a
/// higher minor; PTX on every GPU of its capability or a higher one, if the driver knows its
/// version.
std::span<const ReadyImage> ready_images();
/// The same of loops of a single operation (cmake/ReadyLoops.cmake).
std::span<const ReadyImage> ready_loop_images();

}  // namespace tracefire::cuda
