// SPDX-License-Identifier: Apache-2.0
// Movement by numbers that are data: gather, scatter_add, one_hot, slices at a computed place.

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/move/element.h"
#include "backends/cpu/move/numbers.h"
#include "backends/cpu/move/strided_copy.h"

namespace tracefire::cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;

/// An array seen as [outer, size, inner] around an axis.
struct AxisView {
  int64_t outer, size, inner;
};
AxisView view_at(const std::vector<int64_t>& sizes, size_t axis) {
  return {product(sizes, 0, axis), sizes[axis], product(sizes, axis + 1, sizes.size())};
}
size_t axis_of(const NodeView& node) {
  return static_cast<size_t>(node.node->attrs.integer("axis"));
}

/// True where all indices are in [0, size); else reports the first that is not.
bool check_indices(const LaunchArgs& args, ReadInteger read, const void* indices, int64_t count,
                   int64_t size) {
  FirstFailure outside;
  parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index = read(indices, i);
      if (index >= 0 && index < size) continue;
      outside.add(i);
      return;
    }
  });
  if (!outside.any()) return true;
  report(args, ErrorCode::kIndexOutOfRange, read(indices, outside.index()));
  return false;
}

BoundLaunch bind_gather(const NodeView& node) {
  const AxisView view = view_at(sizes_of(node.inputs[0]), axis_of(node));
  const int64_t count = elements_of(node.inputs[1]);
  const ReadInteger read = integer_reader(node.inputs[1].dtype);
  const DType dtype = node.inputs[0].dtype;
  return make_launch("cpu_gather", [=](const LaunchArgs& args) -> Status {
    const void* indices = args.inputs[1];
    if (!check_indices(args, read, indices, count, view.size)) return {};
    if (view.inner == 0) return {};
    const int64_t grain = std::max<int64_t>(1, kGrain / view.inner);
    with_element(dtype, [&](auto element) {
      using T = decltype(element);
      const T* x = static_cast<const T*>(args.inputs[0]);
      T* y = static_cast<T*>(args.outputs[0]);
      parallel_for(view.outer * count, grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t outer = row / count, index = read(indices, row % count);
          const T* from = x + (outer * view.size + index) * view.inner;
          std::copy(from, from + view.inner, y + row * view.inner);
        }
      });
    });
    return {};
  });
}

/// How scatter_add is shared out: a task owns columns of the inner axis and rows of the indexed
/// one, and walks all indices in order. So each sum has one order, whatever runs in parallel.
struct ScatterTasks {
  int64_t columns, column_block, row_blocks, row_block;
};
ScatterTasks scatter_tasks(const AxisView& view, int64_t count) {
  constexpr int64_t kLeast = 64 * 1024;  // additions that are worth a task
  const int64_t wanted =
      std::clamp<int64_t>(view.outer * count * view.inner / kLeast, 1, 64) / view.outer;
  ScatterTasks tasks{1, view.inner, 1, view.size};
  if (wanted > 1) {
    tasks.column_block = std::max<int64_t>(16, (view.inner + wanted - 1) / wanted);
    tasks.columns = (view.inner + tasks.column_block - 1) / tasks.column_block;
    const int64_t rows = std::max<int64_t>(1, wanted / tasks.columns);
    tasks.row_block = (view.size + rows - 1) / rows;
    tasks.row_blocks = (view.size + tasks.row_block - 1) / tasks.row_block;
  }
  return tasks;
}

template <class T, class Sum>
void scatter_task(const AxisView& view, const ScatterTasks& tasks, int64_t task, int64_t count,
                  const T* updates, ReadInteger read, const void* indices, Sum* sums) {
  const int64_t column = task % tasks.columns * tasks.column_block;
  const int64_t row = task / tasks.columns % tasks.row_blocks * tasks.row_block;
  const int64_t outer = task / (tasks.columns * tasks.row_blocks);
  const int64_t width = std::min(tasks.column_block, view.inner - column);
  const int64_t row_end = std::min(row + tasks.row_block, view.size);
  for (int64_t r = row; r < row_end; ++r) {
    std::fill_n(sums + (outer * view.size + r) * view.inner + column, width, Sum(0));
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = read(indices, i);
    if (index < row || index >= row_end) continue;
    const T* from = updates + (outer * count + i) * view.inner + column;
    Sum* to = sums + (outer * view.size + index) * view.inner + column;
    if constexpr (std::is_integral_v<T>) {  // wraps around
      using Word = std::make_unsigned_t<T>;
      for (int64_t k = 0; k < width; ++k) {
        to[k] = static_cast<Sum>(static_cast<Word>(to[k]) + static_cast<Word>(from[k]));
      }
    } else {
      for (int64_t k = 0; k < width; ++k) to[k] += number(from[k]);
    }
  }
}

BoundLaunch bind_scatter_add(const NodeView& node) {
  const AxisView view = view_at(sizes_of(node.outputs[0]), axis_of(node));
  const int64_t count = elements_of(node.inputs[1]), elements = elements_of(node.outputs[0]);
  const ReadInteger read = integer_reader(node.inputs[1].dtype);
  const DType dtype = node.inputs[0].dtype;
  const bool narrow = is_floating(dtype) && dtype_size(dtype) < 4;
  const size_t workspace = narrow ? static_cast<size_t>(elements) * sizeof(float) : 0;
  const auto run = [=](const LaunchArgs& args) -> Status {
    const void* indices = args.inputs[1];
    if (!check_indices(args, read, indices, count, view.size) || elements == 0) return {};
    const ScatterTasks tasks = scatter_tasks(view, count);
    with_real(dtype, [&](auto element) {
      using T = decltype(element);
      using Sum = Computed<T>;
      Sum* sums = static_cast<Sum*>(narrow ? args.workspace : args.outputs[0]);
      const T* updates = static_cast<const T*>(args.inputs[0]);
      parallel_for(view.outer * tasks.columns * tasks.row_blocks, 1,
                   [&](int64_t begin, int64_t end) {
                     for (int64_t task = begin; task < end; ++task) {
                       scatter_task(view, tasks, task, count, updates, read, indices, sums);
                     }
                   });
      if constexpr (!std::is_same_v<T, Sum>) {
        T* y = static_cast<T*>(args.outputs[0]);
        parallel_for(elements, kGrain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) y[i] = T(sums[i]);
        });
      }
    });
    return {};
  };
  return make_launch("cpu_scatter_add", run, workspace);
}

/// Other axes are left to the decomposition.
Answer accept_one_hot(const NodeView& node) {
  if (axis_of(node) == static_cast<size_t>(node.inputs[0].shape.rank())) return Answer::yes();
  return Answer::no(concat_text("cpu: one_hot along axis ", axis_of(node),
                                ", only the last one has a kernel"));
}

BoundLaunch bind_one_hot(const NodeView& node) {
  const int64_t count = elements_of(node.inputs[0]), depth = node.node->attrs.integer("depth");
  const ReadInteger read = integer_reader(node.inputs[0].dtype);
  const DType dtype = node.outputs[0].dtype;
  return make_launch("cpu_one_hot", [=](const LaunchArgs& args) -> Status {
    if (depth == 0) return {};
    const int64_t grain = std::max<int64_t>(1, kGrain / depth);
    with_element(dtype, [&](auto element) {
      using T = decltype(element);
      if constexpr (std::is_integral_v<T>) {
        T one = 0;
        store_number(dtype, &one, 1);
        T* y = static_cast<T*>(args.outputs[0]);
        parallel_for(count, grain, [&](int64_t begin, int64_t end) {
          std::fill(y + begin * depth, y + end * depth, T(0));
          for (int64_t i = begin; i < end; ++i) {
            const int64_t index = read(args.inputs[0], i);
            if (index >= 0 && index < depth) y[i * depth + index] = one;
          }
        });
      }
    });
    return {};
  });
}

/// The start of a dynamic slice, or -1 (reported) where the slice does not lie inside the axis.
int64_t checked_start(const LaunchArgs& args, ReadInteger read, const void* start, int64_t count,
                      int64_t size) {
  const int64_t at = read(start, 0);
  if (at >= 0 && at <= size - count) return at;
  report(args, ErrorCode::kIndexOutOfRange, at);
  return -1;
}

BoundLaunch bind_dynamic_slice(const NodeView& node) {
  const size_t axis = axis_of(node);
  const std::vector<int64_t> given = sizes_of(node.inputs[0]), sizes = sizes_of(node.outputs[0]);
  const std::vector<int64_t> from = row_major(given);
  const StridedCopy copy(node.inputs[0].dtype, sizes, row_major(sizes), from);
  const ReadInteger read = integer_reader(node.inputs[1].dtype);
  const int64_t size = given[axis], count = sizes[axis], stride = from[axis];
  return make_launch("cpu_dynamic_slice", [=](const LaunchArgs& args) -> Status {
    const int64_t start = checked_start(args, read, args.inputs[1], count, size);
    if (start >= 0) copy.run(args.outputs[0], 0, args.inputs[0], start * stride);
    return {};
  });
}

BoundLaunch bind_dynamic_update_slice(const NodeView& node) {
  const size_t axis = axis_of(node);
  const std::vector<int64_t> sizes = sizes_of(node.inputs[0]), part = sizes_of(node.inputs[1]);
  const std::vector<int64_t> to = row_major(sizes);
  const DType dtype = node.inputs[0].dtype;
  const StridedCopy whole(dtype, {elements_of(node.inputs[0])}, {1}, {1});
  const StridedCopy update(dtype, part, to, row_major(part));
  const ReadInteger read = integer_reader(node.inputs[2].dtype);
  const int64_t size = sizes[axis], count = part[axis], stride = to[axis];
  return make_launch("cpu_dynamic_update_slice", [=](const LaunchArgs& args) -> Status {
    const int64_t start = checked_start(args, read, args.inputs[2], count, size);
    if (start < 0) return {};
    whole.run(args.outputs[0], 0, args.inputs[0], 0);
    update.run(args.outputs[0], start * stride, args.inputs[1], 0);
    return {};
  });
}

BoundLaunch bind_check_range(const NodeView& node) {
  TF_ASSIGN(const std::vector<int64_t> limit, numbers_of(node, node.node->attrs.shape("limit")));
  const int64_t count = elements_of(node.inputs[0]), size = limit[0];
  const DType dtype = node.inputs[0].dtype;
  const ReadInteger read = integer_reader(dtype);
  const StridedCopy copy(dtype, {count}, {1}, {1});
  return make_launch("cpu_check_range", [=](const LaunchArgs& args) -> Status {
    check_indices(args, read, args.inputs[0], count, size);
    if (args.outputs[0] != args.inputs[0]) copy.run(args.outputs[0], 0, args.inputs[0], 0);
    return {};
  });
}

}  // namespace

std::vector<KernelSpec> indexing_kernels() {
  return {
      {"gather", "cpu_gather", accept_any, bind_gather},
      {"scatter_add", "cpu_scatter_add", accept_any, bind_scatter_add},
      {"one_hot", "cpu_one_hot", accept_one_hot, bind_one_hot},
      {"dynamic_slice", "cpu_dynamic_slice", accept_any, bind_dynamic_slice},
      {"dynamic_update_slice", "cpu_dynamic_update_slice", accept_any, bind_dynamic_update_slice},
      {"check_range", "cpu_check_range", accept_any, bind_check_range, true},
  };
}

}  // namespace tracefire::cpu
