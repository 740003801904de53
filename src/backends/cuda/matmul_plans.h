// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/kernel.h"
#include "backends/cuda/pool.h"
#include "backends/cuda/stream.h"

namespace tracefire::cuda {

/// A row-major product c = op(a) op(b), batched: c [batch, m, n]. A batch stride of 0 repeats the
/// operand. Strides are in elements.
struct MatmulProblem {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false;  ///< a is stored [k, m]
  bool transpose_b = false;  ///< b is stored [n, k]
  int64_t batch = 1;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  DType dtype = DType::kF32;
  Precision precision = Precision::kTf32;  ///< of f32 only
  int alignment = 256;                     ///< bytes that all three addresses are multiples of
  size_t workspace_limit = size_t{32} << 20;

  friend bool operator<(const MatmulProblem& a, const MatmulProblem& b);
};

/// A way to compute a problem: cuBLASLt's descriptors and the algorithm chosen for it.
class MatmulPlan {
 public:
  ~MatmulPlan();
  size_t workspace_bytes() const { return workspace_; }
  Status run(Lane& lane, const void* a, const void* b, void* c, void* workspace) const;

 private:
  friend class MatmulPlans;
  MatmulPlan(const nvidia::CublasLtApi& api, cublasLtHandle_t handle)
      : api_(api), handle_(handle) {}

  const nvidia::CublasLtApi& api_;
  const cublasLtHandle_t handle_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t left_ = nullptr;   // b, since cuBLASLt sees the transposed problem
  cublasLtMatrixLayout_t right_ = nullptr;  // a
  cublasLtMatrixLayout_t result_ = nullptr;
  cublasLtMatmulAlgo_t algo_{};
  size_t workspace_ = 0;
  bool f64_ = false;
};

/// Plans of one device, kept by problem. Thread-safe.
class MatmulPlans {
 public:
  static Result<std::unique_ptr<MatmulPlans>> make(const nvidia::CublasLtApi& api,
                                                   std::shared_ptr<const Context> context);
  ~MatmulPlans();

  /// Where candidates are timed.
  struct Tuning {
    Pool& pool;  ///< of the operands of the trial
    Lane& lane;
    double from = 5e8;  ///< multiplications from which on a problem is worth measuring
  };
  /// Times the heuristic's candidates where `tune` is given and the problem is large, else takes
  /// the first. Errors: kNoKernel where cuBLASLt has none.
  Result<std::shared_ptr<const MatmulPlan>> find(const MatmulProblem& problem,
                                                 std::optional<Tuning> tune);

 private:
  MatmulPlans(const nvidia::CublasLtApi& api, std::shared_ptr<const Context> context)
      : api_(api), context_(std::move(context)) {}
  Result<std::shared_ptr<MatmulPlan>> build(const MatmulProblem& problem,
                                            std::vector<cublasLtMatmulHeuristicResult_t>* found);
  Status choose_by_time(const MatmulProblem& problem, Tuning tune,
                        const std::vector<cublasLtMatmulHeuristicResult_t>& found,
                        MatmulPlan* plan);

  const nvidia::CublasLtApi& api_;
  const std::shared_ptr<const Context> context_;
  cublasLtHandle_t handle_ = nullptr;
  std::mutex mutex_;
  std::map<MatmulProblem, std::shared_ptr<const MatmulPlan>> plans_;
};

}  // namespace tracefire::cuda
