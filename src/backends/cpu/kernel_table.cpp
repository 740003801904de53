// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernel_table.h"

#include <atomic>

namespace tracefire::cpu {
namespace {

class SpecKernel final : public Kernel {
 public:
  explicit SpecKernel(const KernelSpec& spec) : spec_(spec) {}
  std::string_view name() const override { return spec_.name; }
  std::string_view library() const override { return spec_.library; }
  bool capturable() const override { return false; }
  bool in_place() const override { return spec_.in_place; }
  Answer accept(const NodeView& node) const override { return spec_.accept(node); }
  Result<std::unique_ptr<Launch>> bind(const NodeView& node, DeviceBackend&) const override {
    return spec_.bind(node);
  }

 private:
  KernelSpec spec_;
};

std::vector<KernelList> make_table() {
  std::vector<KernelList> table(OpTable::instance().rows().size());
  for (auto family : {matmul_kernels, movement_kernels, loop_kernels, reduction_kernels,
                      indexing_kernels, composite_kernels, selection_kernels, sorting_kernels,
                      random_kernels, host_kernels}) {
    for (const KernelSpec& spec : family()) {
      // Kernels live as long as the process: programs point to them.
      table[OpTable::instance().id(spec.op)].push_back(new SpecKernel(spec));
    }
  }
  return table;
}

}  // namespace

const std::vector<KernelList>& kernel_table() {
  static const std::vector<KernelList>& table = *new std::vector<KernelList>(make_table());
  return table;
}

Answer accept_any(const NodeView&) { return Answer::yes(); }

Answer accept_plain(const NodeView& node) {
  for (std::span<const ValueType> types : {node.inputs, node.outputs}) {
    for (const ValueType& type : types) {
      if (type.dtype == DType::kString) return Answer::no("cpu: strings are not numbers");
    }
  }
  return Answer::yes();
}

std::vector<int64_t> sizes_of(const ValueType& type) { return type.shape.sizes(); }

int64_t elements_of(const ValueType& type) {
  const std::vector<int64_t> sizes = sizes_of(type);
  return product(sizes, 0, sizes.size());
}

int64_t product(const std::vector<int64_t>& sizes, size_t first, size_t last) {
  int64_t result = 1;
  for (size_t i = first; i < last; ++i) result *= sizes[i];
  return result;
}

AxisView view_at(const std::vector<int64_t>& sizes, size_t axis) {
  return {product(sizes, 0, axis), sizes[axis], product(sizes, axis + 1, sizes.size())};
}

size_t axis_of(const NodeView& node) {
  return static_cast<size_t>(node.node->attrs.integer("axis"));
}

std::vector<int64_t> row_major(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

Result<std::vector<int64_t>> numbers_of(const NodeView& node, const Shape& dims) {
  if (dims.is_constant()) return dims.sizes();
  return error(ErrorCode::kSymbolUnbound, "the size ", dims.str(), " in an attribute of '",
               OpTable::instance().name(node.node->op),
               "' has no number while the kernel is bound. Give it as an argument.");
}

void report(const LaunchArgs& args, ErrorCode code, int64_t detail) {
  if (args.error == nullptr) return;
  uint32_t expected = 0;
  if (__atomic_compare_exchange_n(&args.error->step_plus_one, &expected, args.step + 1, false,
                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    args.error->code = static_cast<uint32_t>(code);
    args.error->detail = detail;
  }
}

}  // namespace tracefire::cpu
