// SPDX-License-Identifier: Apache-2.0
// The movement family: what makes, reorders or repeats elements without computing.

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/move/element.h"
#include "backends/cpu/move/numbers.h"
#include "backends/cpu/move/strided_copy.h"

namespace tracefire::cpu {
namespace {

constexpr int64_t kGrain = 32 * 1024;

/// A launch that copies input 0 by `copy`, starting at these elements.
BoundLaunch copy_launch(const char* symbol, StridedCopy copy, int64_t target_start,
                        int64_t source_start) {
  return make_launch(symbol, [=](const LaunchArgs& args) -> Status {
    copy.run(args.outputs[0], target_start, args.inputs[0], source_start);
    return {};
  });
}

BoundLaunch bind_whole_copy(const NodeView& node) {
  const DType dtype = node.inputs[0].dtype;
  const StridedCopy copy(dtype, {elements_of(node.inputs[0])}, {1}, {1});
  return make_launch("cpu_copy", [=](const LaunchArgs& args) -> Status {
    if (args.outputs[0] != args.inputs[0]) copy.run(args.outputs[0], 0, args.inputs[0], 0);
    return {};
  });
}

BoundLaunch bind_constant(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  const int64_t elements = elements_of(node.outputs[0]);
  std::string bytes = node.node->attrs.text("bytes");
  if (dtype == DType::kString) {
    return make_launch("cpu_constant", [=](const LaunchArgs& args) -> Status {
      std::fill_n(static_cast<std::string*>(args.outputs[0]), elements, bytes);
      return {};
    });
  }
  const size_t size = dtype_size(dtype);
  const bool splat = bytes.size() == size;
  return make_launch("cpu_constant", [=](const LaunchArgs& args) -> Status {
    char* out = static_cast<char*>(args.outputs[0]);
    if (!splat) {
      std::copy(bytes.begin(), bytes.end(), out);
      return {};
    }
    parallel_for(elements, kGrain, [&](int64_t begin, int64_t end) {
      char* first = out + static_cast<size_t>(begin) * size;
      const size_t total = static_cast<size_t>(end - begin) * size;
      std::memcpy(first, bytes.data(), size);
      for (size_t done = size; done < total; done *= 2) {
        std::memcpy(first + done, first, std::min(done, total - done));
      }
    });
    return {};
  });
}

BoundLaunch bind_extent(const NodeView& node) {
  TF_ASSIGN(const std::vector<int64_t> sizes, numbers_of(node, node.node->attrs.shape("shape")));
  const int64_t extent = product(sizes, 0, sizes.size());
  const DType dtype = node.outputs[0].dtype;
  return make_launch("cpu_extent", [=](const LaunchArgs& args) -> Status {
    store_number(dtype, args.outputs[0], extent);
    return {};
  });
}

BoundLaunch bind_transpose(const NodeView& node) {
  const std::vector<int64_t> strides = row_major(sizes_of(node.inputs[0]));
  std::vector<int64_t> from;
  for (int64_t axis : node.node->attrs.ints("perm")) {
    from.push_back(strides[static_cast<size_t>(axis)]);
  }
  const std::vector<int64_t> sizes = sizes_of(node.outputs[0]);
  const StridedCopy copy(node.inputs[0].dtype, sizes, row_major(sizes), from);
  return copy_launch("cpu_transpose", copy, 0, 0);
}

BoundLaunch bind_broadcast_to(const NodeView& node) {
  const std::vector<int64_t> sizes = sizes_of(node.outputs[0]), given = sizes_of(node.inputs[0]);
  const std::vector<int64_t> strides = row_major(given);
  std::vector<int64_t> from(sizes.size(), 0);
  for (size_t axis = 0; axis < given.size(); ++axis) {
    if (given[axis] != 1) from[axis + sizes.size() - given.size()] = strides[axis];
  }
  const StridedCopy copy(node.inputs[0].dtype, sizes, row_major(sizes), from);
  return copy_launch("cpu_broadcast", copy, 0, 0);
}

BoundLaunch bind_slice(const NodeView& node) {
  TF_ASSIGN(const std::vector<int64_t> starts, numbers_of(node, node.node->attrs.shape("starts")));
  const std::vector<int64_t>& steps = node.node->attrs.ints("strides");
  const std::vector<int64_t> sizes = sizes_of(node.outputs[0]);
  std::vector<int64_t> from = row_major(sizes_of(node.inputs[0]));
  int64_t start = 0;
  for (size_t axis = 0; axis < from.size(); ++axis) {
    start += starts[axis] * from[axis];
    if (!steps.empty()) from[axis] *= steps[axis];
  }
  const StridedCopy copy(node.inputs[0].dtype, sizes, row_major(sizes), from);
  return copy_launch("cpu_slice", copy, 0, start);
}

BoundLaunch bind_reverse(const NodeView& node) {
  const std::vector<int64_t> sizes = sizes_of(node.inputs[0]);
  const std::vector<int64_t> to = row_major(sizes);
  std::vector<int64_t> from = to;
  int64_t start = 0;
  for (int64_t axis : node.node->attrs.ints("axes")) {
    const size_t i = static_cast<size_t>(axis);
    start += (sizes[i] - 1) * from[i];
    from[i] = -from[i];
  }
  const StridedCopy copy(node.inputs[0].dtype, sizes, to, from);
  return copy_launch("cpu_reverse", copy, 0, start);
}

BoundLaunch bind_concat(const NodeView& node) {
  const size_t axis = static_cast<size_t>(node.node->attrs.integer("axis"));
  const std::vector<int64_t> to = row_major(sizes_of(node.outputs[0]));
  struct Part {
    StridedCopy copy;
    int64_t start;
  };
  std::vector<Part> parts;
  int64_t start = 0;
  for (const ValueType& input : node.inputs) {
    const std::vector<int64_t> sizes = sizes_of(input);
    parts.push_back({StridedCopy(input.dtype, sizes, to, row_major(sizes)), start * to[axis]});
    start += sizes[axis];
  }
  return make_launch("cpu_concat", [parts = std::move(parts)](const LaunchArgs& args) -> Status {
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].copy.run(args.outputs[0], parts[i].start, args.inputs[i], 0);
    }
    return {};
  });
}

/// Elements of one axis that padding keeps, and where they go.
struct PadAxis {
  int64_t count, source, target, step;
};
PadAxis pad_axis(int64_t size, int64_t result, int64_t low, int64_t interior) {
  const int64_t step = interior + 1;
  // The first element i with low + i * step >= 0, and the last with low + i * step < result.
  const int64_t first = low < 0 ? (-low + step - 1) / step : 0;
  const int64_t room = result - 1 - low;
  const int64_t end = room < 0 ? 0 : std::min(size, room / step + 1);
  return {std::max<int64_t>(0, end - first), first, low + first * step, step};
}

BoundLaunch bind_pad(const NodeView& node) {
  TF_ASSIGN(const std::vector<int64_t> low, numbers_of(node, node.node->attrs.shape("low")));
  const std::vector<int64_t>& interior = node.node->attrs.ints("interior");
  const std::vector<int64_t> given = sizes_of(node.inputs[0]), result = sizes_of(node.outputs[0]);
  std::vector<int64_t> from = row_major(given), to = row_major(result), sizes;
  int64_t source = 0, target = 0;
  for (size_t axis = 0; axis < given.size(); ++axis) {
    const PadAxis kept = pad_axis(given[axis], result[axis], low[axis],
                                  interior.empty() ? 0 : interior[axis]);
    sizes.push_back(kept.count);
    source += kept.source * from[axis];
    target += kept.target * to[axis];
    to[axis] *= kept.step;
  }
  const DType dtype = node.inputs[0].dtype;
  const int64_t elements = elements_of(node.outputs[0]);
  const StridedCopy fill(dtype, {elements}, {1}, {0});
  const StridedCopy copy(dtype, sizes, to, from);
  const bool filled = product(sizes, 0, sizes.size()) != elements;
  return make_launch("cpu_pad", [=](const LaunchArgs& args) -> Status {
    if (filled) fill.run(args.outputs[0], 0, args.inputs[1], 0);
    copy.run(args.outputs[0], target, args.inputs[0], source);
    return {};
  });
}

}  // namespace

std::vector<KernelSpec> movement_kernels() {
  return {
      {"constant", "cpu_constant", accept_any, bind_constant},
      {"extent", "cpu_extent", accept_any, bind_extent},
      {"reshape", "cpu_copy", accept_any, bind_whole_copy, true},
      {"copy", "cpu_copy", accept_any, bind_whole_copy, true},
      {"stop_gradient", "cpu_copy", accept_any, bind_whole_copy, true},
      {"transpose", "cpu_transpose", accept_any, bind_transpose},
      {"broadcast_to", "cpu_broadcast", accept_any, bind_broadcast_to},
      {"slice", "cpu_slice", accept_any, bind_slice},
      {"reverse", "cpu_reverse", accept_any, bind_reverse},
      {"concat", "cpu_concat", accept_any, bind_concat},
      {"pad", "cpu_pad", accept_any, bind_pad},
  };
}

}  // namespace tracefire::cpu
