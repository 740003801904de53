// SPDX-License-Identifier: Apache-2.0
//
// What the trial computations share.
#pragma once

#include <cuda.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "backends/nvidia/stack.h"
#include "tools/doctor/live/live.h"

namespace tracefire::doctor {

/// A trial that cannot be made here, and why.
struct TrialSkipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The first GPU, with a context and a stream. Lives in a child process and frees nothing: the
/// process ends. Throws std::runtime_error with the driver's words.
struct GpuTrial {
  explicit GpuTrial(nvidia::Stack* the_stack);
  nvidia::Stack* stack;
  nvidia::DriverApi api;
  CUcontext context = nullptr;
  CUstream stream = nullptr;

  void check(int code, const char* what);
  CUdeviceptr allocate(size_t bytes);
  void upload(CUdeviceptr to, const void* from, size_t bytes);
  void download(void* to, CUdeviceptr from, size_t bytes);
  void wait();
};

/// Numbers in [-0.5, 0.5), the same for the same seed.
std::vector<float> trial_numbers(size_t count, unsigned seed);

std::string try_convolution(GpuTrial& gpu);
/// A product of 5000x5000 in each framework of the environments, with its device and rate.
void try_frameworks(const Root& root, const Survey& survey, const std::string& framework,
                    LiveResults* out);

}  // namespace tracefire::doctor
