// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>

#include "backends/nvidia/search.h"
#include "core/base/status.h"

/// Functions of cuBLASLt; the same in 12 and 13.
#define TRACEFIRE_CUBLASLT_FUNCTIONS(X)   \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtGetVersion)                   \
  X(cublasLtGetStatusString)              \
  X(cublasLtMatmul)                       \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)     \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmulAlgoCheck)

namespace tracefire::nvidia {

/// cuBLASLt's functions. Complete, or not made at all.
struct CublasLtApi {
#define TRACEFIRE_DECLARE(name) decltype(&::name) name = nullptr;
  TRACEFIRE_CUBLASLT_FUNCTIONS(TRACEFIRE_DECLARE)
#undef TRACEFIRE_DECLARE
};

/// Errors: kCudaCall where a function is missing.
Result<CublasLtApi> load_cublaslt_api(const OpenLibrary& cublaslt);

}  // namespace tracefire::nvidia
