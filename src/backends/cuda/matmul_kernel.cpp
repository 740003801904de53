// SPDX-License-Identifier: Apache-2.0
// Matrix products by cuBLASLt.

#include <algorithm>
#include <mutex>

#include "backends/cuda/kernel_table.h"

namespace tracefire::cuda {
namespace {

Answer accept_matmul(const NodeView& node) {
  switch (node.inputs[0].dtype) {
    case DType::kF32:
    case DType::kF64:
    case DType::kF16:
    case DType::kBF16:
      return Answer::yes();
    default:
      return Answer::no("cublaslt: products of " + std::string(dtype_name(node.inputs[0].dtype)) +
                        " are not supported");
  }
}

/// An axis of the batch, with the steps it takes through the operands, in matrices' elements.
struct BatchAxis {
  int64_t size, a, b, c;
};

/// The batch's axes, outermost first, where both operands can be walked by one stride merged.
std::vector<BatchAxis> batch_axes(const std::vector<int64_t>& a, const std::vector<int64_t>& b,
                                  const std::vector<int64_t>& c) {
  const auto strides = [&c](const std::vector<int64_t>& sizes) {
    // Row-major strides of an operand over the axes of the result, 0 where it is repeated.
    std::vector<int64_t> result(c.size() - 2, 0);
    int64_t stride = sizes[sizes.size() - 1] * sizes[sizes.size() - 2];
    for (size_t i = sizes.size() - 2; i-- > 0;) {
      if (sizes[i] != 1) result[c.size() - sizes.size() + i] = stride;
      stride *= sizes[i];
    }
    return result;
  };
  const std::vector<int64_t> sa = strides(a), sb = strides(b), sc = strides(c);
  std::vector<BatchAxis> axes;
  for (size_t i = 0; i + 2 < c.size(); ++i) {
    if (c[i] == 1) continue;
    if (!axes.empty() && axes.back().a == sa[i] * c[i] && axes.back().b == sb[i] * c[i]) {
      axes.back() = {axes.back().size * c[i], sa[i], sb[i], sc[i]};
    } else {
      axes.push_back({c[i], sa[i], sb[i], sc[i]});
    }
  }
  return axes;
}

/// Largest power of two, up to 256, that divides all addresses.
int alignment_of(std::initializer_list<const void*> pointers) {
  uintptr_t bits = 256;
  for (const void* pointer : pointers) bits |= reinterpret_cast<uintptr_t>(pointer);
  return static_cast<int>(bits & (~bits + 1));
}

/// Plans for the alignments that turned up at run time; arenas align to 256, views may not.
class PlansByAlignment {
 public:
  PlansByAlignment(MatmulPlans* plans, MatmulProblem problem,
                   std::shared_ptr<const MatmulPlan> aligned)
      : plans_(plans), problem_(problem), aligned_(std::move(aligned)) {
    problem_.workspace_limit = aligned_->workspace_bytes();
  }
  Result<std::shared_ptr<const MatmulPlan>> find(int alignment) const {
    if (alignment >= 256) return aligned_;
    MatmulProblem problem = problem_;
    problem.alignment = alignment;
    return plans_->find(problem, std::nullopt);
  }

 private:
  MatmulPlans* plans_;
  MatmulProblem problem_;
  std::shared_ptr<const MatmulPlan> aligned_;
};

struct MatmulLaunch {
  PlansByAlignment plans;
  std::vector<BatchAxis> outer;  ///< axes that need a call of their own for each index
  int64_t element = 4;           ///< bytes

  Status operator()(const LaunchArgs& args) const {
    Lane& lane = lane_of(args.stream);
    std::vector<int64_t> index(outer.size(), 0);
    const auto* a = static_cast<const char*>(args.inputs[0]);
    const auto* b = static_cast<const char*>(args.inputs[1]);
    auto* c = static_cast<char*>(args.outputs[0]);
    while (true) {
      TF_ASSIGN(const std::shared_ptr<const MatmulPlan> plan, plans.find(alignment_of({a, b, c})));
      TF_RETURN_IF_ERROR(plan->run(lane, a, b, c, args.workspace));
      size_t axis = outer.size();
      for (; axis-- > 0;) {
        const BatchAxis& o = outer[axis];
        a += o.a * element;
        b += o.b * element;
        c += o.c * element;
        if (++index[axis] < o.size) break;
        a -= o.size * o.a * element;
        b -= o.size * o.b * element;
        c -= o.size * o.c * element;
        index[axis] = 0;
      }
      if (axis == static_cast<size_t>(-1)) return {};
    }
  }
};

BoundLaunch bind_matmul(const NodeView& node, CudaDevice& device) {
  const std::vector<int64_t> a = node.inputs[0].shape.sizes(), b = node.inputs[1].shape.sizes();
  const std::vector<int64_t> c = node.outputs[0].shape.sizes();
  const Attrs& attrs = node.node->attrs;
  MatmulProblem p;
  p.transpose_a = attrs.flag("transpose_a");
  p.transpose_b = attrs.flag("transpose_b");
  p.m = c[c.size() - 2];
  p.n = c[c.size() - 1];
  p.k = a[a.size() - (p.transpose_a ? 2 : 1)];
  p.dtype = node.inputs[0].dtype;
  p.precision = attrs.text("precision") == "highest" ? Precision::kHighest : node.precision;
  const size_t bytes = static_cast<size_t>(product(c, 0, c.size())) * dtype_size(p.dtype);
  if (bytes == 0) {
    return make_launch({}, [](const LaunchArgs&) { return Status(); });
  }
  if (p.k == 0) {
    return make_launch({"memset"}, [bytes, &device](const LaunchArgs& args) {
      return device.fill_zero(args.stream, args.outputs[0], bytes);
    });
  }
  std::vector<BatchAxis> axes = batch_axes(a, b, c);
  if (!axes.empty()) {
    const BatchAxis inner = axes.back();
    axes.pop_back();
    if (inner.b == 0 && inner.a == p.m * p.k && !p.transpose_a) {
      p.m *= inner.size;  // the same b for all: one taller product
    } else {
      p.batch = inner.size;
      p.stride_a = inner.a;
      p.stride_b = inner.b;
      p.stride_c = inner.c;
    }
  }
  TF_ASSIGN(MatmulPlans* const plans, device.matmul_plans());
  TF_ASSIGN(const std::shared_ptr<const MatmulPlan> plan,
            device.find_matmul(p, !node.deterministic));
  const int64_t element = static_cast<int64_t>(dtype_size(p.dtype));
  return make_launch({"cublasLtMatmul"},
                     MatmulLaunch{PlansByAlignment(plans, p, plan), std::move(axes), element},
                     plan->workspace_bytes());
}

}  // namespace

std::vector<KernelSpec> matmul_kernels() {
  return {
      {"matmul", "cublaslt_matmul", accept_matmul, bind_matmul, false, "cuBLASLt"}};
}

}  // namespace tracefire::cuda
