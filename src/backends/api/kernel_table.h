// SPDX-License-Identifier: Apache-2.0
// What backends write their lists of kernels with.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/api/kernel.h"

namespace tracefire {

using BoundLaunch = Result<std::unique_ptr<Launch>>;

/// One kernel as data. `accept` may see symbols for sizes; `bind` sees numbers. Of one op, the
/// order of its specs is the order of preference.
template <class BindFn>
struct BasicKernelSpec {
  const char* op;
  const char* name;
  Answer (*accept)(const NodeView& node);
  BindFn bind;
  bool in_place = false;
  const char* library = "tracefire";  ///< "oneDNN 3.2", "cuBLASLt"
};

/// The lists of all ops, indexed by OpId, from those of the families. `call` binds:
/// BoundLaunch(const Spec&, const NodeView&, DeviceBackend&). Kernels live as long as the process:
/// programs point to them.
template <class Spec, class Call>
std::vector<KernelList> make_kernel_table(std::initializer_list<std::vector<Spec> (*)()> families,
                                          bool capturable, Call call) {
  class SpecKernel final : public Kernel {
   public:
    SpecKernel(const Spec& spec, bool capturable, Call call)
        : spec_(spec), capturable_(capturable), call_(call) {}
    std::string_view name() const override { return spec_.name; }
    std::string_view library() const override { return spec_.library; }
    bool capturable() const override { return capturable_; }
    bool in_place() const override { return spec_.in_place; }
    Answer accept(const NodeView& node) const override { return spec_.accept(node); }
    BoundLaunch bind(const NodeView& node, DeviceBackend& device) const override {
      return call_(spec_, node, device);
    }

   private:
    const Spec spec_;
    const bool capturable_;
    const Call call_;
  };
  std::vector<KernelList> table(OpTable::instance().rows().size());
  for (const auto family : families) {
    for (const Spec& spec : family()) {
      table[OpTable::instance().id(spec.op)].push_back(new SpecKernel(spec, capturable, call));
    }
  }
  return table;
}

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
/// Elements of a bound type.
int64_t elements_of(const ValueType& type);
/// Row-major strides in elements.
std::vector<int64_t> row_major(const std::vector<int64_t>& sizes);
/// Numbers of an attribute's dims; kSymbolUnbound where one depends on data not read yet.
Result<std::vector<int64_t>> numbers_of(const NodeView& node, const Shape& dims);

}  // namespace tracefire
