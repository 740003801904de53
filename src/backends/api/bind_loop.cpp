// SPDX-License-Identifier: Apache-2.0
#include "backends/api/loop.h"

namespace tracefire {
namespace {

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t elements = 1;
  for (int64_t size : sizes) elements *= size;
  return elements;
}

/// Strides of a dense row-major array of `sizes`.
std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  return strides;
}

/// Strides of an input over the axes of the iteration space, 0 where it is repeated.
std::vector<int64_t> iteration_strides(const std::vector<int64_t>& sizes,
                                       const std::vector<int64_t>& input, int64_t elements) {
  const int64_t input_elements = product(input);
  // As many elements as the loop walks: element i of the input belongs to element i, whatever the
  // shape it is written with (a reshape inside the loop keeps the order).
  if (input_elements == elements) return dense_strides(sizes);
  std::vector<int64_t> strides(sizes.size(), 0);
  if (input_elements == 1) return strides;
  const std::vector<int64_t> own = dense_strides(input);
  // Leading axes beyond the loop's rank can only be of size 1.
  size_t skip = input.size() > sizes.size() ? input.size() - sizes.size() : 0;
  for (size_t i = skip; i < input.size(); ++i) {
    const size_t axis = sizes.size() - (input.size() - i);
    strides[axis] = input[i] == 1 ? 0 : own[i];
  }
  return strides;
}

}  // namespace

BoundLoop bind_loop(const LoopProgram& program, const std::vector<int64_t>& sizes,
                    const std::vector<std::vector<int64_t>>& inputs) {
  BoundLoop bound;
  bound.elements = product(sizes);
  bound.axis_sizes = sizes;
  bound.axis_strides = dense_strides(sizes);

  std::vector<std::vector<int64_t>> full(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    full[i] = program.inputs[i].is_key ? std::vector<int64_t>(sizes.size(), 0)
                                       : iteration_strides(sizes, inputs[i], bound.elements);
  }

  bound.strides.resize(inputs.size());
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] == 1) continue;
    bool merges = !bound.sizes.empty();
    for (size_t i = 0; merges && i < inputs.size(); ++i) {
      merges = bound.strides[i].back() == full[i][axis] * sizes[axis];
    }
    if (merges) {
      bound.sizes.back() *= sizes[axis];
      for (size_t i = 0; i < inputs.size(); ++i) bound.strides[i].back() = full[i][axis];
    } else {
      bound.sizes.push_back(sizes[axis]);
      for (size_t i = 0; i < inputs.size(); ++i) bound.strides[i].push_back(full[i][axis]);
    }
  }

  const std::vector<int64_t> flat = dense_strides(bound.sizes);
  bound.access.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<int64_t>& strides = bound.strides[i];
    bool scalar = true;
    for (int64_t stride : strides) scalar = scalar && stride == 0;
    if (program.inputs[i].is_key || (scalar && !strides.empty())) {
      bound.access[i] = BoundLoop::Access::kScalar;
    } else if (strides == flat) {  // a loop over one element counts as flat
      bound.access[i] = BoundLoop::Access::kFlat;
    } else {
      bound.access[i] = BoundLoop::Access::kStrided;
      bound.flat = false;
    }
  }
  return bound;
}

}  // namespace tracefire
