// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernel_table.h"

namespace tracefire::cuda {
namespace {

class SpecKernel final : public Kernel {
 public:
  explicit SpecKernel(const KernelSpec& spec) : spec_(spec), library_(library_text(spec.library)) {}
  std::string_view name() const override { return spec_.name; }
  std::string_view library() const override { return library_; }
  bool in_place() const override { return spec_.in_place; }
  Answer accept(const NodeView& node) const override { return spec_.accept(node); }
  Result<std::unique_ptr<Launch>> bind(const NodeView& node, DeviceBackend& device) const override {
    return spec_.bind(node, static_cast<CudaDevice&>(device));
  }

 private:
  static std::string library_text(nvidia::Library library) {
    switch (library) {
      case nvidia::Library::kCublasLt:
        return "cuBLASLt";
      case nvidia::Library::kCudnn:
        return "cuDNN";
      default:
        return "tracefire";
    }
  }

  const KernelSpec spec_;
  const std::string library_;
};

std::vector<KernelList> make_table() {
  std::vector<KernelList> table(OpTable::instance().rows().size());
  for (auto family : {matmul_kernels, int_matmul_kernels, loop_kernel_specs, random_kernels,
                      reduction_kernels, movement_kernels, indexing_kernels, searching_kernels,
                      scattering_kernels, composite_kernels}) {
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

int64_t product(const std::vector<int64_t>& sizes, size_t first, size_t last) {
  int64_t result = 1;
  for (size_t i = first; i < last; ++i) result *= sizes[i];
  return result;
}

int64_t elements_of(const ValueType& type) {
  const std::vector<int64_t> sizes = type.shape.sizes();
  return product(sizes, 0, sizes.size());
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

}  // namespace tracefire::cuda
