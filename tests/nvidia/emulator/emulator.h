// SPDX-License-Identifier: Apache-2.0
// A stand-in for NVIDIA's libraries, for tests on machines without a GPU. One shared library holds
// the symbols of libcuda, libnvrtc, libcublasLt, libcudnn and libnvidia-ml; tests copy it into
// folders under the names they need. Device memory is host memory, streams run at once, graphs are
// recorded and replayed, and kernels are the real kernel texts, compiled for the host
// (device_prelude.h).
//
// Environment (read at each call):
//   TF_EMU_CUDA       what cuDriverGetVersion says           (13000)
//   TF_EMU_INIT       what cuInit returns                    (0)
//   TF_EMU_GPUS       number of devices                      (1)
//   TF_EMU_CAPABILITY compute capability, 90 for 9.0         (90)
//   TF_EMU_MEMORY     bytes of device memory                 (1 GiB)
//   TF_EMU_FAIL       "cuMemAlloc=2": that function returns the code from now on
//   TF_EMU_NO_SYMBOL  a function that cuGetProcAddress does not know
//   TF_EMU_CUBLASLT_VERSION  what cublasLtGetVersion returns  (13.1.0 in a file named .13)
//   TF_EMU_CUBLASLT_CREATE   what cublasLtCreate returns      (0)
//   TF_EMU_NO_BUILTINS  NVRTC does not find libnvrtc-builtins
//   TF_EMU_CUDNN_CREATE  what cudnnCreate returns             (0)
//   TF_EMU_CUDNN_WRONG   one element of a convolution is wrong
//   TF_EMU_READY_KERNELS  the ready kernels as built for the host  (where they were built)
//   TF_EMU_PRELUDE    device_prelude.h                       (where it was when this was built)
//   TF_EMU_SLOW_FIRST  cuBLASLt's first algorithm takes some milliseconds
#pragma once

#include <cstdint>

extern "C" {
/// Counts since the library was opened, for assertions.
struct TfEmuCounts {
  int64_t launches;  ///< kernels run, replays included
  int64_t graph_launches;
  int64_t allocations;  ///< cuMemAlloc
  int64_t frees;
  int64_t live_bytes;
  int64_t compiles;  ///< nvrtcCompileProgram
  int64_t matmuls;
  int64_t pdl_launches;  ///< kernels launched with programmatic serialization
  int64_t host_allocations;
};
/// Found with dlsym in the copy of the library that is in use.
TfEmuCounts* tf_emu_counts();
}
/// Major version in this library's own file name, libnvrtc.so.12; 13 where it has another name.
int tf_emu_major();
