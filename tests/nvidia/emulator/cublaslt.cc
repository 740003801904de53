// SPDX-License-Identifier: Apache-2.0
// libcublasLt of the emulator: column-major products with the common epilogues, in double.
#include <cublasLt.h>
#include <cuda.h>
#include <dlfcn.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "emulator.h"

extern "C" CUresult tf_emu_enqueue(CUstream, CUresult (*)(void*), void (*)(void*), void*);

namespace {

struct Layout {
  cudaDataType type;
  uint64_t rows, cols;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
  bool row_major = false;
};
struct Desc {
  cublasComputeType_t compute;
  cudaDataType scale;
  int32_t trans_a = CUBLAS_OP_N, trans_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  void* aux = nullptr;
  int64_t aux_ld = 0;
};
struct Preference {
  uint64_t workspace = 0;
};

double load(const void* p, cudaDataType type, int64_t i) {
  switch (type) {
    case CUDA_R_32F:
      return static_cast<const float*>(p)[i];
    case CUDA_R_64F:
      return static_cast<const double*>(p)[i];
    case CUDA_R_16F:
      return static_cast<double>(static_cast<const _Float16*>(p)[i]);
    case CUDA_R_16BF: {
      const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(p)[i]) << 16;
      float value;
      std::memcpy(&value, &bits, 4);
      return value;
    }
    default:
      return NAN;
  }
}
void store(void* p, cudaDataType type, int64_t i, double v) {
  switch (type) {
    case CUDA_R_32F:
      static_cast<float*>(p)[i] = static_cast<float>(v);
      break;
    case CUDA_R_64F:
      static_cast<double*>(p)[i] = v;
      break;
    case CUDA_R_16F:
      static_cast<_Float16*>(p)[i] = static_cast<_Float16>(v);
      break;
    case CUDA_R_16BF: {
      const float f = static_cast<float>(v);
      uint32_t bits;
      std::memcpy(&bits, &f, 4);
      bits += 0x7fff + ((bits >> 16) & 1);
      static_cast<uint16_t*>(p)[i] = static_cast<uint16_t>(bits >> 16);
      break;
    }
    default:
      break;
  }
}
int64_t at(const Layout& l, int64_t batch, int64_t r, int64_t c) {
  return batch * l.stride + (l.row_major ? r * l.ld + c : c * l.ld + r);
}

struct Call {
  bool slow;
  Desc desc;
  Layout a, b, c, d;
  double alpha, beta;
  const void *pa, *pb, *pc;
  void* pd;
};

CUresult run(void* data) {
  const Call& x = *static_cast<Call*>(data);
  if (x.slow) std::this_thread::sleep_for(std::chrono::milliseconds(3));
  const bool ta = x.desc.trans_a != CUBLAS_OP_N;
  const bool tb = x.desc.trans_b != CUBLAS_OP_N;
  const int64_t k = static_cast<int64_t>(ta ? x.a.rows : x.a.cols);
  const bool relu = (x.desc.epilogue & CUBLASLT_EPILOGUE_RELU) == CUBLASLT_EPILOGUE_RELU;
  const bool bias = (x.desc.epilogue & CUBLASLT_EPILOGUE_BIAS) == CUBLASLT_EPILOGUE_BIAS;
  for (int64_t n = 0; n < x.d.batch; ++n) {
    for (int64_t i = 0; i < static_cast<int64_t>(x.d.rows); ++i) {
      for (int64_t j = 0; j < static_cast<int64_t>(x.d.cols); ++j) {
        double sum = 0;
        for (int64_t q = 0; q < k; ++q) {
          sum += load(x.pa, x.a.type, ta ? at(x.a, n, q, i) : at(x.a, n, i, q)) *
                 load(x.pb, x.b.type, tb ? at(x.b, n, j, q) : at(x.b, n, q, j));
        }
        double value = x.alpha * sum;
        if (x.beta != 0) value += x.beta * load(x.pc, x.c.type, at(x.c, n, i, j));
        if (bias) value += load(x.desc.bias, x.d.type, i);
        if (relu && value < 0) value = 0;
        store(x.pd, x.d.type, at(x.d, n, i, j), value);
      }
    }
  }
  ++tf_emu_counts()->matmuls;
  return CUDA_SUCCESS;
}

bool fits(const Desc& d, const Layout& a, const Layout& b, const Layout& c) {
  const bool ta = d.trans_a != CUBLAS_OP_N;
  const bool tb = d.trans_b != CUBLAS_OP_N;
  return (ta ? a.cols : a.rows) == c.rows && (tb ? b.rows : b.cols) == c.cols &&
         (ta ? a.rows : a.cols) == (tb ? b.cols : b.rows) && a.batch == c.batch &&
         b.batch == c.batch;
}

template <class T>
T scalar(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

}  // namespace

extern "C" {
size_t cublasLtGetVersion() {
  const char* const version = std::getenv("TF_EMU_CUBLASLT_VERSION");
  return version != nullptr ? static_cast<size_t>(std::atoi(version))
                            : static_cast<size_t>(tf_emu_major() * 10000 + 100);
}
const char* cublasLtGetStatusString(cublasStatus_t code) {
  switch (code) {
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    default:
      return "CUBLAS_STATUS_ERROR";
  }
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  const char* const code = std::getenv("TF_EMU_CUBLASLT_CREATE");
  if (code != nullptr) return static_cast<cublasStatus_t>(std::atoi(code));
  *handle = reinterpret_cast<cublasLtHandle_t>(new int(1));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  auto* made = new Desc();
  made->compute = compute;
  made->scale = scale;
  *desc = reinterpret_cast<cublasLtMatmulDesc_t>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete reinterpret_cast<Desc*>(desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                              cublasLtMatmulDescAttributes_t which,
                                              const void* value, size_t) {
  auto* desc = reinterpret_cast<Desc*>(handle);
  switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      desc->trans_a = scalar<int32_t>(value);
      break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      desc->trans_b = scalar<int32_t>(value);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      desc->epilogue = static_cast<cublasLtEpilogue_t>(scalar<uint32_t>(value));
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      desc->bias = scalar<const void*>(value);
      break;
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld) {
  if (rows == 0 || cols == 0 || ld <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  auto* made = new Layout();
  made->type = type;
  made->rows = rows;
  made->cols = cols;
  made->ld = ld;
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete reinterpret_cast<Layout*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                cublasLtMatrixLayoutAttribute_t which,
                                                const void* value, size_t) {
  auto* layout = reinterpret_cast<Layout*>(handle);
  switch (which) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      layout->batch = scalar<int32_t>(value);
      break;
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      layout->stride = scalar<int64_t>(value);
      break;
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      layout->row_major = scalar<int32_t>(value) == CUBLASLT_ORDER_ROW;
      break;
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference());
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<Preference*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t which,
                                                    const void* value, size_t) {
  if (which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    reinterpret_cast<Preference*>(preference)->workspace = scalar<uint64_t>(value);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  *found = 0;
  if (!fits(*reinterpret_cast<Desc*>(desc), *reinterpret_cast<Layout*>(a),
            *reinterpret_cast<Layout*>(b), *reinterpret_cast<Layout*>(c))) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  for (int i = 0; i < wanted && i < 2; ++i) {
    std::memset(&results[i], 0, sizeof results[i]);
    results[i].algo.data[0] = static_cast<uint64_t>(i + 1);
    results[i].workspaceSize = static_cast<size_t>(i) * 4096;
    results[i].state = CUBLAS_STATUS_SUCCESS;
    ++*found;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  if (algo->data[0] == 0 || algo->data[0] > 2) return CUBLAS_STATUS_NOT_SUPPORTED;
  result->algo = *algo;
  result->workspaceSize = static_cast<size_t>(algo->data[0] - 1) * 4096;
  result->state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* pa, cublasLtMatrixLayout_t a, const void* pb,
                              cublasLtMatrixLayout_t b, const void* beta, const void* pc,
                              cublasLtMatrixLayout_t c, void* pd, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  if (algo != nullptr && algo->data[0] == 2 && (workspace == nullptr || workspace_bytes < 4096))
    return CUBLAS_STATUS_INVALID_VALUE;
  auto* call =
      new Call{algo != nullptr && algo->data[0] == 1 && std::getenv("TF_EMU_SLOW_FIRST") != nullptr,
               *reinterpret_cast<Desc*>(desc),
               *reinterpret_cast<Layout*>(a),
               *reinterpret_cast<Layout*>(b),
               *reinterpret_cast<Layout*>(c),
               *reinterpret_cast<Layout*>(d),
               0,
               0,
               pa,
               pb,
               pc,
               pd};
  const bool f64 = call->desc.scale == CUDA_R_64F;
  call->alpha = f64 ? scalar<double>(alpha) : scalar<float>(alpha);
  call->beta = f64 ? scalar<double>(beta) : scalar<float>(beta);
  if (!fits(call->desc, call->a, call->b, call->d)) {
    delete call;
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const CUresult code = tf_emu_enqueue(
      reinterpret_cast<CUstream>(stream), run, [](void* p) { delete static_cast<Call*>(p); }, call);
  return code == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
}
