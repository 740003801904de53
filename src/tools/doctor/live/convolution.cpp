// SPDX-License-Identifier: Apache-2.0
//
// A convolution by cuDNN, checked against the CPU.
#include <dlfcn.h>

#include <cmath>
#include <cstdio>

#include "tools/doctor/live/trial.h"

namespace tracefire::doctor {

namespace {

// The part of cuDNN's interface that is used, the same from cuDNN 7 to 9; its header is not needed
// to build.
using Handle = void*;
using Descriptor = void*;
struct Cudnn {
  int (*cudnnCreate)(Handle*);
  int (*cudnnSetStream)(Handle, CUstream);
  const char* (*cudnnGetErrorString)(int);
  int (*cudnnCreateTensorDescriptor)(Descriptor*);
  int (*cudnnSetTensor4dDescriptor)(Descriptor, int format, int type, int n, int c, int h, int w);
  int (*cudnnCreateFilterDescriptor)(Descriptor*);
  int (*cudnnSetFilter4dDescriptor)(Descriptor, int type, int format, int k, int c, int h, int w);
  int (*cudnnCreateConvolutionDescriptor)(Descriptor*);
  int (*cudnnSetConvolution2dDescriptor)(Descriptor, int pad_h, int pad_w, int u, int v,
                                         int dilation_h, int dilation_w, int mode, int type);
  int (*cudnnConvolutionForward)(Handle, const void* alpha, Descriptor x, const void* x_data,
                                 Descriptor w, const void* w_data, Descriptor convolution,
                                 int algorithm, void* space, size_t space_bytes, const void* beta,
                                 Descriptor y, void* y_data);
};
constexpr int kFloat = 0, kNchw = 0, kCrossCorrelation = 1, kImplicitGemm = 0;

template <class F>
void load(const nvidia::OpenLibrary& library, const char* name, F* function) {
  *function = reinterpret_cast<F>(library.symbol(name));
  if (*function == nullptr) throw TrialSkipped(std::string("cuDNN has no ") + name);
}

Cudnn load_cudnn(const nvidia::OpenLibrary& library) {
  Cudnn api{};
#define TRACEFIRE_LOAD(name) load(library, #name, &api.name)
  TRACEFIRE_LOAD(cudnnCreate);
  TRACEFIRE_LOAD(cudnnSetStream);
  TRACEFIRE_LOAD(cudnnGetErrorString);
  TRACEFIRE_LOAD(cudnnCreateTensorDescriptor);
  TRACEFIRE_LOAD(cudnnSetTensor4dDescriptor);
  TRACEFIRE_LOAD(cudnnCreateFilterDescriptor);
  TRACEFIRE_LOAD(cudnnSetFilter4dDescriptor);
  TRACEFIRE_LOAD(cudnnCreateConvolutionDescriptor);
  TRACEFIRE_LOAD(cudnnSetConvolution2dDescriptor);
  TRACEFIRE_LOAD(cudnnConvolutionForward);
#undef TRACEFIRE_LOAD
  return api;
}

}  // namespace

std::string try_convolution(GpuTrial& gpu) {
  Result<nvidia::OpenLibrary> library = gpu.stack->library(nvidia::Library::kCudnn);
  if (!library.ok()) throw TrialSkipped("cuDNN was not found");
  Cudnn api = load_cudnn(*library);
  auto check = [&](int code, const char* what) {
    if (code != 0)
      throw std::runtime_error(std::string(what) + " failed: " + api.cudnnGetErrorString(code));
  };
  constexpr int c = 4, h = 12, w = 12, k = 8, r = 3;
  std::vector<float> x = trial_numbers(c * h * w, 11), f = trial_numbers(k * c * r * r, 13),
                     y(k * h * w);
  CUdeviceptr dx = gpu.allocate(x.size() * 4), df = gpu.allocate(f.size() * 4),
              dy = gpu.allocate(y.size() * 4);
  gpu.upload(dx, x.data(), x.size() * 4);
  gpu.upload(df, f.data(), f.size() * 4);
  Handle handle = nullptr;
  Descriptor in = nullptr, out = nullptr, filter = nullptr, convolution = nullptr;
  check(api.cudnnCreate(&handle), "cudnnCreate");
  check(api.cudnnSetStream(handle, gpu.stream), "cudnnSetStream");
  check(api.cudnnCreateTensorDescriptor(&in), "cudnnCreateTensorDescriptor");
  check(api.cudnnCreateTensorDescriptor(&out), "cudnnCreateTensorDescriptor");
  check(api.cudnnCreateFilterDescriptor(&filter), "cudnnCreateFilterDescriptor");
  check(api.cudnnCreateConvolutionDescriptor(&convolution), "cudnnCreateConvolutionDescriptor");
  check(api.cudnnSetTensor4dDescriptor(in, kNchw, kFloat, 1, c, h, w),
        "cudnnSetTensor4dDescriptor");
  check(api.cudnnSetTensor4dDescriptor(out, kNchw, kFloat, 1, k, h, w),
        "cudnnSetTensor4dDescriptor");
  check(api.cudnnSetFilter4dDescriptor(filter, kFloat, kNchw, k, c, r, r),
        "cudnnSetFilter4dDescriptor");
  check(
      api.cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, kCrossCorrelation, kFloat),
      "cudnnSetConvolution2dDescriptor");
  float one = 1, zero = 0;
  auto pointer = [](CUdeviceptr address) {
    return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
  };
  check(api.cudnnConvolutionForward(handle, &one, in, pointer(dx), filter, pointer(df), convolution,
                                    kImplicitGemm, nullptr, 0, &zero, out, pointer(dy)),
        "cudnnConvolutionForward");
  gpu.download(y.data(), dy, y.size() * 4);
  double worst = 0;
  for (int o = 0; o < k; ++o)
    for (int i = 0; i < h; ++i)
      for (int j = 0; j < w; ++j) {
        double sum = 0;
        for (int q = 0; q < c; ++q)
          for (int u = 0; u < r; ++u)
            for (int v = 0; v < r; ++v) {
              int row = i + u - 1, column = j + v - 1;
              if (row >= 0 && row < h && column >= 0 && column < w)
                sum += static_cast<double>(x[(q * h + row) * w + column]) *
                       f[((o * c + q) * r + u) * r + v];
            }
        worst = std::max(worst, std::fabs(sum - y[(o * h + i) * w + j]));
      }
  char text[64];
  std::snprintf(text, sizeof text, "%.3g", worst);
  if (!(worst < 1e-2))
    throw std::runtime_error(std::string("a cuDNN convolution differs from the CPU's by ") + text);
  return std::string("a convolution agrees with the CPU (largest difference ") + text + ")";
}

}  // namespace tracefire::doctor
