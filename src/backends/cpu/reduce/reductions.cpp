// SPDX-License-Identifier: Apache-2.0
// The reduction family but top_k: sums and extremes over axes, places of extremes, running sums
// and products.

#include <algorithm>
#include <vector>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/move/numbers.h"
#include "backends/cpu/reduce/arg_extreme.h"
#include "backends/cpu/reduce/reduction.h"

namespace tracefire::cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;

template <ReduceOp op, bool mean>
BoundLaunch bind_reduce(const NodeView& node) {
  const Reduction reduction(op, mean, node.inputs[0].dtype, sizes_of(node.inputs[0]),
                            node.node->attrs.ints("axes"));
  const auto run = [reduction](const LaunchArgs& args) -> Status {
    reduction.run(args.outputs[0], args.inputs[0], args.workspace);
    return {};
  };
  return make_launch("cpu_reduce", run, reduction.workspace_bytes());
}

/// Calls fn(T()) with the type that elements of `dtype` are compared as; bool as its byte.
template <class Fn>
void with_ordered(DType dtype, Fn&& fn) {
  if (dtype == DType::kBool) return fn(uint8_t());
  with_real(dtype, fn);
}

/// Indices of extremes of `columns` neighbouring columns, row by row.
template <bool largest, class T>
void arg_columns(const T* x, const AxisView& view, int64_t columns, int64_t* best_at) {
  constexpr int64_t kMost = 256;
  Computed<T> best[kMost];
  for (int64_t j = 0; j < columns; ++j) {
    best[j] = number(x[j]);
    best_at[j] = 0;
  }
  for (int64_t r = 1; r < view.size; ++r) {
    const T* row = x + r * view.inner;
    for (int64_t j = 0; j < columns; ++j) {
      const Computed<T> value = number(row[j]);
      const bool better =
          largest ? greater_nan_first(value, best[j]) : less_nan_first(value, best[j]);
      if (better) {
        best[j] = value;
        best_at[j] = r;
      }
    }
  }
}

template <bool largest>
BoundLaunch bind_arg(const NodeView& node) {
  const AxisView view = view_at(sizes_of(node.inputs[0]), axis_of(node));
  const DType dtype = node.inputs[0].dtype, index = node.outputs[0].dtype;
  if (view.size == 0 && view.outer * view.inner > 0) {
    return error(ErrorCode::kShapeMismatch, "input 0 is ", node.inputs[0].str(), " and axis ",
                 node.node->attrs.integer("axis"),
                 " is empty; there is no largest or smallest of nothing.");
  }
  constexpr int64_t kBlock = 256;
  const int64_t blocks = (view.inner + kBlock - 1) / kBlock;
  const int64_t work = view.size * std::min(kBlock, view.inner);
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work));
  return make_launch("cpu_arg_extreme", [=](const LaunchArgs& args) -> Status {
    with_ordered(dtype, [&](auto element) {
      using T = decltype(element);
      parallel_for(view.outer * blocks, grain, [&](int64_t begin, int64_t end) {
        int64_t best_at[kBlock];
        for (int64_t task = begin; task < end; ++task) {
          const int64_t outer = task / blocks, column = task % blocks * kBlock;
          const int64_t columns = std::min(kBlock, view.inner - column);
          const T* x =
              static_cast<const T*>(args.inputs[0]) + outer * view.size * view.inner + column;
          arg_columns<largest>(x, view, columns, best_at);
          char* out = static_cast<char*>(args.outputs[0]);
          const size_t size = dtype_size(index);
          for (int64_t j = 0; j < columns; ++j) {
            const size_t at = static_cast<size_t>(outer * view.inner + column + j);
            store_number(index, out + at * size, best_at[j]);
          }
        }
      });
    });
    return {};
  });
}

/// What running sums and products are kept in: double for f32 and narrower, words that wrap for
/// integers.
template <class T>
struct Running {
  using type = double;
};
template <class T>
requires std::is_integral_v<T>
struct Running<T> {
  using type = uint64_t;
};

template <class T>
T narrowed(double sum) {
  return T(static_cast<Computed<T>>(sum));
}

template <bool product, class T>
void run_columns(const T* x, T* y, const AxisView& view, int64_t columns, bool exclusive,
                 bool reverse) {
  using Sum = typename Running<T>::type;
  constexpr int64_t kMost = 256;
  Sum sums[kMost];
  std::fill_n(sums, columns, product ? Sum(1) : Sum(0));
  for (int64_t step = 0; step < view.size; ++step) {
    const int64_t row = (reverse ? view.size - 1 - step : step) * view.inner;
    for (int64_t j = 0; j < columns; ++j) {
      const Sum before = sums[j], next = static_cast<Sum>(number(x[row + j]));
      sums[j] = product ? before * next : before + next;
      const Sum shown = exclusive ? before : sums[j];
      if constexpr (std::is_integral_v<T>) {
        y[row + j] = static_cast<T>(shown);
      } else {
        y[row + j] = narrowed<T>(shown);
      }
    }
  }
}

template <bool product>
BoundLaunch bind_running(const NodeView& node) {
  const AxisView view = view_at(sizes_of(node.inputs[0]), axis_of(node));
  const bool exclusive = node.node->attrs.flag("exclusive");
  const bool reverse = node.node->attrs.flag("reverse");
  const DType dtype = node.inputs[0].dtype;
  constexpr int64_t kBlock = 256;
  const int64_t blocks = (view.inner + kBlock - 1) / kBlock;
  const int64_t work = view.size * std::min(kBlock, view.inner);
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work));
  return make_launch(product ? "cpu_cumprod" : "cpu_cumsum", [=](const LaunchArgs& args) -> Status {
    with_real(dtype, [&](auto element) {
      using T = decltype(element);
      parallel_for(view.outer * blocks, grain, [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t column = task % blocks * kBlock;
          const int64_t start = task / blocks * view.size * view.inner + column;
          run_columns<product>(static_cast<const T*>(args.inputs[0]) + start,
                               static_cast<T*>(args.outputs[0]) + start, view,
                               std::min(kBlock, view.inner - column), exclusive, reverse);
        }
      });
    });
    return {};
  });
}

}  // namespace

std::vector<KernelSpec> reduction_kernels() {
  return {
      {"reduce_sum", "cpu_reduce", accept_any, bind_reduce<ReduceOp::kSum, false>},
      {"reduce_mean", "cpu_reduce", accept_any, bind_reduce<ReduceOp::kSum, true>},
      {"reduce_max", "cpu_reduce", accept_any, bind_reduce<ReduceOp::kMax, false>},
      {"reduce_min", "cpu_reduce", accept_any, bind_reduce<ReduceOp::kMin, false>},
      {"reduce_prod", "cpu_reduce", accept_any, bind_reduce<ReduceOp::kProd, false>},
      {"reduce_any", "cpu_reduce", accept_any, bind_reduce<ReduceOp::kMax, false>},
      {"reduce_all", "cpu_reduce", accept_any, bind_reduce<ReduceOp::kMin, false>},
      {"argmax", "cpu_arg_extreme", accept_any, bind_arg<true>},
      {"argmin", "cpu_arg_extreme", accept_any, bind_arg<false>},
      {"cumsum", "cpu_cumsum", accept_any, bind_running<false>},
      {"cumprod", "cpu_cumprod", accept_any, bind_running<true>},
  };
}

}  // namespace tracefire::cpu
