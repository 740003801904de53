// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "backends/api/device_backend.h"
#include "backends/api/kernel_table.h"
#include "core/base/thread_pool.h"

namespace tracefire::cpu {

using KernelSpec = BasicKernelSpec<BoundLaunch (*)(const NodeView& node)>;

/// Kernels of each op, best first, indexed by OpId.
const std::vector<KernelList>& kernel_table();

// Families; the order of one op's kernels is the order of preference.
std::vector<KernelSpec> loop_kernels();
std::vector<KernelSpec> matmul_kernels();
std::vector<KernelSpec> reduction_kernels();
std::vector<KernelSpec> movement_kernels();
std::vector<KernelSpec> indexing_kernels();
std::vector<KernelSpec> composite_kernels();
std::vector<KernelSpec> selection_kernels();
std::vector<KernelSpec> sorting_kernels();
std::vector<KernelSpec> random_kernels();
std::vector<KernelSpec> host_kernels();

/// A launch of one function, `symbol` in the records.
template <class Fn>
std::unique_ptr<Launch> make_launch(std::string symbol, Fn fn, size_t workspace = 0) {
  return tracefire::make_launch(std::vector<std::string>{std::move(symbol)}, std::move(fn),
                                workspace);
}

/// Accepts every node that the row allows.
Answer accept_any(const NodeView& node);
/// Refuses inputs and results of strings.
Answer accept_plain(const NodeView& node);

/// Numbers of the sizes of a bound type.
std::vector<int64_t> sizes_of(const ValueType& type);
/// An array seen as [outer, size, inner] around an axis.
struct AxisView {
  int64_t outer, size, inner;
};
AxisView view_at(const std::vector<int64_t>& sizes, size_t axis);
/// Number of the attribute 'axis'.
size_t axis_of(const NodeView& node);

/// Writes the first failed check into the run's error word.
void report(const LaunchArgs& args, ErrorCode code, int64_t detail);

/// Smallest index at which a check failed, collected from several threads.
class FirstFailure {
 public:
  void add(int64_t index) {
    int64_t seen = first_.load(std::memory_order_relaxed);
    while (index < seen && !first_.compare_exchange_weak(seen, index)) {
    }
  }
  bool any() const { return first_.load() != kNone; }
  int64_t index() const { return first_.load(); }

 private:
  static constexpr int64_t kNone = INT64_MAX;
  std::atomic<int64_t> first_{kNone};
};

}  // namespace tracefire::cpu
