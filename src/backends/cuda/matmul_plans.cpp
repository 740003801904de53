// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/matmul_plans.h"

#include <algorithm>
#include <tuple>

namespace tracefire::cuda {
namespace {

constexpr int kCandidates = 12;
constexpr int kTimedRuns = 5;
constexpr size_t kKeptPlans = 4096;

Status check(const nvidia::CublasLtApi& api, cublasStatus_t code, const char* call) {
  if (code == CUBLAS_STATUS_SUCCESS) return {};
  return error(
      ErrorCode::kCudaCall, call, " failed: ", api.cublasLtGetStatusString(code),
      ". Expected CUBLAS_STATUS_SUCCESS. Please report it with the shapes of the product.");
}
#define TF_CUBLASLT(api, function, ...) \
  TF_RETURN_IF_ERROR(check(api, (api).function(__VA_ARGS__), #function))

cudaDataType data_type(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return CUDA_R_64F;
    case DType::kF16:
      return CUDA_R_16F;
    case DType::kBF16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

cublasComputeType_t compute_type(const MatmulProblem& problem) {
  if (problem.dtype == DType::kF64) return CUBLAS_COMPUTE_64F;
  if (problem.dtype == DType::kF32 && problem.precision == Precision::kTf32) {
    return CUBLAS_COMPUTE_32F_FAST_TF32;
  }
  return CUBLAS_COMPUTE_32F;
}

auto key(const MatmulProblem& p) {
  return std::tie(p.m, p.n, p.k, p.transpose_a, p.transpose_b, p.batch, p.stride_a, p.stride_b,
                  p.stride_c, p.dtype, p.precision, p.alignment, p.workspace_limit);
}

/// A row-major matrix [rows, columns] is the column-major matrix [columns, rows].
Status make_layout(const nvidia::CublasLtApi& api, const MatmulProblem& problem, int64_t rows,
                   int64_t columns, int64_t stride, cublasLtMatrixLayout_t* layout) {
  TF_CUBLASLT(api, cublasLtMatrixLayoutCreate, layout, data_type(problem.dtype),
              static_cast<uint64_t>(columns), static_cast<uint64_t>(rows), columns);
  if (problem.batch == 1) return {};
  const int32_t count = static_cast<int32_t>(problem.batch);
  TF_CUBLASLT(api, cublasLtMatrixLayoutSetAttribute, *layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
              &count, sizeof count);
  TF_CUBLASLT(api, cublasLtMatrixLayoutSetAttribute, *layout,
              CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
  return {};
}

/// Preferences of a search, destroyed on every way out.
class Preferences {
 public:
  explicit Preferences(const nvidia::CublasLtApi& api) : api_(api) {}
  ~Preferences() {
    if (handle_ != nullptr) api_.cublasLtMatmulPreferenceDestroy(handle_);
  }
  Preferences(const Preferences&) = delete;
  Preferences& operator=(const Preferences&) = delete;

  Status make(const MatmulProblem& problem) {
    TF_CUBLASLT(api_, cublasLtMatmulPreferenceCreate, &handle_);
    const uint64_t workspace = problem.workspace_limit;
    TF_CUBLASLT(api_, cublasLtMatmulPreferenceSetAttribute, handle_,
                CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    const uint32_t alignment = static_cast<uint32_t>(problem.alignment);
    for (const auto which :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      TF_CUBLASLT(api_, cublasLtMatmulPreferenceSetAttribute, handle_, which, &alignment,
                  sizeof alignment);
    }
    return {};
  }
  cublasLtMatmulPreference_t handle() const { return handle_; }

 private:
  const nvidia::CublasLtApi& api_;
  cublasLtMatmulPreference_t handle_ = nullptr;
};

}  // namespace

bool operator<(const MatmulProblem& a, const MatmulProblem& b) { return key(a) < key(b); }

MatmulPlan::~MatmulPlan() {
  if (result_ != nullptr) api_.cublasLtMatrixLayoutDestroy(result_);
  if (right_ != nullptr) api_.cublasLtMatrixLayoutDestroy(right_);
  if (left_ != nullptr) api_.cublasLtMatrixLayoutDestroy(left_);
  if (desc_ != nullptr) api_.cublasLtMatmulDescDestroy(desc_);
}

Status MatmulPlan::run(Lane& lane, const void* a, const void* b, void* c, void* workspace) const {
  TF_RETURN_IF_ERROR(lane.context().enter());
  const float one = 1, zero = 0;
  const double one64 = 1, zero64 = 0;
  const void* alpha = f64_ ? static_cast<const void*>(&one64) : &one;
  const void* beta = f64_ ? static_cast<const void*>(&zero64) : &zero;
  TF_CUBLASLT(api_, cublasLtMatmul, handle_, desc_, alpha, b, left_, a, right_, beta, c, result_, c,
              result_, &algo_, workspace, workspace_,
              reinterpret_cast<cudaStream_t>(lane.handle()));
  return {};
}

Result<std::unique_ptr<MatmulPlans>> MatmulPlans::make(const nvidia::CublasLtApi& api,
                                                       std::shared_ptr<const Context> context) {
  TF_RETURN_IF_ERROR(context->enter());
  std::unique_ptr<MatmulPlans> made(new MatmulPlans(api, std::move(context)));
  const cublasStatus_t code = api.cublasLtCreate(&made->handle_);
  if (code == CUBLAS_STATUS_SUCCESS) return made;
  const Context& gpu = *made->context_;
  const char* const words = api.cublasLtGetStatusString(code);
  if (code == CUBLAS_STATUS_ALLOC_FAILED) {
    return error(ErrorCode::kOutOfMemory, "cuBLASLt found no memory to start on ",
                 gpu.device().str(), " (", gpu.gpu().name, "): ", words,
                 ". Expected room for it. End other programs that use this GPU.");
  }
  return error(ErrorCode::kNoGpu, "cuBLASLt was found, but does not start on ", gpu.device().str(),
               " (", gpu.gpu().name, "): cublasLtCreate gave ", words,
               ". Expected a cuBLASLt that works with this driver and GPU.");
}

MatmulPlans::~MatmulPlans() {
  plans_.clear();
  if (handle_ != nullptr && context_->enter().ok()) api_.cublasLtDestroy(handle_);
}

Result<std::shared_ptr<MatmulPlan>> MatmulPlans::build(
    const MatmulProblem& p, std::vector<cublasLtMatmulHeuristicResult_t>* found) {
  std::shared_ptr<MatmulPlan> plan(new MatmulPlan(api_, handle_));
  plan->f64_ = p.dtype == DType::kF64;
  const cudaDataType scale = plan->f64_ ? CUDA_R_64F : CUDA_R_32F;
  TF_CUBLASLT(api_, cublasLtMatmulDescCreate, &plan->desc_, compute_type(p), scale);
  // c' = op(b)' op(a)': the operands change places and keep their transposition.
  const int32_t left = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int32_t right = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  TF_CUBLASLT(api_, cublasLtMatmulDescSetAttribute, plan->desc_, CUBLASLT_MATMUL_DESC_TRANSA, &left,
              sizeof left);
  TF_CUBLASLT(api_, cublasLtMatmulDescSetAttribute, plan->desc_, CUBLASLT_MATMUL_DESC_TRANSB,
              &right, sizeof right);
  TF_RETURN_IF_ERROR(make_layout(api_, p, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n,
                                 p.stride_b, &plan->left_));
  TF_RETURN_IF_ERROR(make_layout(api_, p, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k,
                                 p.stride_a, &plan->right_));
  TF_RETURN_IF_ERROR(make_layout(api_, p, p.m, p.n, p.stride_c, &plan->result_));
  Preferences preferences(api_);
  TF_RETURN_IF_ERROR(preferences.make(p));
  found->resize(kCandidates);
  int count = 0;
  const cublasStatus_t code = api_.cublasLtMatmulAlgoGetHeuristic(
      handle_, plan->desc_, plan->left_, plan->right_, plan->result_, plan->result_,
      preferences.handle(), kCandidates, found->data(), &count);
  found->resize(code == CUBLAS_STATUS_SUCCESS ? static_cast<size_t>(count) : 0);
  const auto unusable = [&p](const cublasLtMatmulHeuristicResult_t& r) {
    return r.state != CUBLAS_STATUS_SUCCESS || r.workspaceSize > p.workspace_limit;
  };
  found->erase(std::remove_if(found->begin(), found->end(), unusable), found->end());
  if (found->empty()) {
    return error(ErrorCode::kNoKernel, "cuBLASLt has no algorithm for a product [", p.batch, ", ",
                 p.m, ", ", p.k, "] x [", p.k, ", ", p.n, "] of ", dtype_name(p.dtype), " (",
                 api_.cublasLtGetStatusString(code), "). Expected one. Please report the shapes.");
  }
  plan->algo_ = found->front().algo;
  plan->workspace_ = found->front().workspaceSize;
  return plan;
}

Result<std::shared_ptr<const MatmulPlan>> MatmulPlans::find(const MatmulProblem& problem,
                                                            std::optional<Tuning> tune) {
  TF_RETURN_IF_ERROR(context_->enter());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto kept = plans_.find(problem);
    if (kept != plans_.end()) return kept->second;
  }
  std::vector<cublasLtMatmulHeuristicResult_t> found;
  TF_ASSIGN(std::shared_ptr<MatmulPlan> plan, build(problem, &found));
  const double work = static_cast<double>(problem.batch) * static_cast<double>(problem.m) *
                      static_cast<double>(problem.n) * static_cast<double>(problem.k);
  if (tune && found.size() > 1 && work >= tune->from) {
    // Without memory for a trial the heuristic's first choice stays.
    const Status tuned = choose_by_time(problem, *tune, found, plan.get());
    if (!tuned.ok() && tuned.code() != ErrorCode::kOutOfMemory) return tuned;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (plans_.size() >= kKeptPlans) plans_.clear();  // plans in use live on with their users
  return plans_.emplace(problem, std::move(plan)).first->second;
}

Status MatmulPlans::choose_by_time(const MatmulProblem& p, Tuning tune,
                                   const std::vector<cublasLtMatmulHeuristicResult_t>& found,
                                   MatmulPlan* plan) {
  const size_t size = dtype_size(p.dtype);
  const auto bytes = [&](int64_t rows, int64_t columns, int64_t stride) {
    return size * static_cast<size_t>(stride * (p.batch - 1) + rows * columns);
  };
  constexpr char kWhat[] = "trial of matrix products";
  TF_ASSIGN(const BufferPtr a, tune.pool.allocate(bytes(p.m, p.k, p.stride_a), kWhat));
  TF_ASSIGN(const BufferPtr b, tune.pool.allocate(bytes(p.k, p.n, p.stride_b), kWhat));
  TF_ASSIGN(const BufferPtr c, tune.pool.allocate(bytes(p.m, p.n, p.stride_c), kWhat));
  TF_ASSIGN(const BufferPtr workspace, tune.pool.allocate(p.workspace_limit, kWhat));
  TF_ASSIGN(const std::unique_ptr<Event> start, Event::make(context_, true));
  TF_ASSIGN(const std::unique_ptr<Event> end, Event::make(context_, true));
  // Zeros everywhere but for a pattern that keeps the arithmetic units busy: f32 1.00…, bf16 1.0.
  for (const BufferPtr& operand : {a, b}) {
    TF_CUDA(*context_, cuMemsetD32Async, reinterpret_cast<CUdeviceptr>(operand->data()), 0x3f803f80,
            operand->bytes() / 4, tune.lane.handle());
  }
  float best = 0;
  MatmulPlan best_plan(api_, handle_);  // holds algorithm and workspace only
  bool any = false;
  for (const cublasLtMatmulHeuristicResult_t& candidate : found) {
    plan->algo_ = candidate.algo;
    plan->workspace_ = candidate.workspaceSize;
    // The first run loads the kernel. A candidate that cannot run is no error: others can.
    if (!plan->run(tune.lane, a->data(), b->data(), c->data(), workspace->data()).ok()) continue;
    TF_RETURN_IF_ERROR(start->record(tune.lane.handle()));
    for (int i = 0; i < kTimedRuns; ++i) {
      TF_RETURN_IF_ERROR(plan->run(tune.lane, a->data(), b->data(), c->data(), workspace->data()));
    }
    TF_RETURN_IF_ERROR(end->record(tune.lane.handle()));
    TF_RETURN_IF_ERROR(end->synchronize());
    TF_ASSIGN(const float time, end->since(*start));
    if (!any || time < best) {
      any = true;
      best = time;
      best_plan.algo_ = candidate.algo;
      best_plan.workspace_ = candidate.workspaceSize;
    }
  }
  if (!any)
    best_plan.algo_ = found.front().algo, best_plan.workspace_ = found.front().workspaceSize;
  plan->algo_ = best_plan.algo_;
  plan->workspace_ = best_plan.workspace_;
  return {};
}

}  // namespace tracefire::cuda
