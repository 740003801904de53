// SPDX-License-Identifier: Apache-2.0
#include "backends/api/kernel_table.h"

namespace tracefire {

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

}  // namespace tracefire
