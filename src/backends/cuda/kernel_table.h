// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/api/kernel.h"
#include "backends/cuda/cuda_device.h"

namespace tracefire::cuda {

using BoundLaunch = Result<std::unique_ptr<Launch>>;

/// One kernel as data. `accept` may see symbols for sizes; `bind` sees numbers.
struct KernelSpec {
  const char* op;
  const char* name;
  Answer (*accept)(const NodeView& node);
  BoundLaunch (*bind)(const NodeView& node, CudaDevice& device);
  bool in_place = false;
  /// Library whose version goes into the records; kDriver: a kernel of our own.
  nvidia::Library library = nvidia::Library::kDriver;
};

/// Kernels of each op, best first, indexed by OpId.
const std::vector<KernelList>& kernel_table();

// Families; the order of one op's kernels is the order of preference.
std::vector<KernelSpec> loop_kernel_specs();
std::vector<KernelSpec> matmul_kernels();
std::vector<KernelSpec> reduction_kernels();
std::vector<KernelSpec> movement_kernels();
std::vector<KernelSpec> indexing_kernels();
std::vector<KernelSpec> scattering_kernels();
std::vector<KernelSpec> searching_kernels();
std::vector<KernelSpec> composite_kernels();
std::vector<KernelSpec> int_matmul_kernels();
std::vector<KernelSpec> random_kernels();

/// Compiles together the loops of these nodes that have a kernel, for likely sizes.
Status prepare_loops(std::span<const NodeView> nodes, CudaDevice& device);

/// A launch from a function object `Status(const LaunchArgs&)`; `symbols` go into the records.
template <class Fn>
std::unique_ptr<Launch> make_launch(std::vector<std::string> symbols, Fn fn, size_t workspace = 0) {
  class FnLaunch final : public Launch {
   public:
    FnLaunch(std::vector<std::string> symbols, Fn fn, size_t workspace)
        : symbols_(std::move(symbols)), fn_(std::move(fn)), workspace_(workspace) {}
    size_t workspace_bytes() const override { return workspace_; }
    Status run(const LaunchArgs& args) const override { return fn_(args); }
    std::vector<std::string> kernel_names() const override { return symbols_; }

   private:
    std::vector<std::string> symbols_;
    Fn fn_;
    size_t workspace_;
  };
  return std::make_unique<FnLaunch>(std::move(symbols), std::move(fn), workspace);
}

/// Product of sizes first … last - 1.
int64_t product(const std::vector<int64_t>& sizes, size_t first, size_t last);
int64_t elements_of(const ValueType& type);
/// Row-major strides in elements.
std::vector<int64_t> row_major(const std::vector<int64_t>& sizes);
/// Numbers of an attribute's dims; kSymbolUnbound where one is still a symbol.
Result<std::vector<int64_t>> numbers_of(const NodeView& node, const Shape& dims);

}  // namespace tracefire::cuda
