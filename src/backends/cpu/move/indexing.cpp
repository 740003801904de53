// SPDX-License-Identifier: Apache-2.0
// Movement by numbers that are data: gather, scatter, one_hot, slices at a computed place.

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/move/element.h"
#include "backends/cpu/move/numbers.h"
#include "backends/cpu/move/scatter.h"
#include "backends/cpu/move/strided_copy.h"

namespace tracefire::cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;

/// True where all indices are in [0, size); else reports the first that is not.
bool check_indices(const LaunchArgs& args, DType dtype, const void* indices, int64_t count,
                   int64_t size) {
  const Indices functions = indices_of(dtype);
  FirstFailure outside;
  parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
    const int64_t found = functions.first_outside(indices, begin, end, size);
    if (found < end) outside.add(found);
  });
  if (!outside.any()) return true;
  report(args, ErrorCode::kIndexOutOfRange, integer_reader(dtype)(indices, outside.index()));
  return false;
}

/// Copies entries of x whose numbers stand in `places` side by side.
template <class T>
void gather_rows(const T* x, const int64_t* places, int64_t count, int64_t inner, T* y) {
  if (inner == 1) {
    for (int64_t i = 0; i < count; ++i) y[i] = x[places[i]];
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const T* from = x + places[i] * inner;
    std::copy(from, from + inner, y + i * inner);
  }
}

BoundLaunch bind_gather(const NodeView& node) {
  const AxisView view = view_at(sizes_of(node.inputs[0]), axis_of(node));
  const int64_t count = elements_of(node.inputs[1]);
  const DType dtype = node.inputs[0].dtype, index = node.inputs[1].dtype;
  return make_launch("cpu_gather", [=](const LaunchArgs& args) -> Status {
    const void* indices = args.inputs[1];
    if (!check_indices(args, index, indices, count, view.size)) return {};
    if (view.inner == 0) return {};
    const auto widen = indices_of(index).widen;
    const int64_t grain = std::max<int64_t>(1, kGrain / view.inner);
    with_element(dtype, [&](auto element) {
      using T = decltype(element);
      const T* x = static_cast<const T*>(args.inputs[0]);
      T* y = static_cast<T*>(args.outputs[0]);
      parallel_for(view.outer * count, grain, [&](int64_t begin, int64_t end) {
        constexpr int64_t kBlock = 256;
        int64_t places[kBlock];
        for (int64_t row = begin; row < end;) {
          const int64_t outer = row / count, first = row % count;
          const int64_t n = std::min({kBlock, end - row, count - first});
          widen(indices, first, first + n, places);
          gather_rows(x + outer * view.size * view.inner, places, n, view.inner,
                      y + row * view.inner);
          row += n;
        }
      });
    });
    return {};
  });
}

size_t whole_lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

BoundLaunch bind_scatter_add(const NodeView& node) {
  const AxisView view = view_at(sizes_of(node.outputs[0]), axis_of(node));
  const int64_t count = elements_of(node.inputs[1]);
  const DType index = node.inputs[1].dtype;
  const Indices functions = indices_of(index);
  const Scatter scatter(node.inputs[0].dtype, ScatterMode::kAdd,
                        {view.outer, view.size, view.inner, count});
  const size_t places_bytes =
      functions.wide ? 0 : whole_lines(static_cast<size_t>(count) * sizeof(int64_t));
  const auto run = [=](const LaunchArgs& args) -> Status {
    if (!check_indices(args, index, args.inputs[1], count, view.size)) return {};
    const int64_t* places = static_cast<const int64_t*>(args.inputs[1]);
    if (!functions.wide) {
      int64_t* made = static_cast<int64_t*>(args.workspace);
      parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
        functions.widen(args.inputs[1], begin, end, made + begin);
      });
      places = made;
    }
    scatter.run(args.outputs[0], nullptr, args.inputs[0], places,
                static_cast<char*>(args.workspace) + places_bytes);
    return {};
  };
  return make_launch("cpu_scatter_add", run, places_bytes + scatter.workspace_bytes());
}

/// Numbers of the rows that indices [count, depth] name, `sizes` being those of their axes; false
/// (and a report) where one lies outside.
bool number_rows(const LaunchArgs& args, DType dtype, const void* indices, int64_t count,
                 const std::vector<int64_t>& sizes, int64_t* rows) {
  const auto widen = indices_of(dtype).widen;
  const int64_t depth = static_cast<int64_t>(sizes.size());
  FirstFailure outside;
  parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> index(sizes.size());
    for (int64_t i = begin; i < end; ++i) {
      widen(indices, i * depth, (i + 1) * depth, index.data());
      rows[i] = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const int64_t at = index[static_cast<size_t>(k)], size = sizes[static_cast<size_t>(k)];
        if (at < 0 || at >= size) return outside.add(i * depth + k);
        rows[i] = rows[i] * size + at;
      }
    }
  });
  if (!outside.any()) return true;
  report(args, ErrorCode::kIndexOutOfRange, integer_reader(dtype)(indices, outside.index()));
  return false;
}

ScatterMode scatter_mode(const std::string& reduction) {
  if (reduction == "add") return ScatterMode::kAdd;
  if (reduction == "mul") return ScatterMode::kMul;
  if (reduction == "max") return ScatterMode::kMax;
  return reduction == "min" ? ScatterMode::kMin : ScatterMode::kUpdate;
}

BoundLaunch bind_scatter(const NodeView& node) {
  const std::vector<int64_t> all = sizes_of(node.inputs[0]), indices = sizes_of(node.inputs[1]);
  const size_t depth = static_cast<size_t>(indices.back());
  const std::vector<int64_t> named(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(depth));
  const int64_t count = product(indices, 0, indices.size() - 1);
  const DType index = node.inputs[1].dtype;
  const Scatter scatter(node.inputs[0].dtype, scatter_mode(node.node->attrs.text("reduction")),
                        {1, product(all, 0, depth), product(all, depth, all.size()), count});
  const size_t rows_bytes = whole_lines(static_cast<size_t>(count) * sizeof(int64_t));
  const auto run = [=](const LaunchArgs& args) -> Status {
    int64_t* rows = static_cast<int64_t*>(args.workspace);
    if (!number_rows(args, index, args.inputs[1], count, named, rows)) return {};
    scatter.run(args.outputs[0], args.inputs[0], args.inputs[2], rows,
                static_cast<char*>(args.workspace) + rows_bytes);
    return {};
  };
  return make_launch("cpu_scatter", run, rows_bytes + scatter.workspace_bytes());
}

/// Other axes are left to the decomposition.
Answer accept_one_hot(const NodeView& node) {
  if (axis_of(node) == static_cast<size_t>(node.inputs[0].shape.rank())) return Answer::yes();
  return Answer::no(
      concat_text("cpu: one_hot along axis ", axis_of(node), ", only the last one has a kernel"));
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
  const StridedCopy copy(dtype, {count}, {1}, {1});
  return make_launch("cpu_check_range", [=](const LaunchArgs& args) -> Status {
    check_indices(args, dtype, args.inputs[0], count, size);
    if (args.outputs[0] != args.inputs[0]) copy.run(args.outputs[0], 0, args.inputs[0], 0);
    return {};
  });
}

}  // namespace

std::vector<KernelSpec> indexing_kernels() {
  return {
      {"gather", "cpu_gather", accept_any, bind_gather},
      {"scatter_add", "cpu_scatter_add", accept_any, bind_scatter_add},
      {"scatter", "cpu_scatter", accept_any, bind_scatter},
      {"one_hot", "cpu_one_hot", accept_one_hot, bind_one_hot},
      {"dynamic_slice", "cpu_dynamic_slice", accept_any, bind_dynamic_slice},
      {"dynamic_update_slice", "cpu_dynamic_update_slice", accept_any, bind_dynamic_update_slice},
      {"check_range", "cpu_check_range", accept_any, bind_check_range, true},
  };
}

}  // namespace tracefire::cpu
