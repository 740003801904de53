// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nvrtc.h>

#include "backends/nvidia/search.h"
#include "core/base/status.h"

/// Functions of the run-time compiler; the same in NVRTC 12 and 13.
#define TRACEFIRE_NVRTC_FUNCTIONS(X) \
  X(nvrtcVersion)                    \
  X(nvrtcGetErrorString)             \
  X(nvrtcGetNumSupportedArchs)       \
  X(nvrtcGetSupportedArchs)          \
  X(nvrtcCreateProgram)              \
  X(nvrtcDestroyProgram)             \
  X(nvrtcCompileProgram)             \
  X(nvrtcGetPTXSize)                 \
  X(nvrtcGetPTX)                     \
  X(nvrtcGetCUBINSize)               \
  X(nvrtcGetCUBIN)                   \
  X(nvrtcGetProgramLogSize)          \
  X(nvrtcGetProgramLog)

namespace tracefire::nvidia {

/// NVRTC's functions. Complete, or not made at all.
struct NvrtcApi {
#define TRACEFIRE_DECLARE(name) decltype(&::name) name = nullptr;
  TRACEFIRE_NVRTC_FUNCTIONS(TRACEFIRE_DECLARE)
#undef TRACEFIRE_DECLARE
};

/// Errors: kCudaCall where a function is missing.
Result<NvrtcApi> load_nvrtc_api(const OpenLibrary& nvrtc);

}  // namespace tracefire::nvidia
