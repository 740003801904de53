// SPDX-License-Identifier: Apache-2.0
// Selection by order: top_k, in_top_k, unique.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/move/numbers.h"
#include "backends/cpu/reduce/arg_extreme.h"

namespace tracefire::cpu {
namespace {

constexpr int64_t kGrain = 8 * 1024;

BoundLaunch bind_top_k(const NodeView& node) {
  const std::vector<int64_t> sizes = sizes_of(node.inputs[0]);
  const int64_t n = sizes.back(), rows = product(sizes, 0, sizes.size() - 1);
  const int64_t k = sizes_of(node.outputs[0]).back();
  const DType dtype = node.inputs[0].dtype, index = node.outputs[1].dtype;
  if (k > n) {
    return error(ErrorCode::kBadAttribute, "attribute 'k' is ", k, " for a last axis of size ", n,
                 "; it must be from 0 to that size.");
  }
  return make_launch("cpu_top_k", [=](const LaunchArgs& args) -> Status {
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n));
    with_real(dtype, [&](auto element) {
      using T = decltype(element);
      parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
        std::vector<int64_t> order(static_cast<size_t>(n));
        for (int64_t row = begin; row < end; ++row) {
          const T* x = static_cast<const T*>(args.inputs[0]) + row * n;
          std::iota(order.begin(), order.end(), 0);
          std::partial_sort(order.begin(), order.begin() + k, order.end(),
                            [x](int64_t i, int64_t j) {
                              if (greater_nan_first(number(x[i]), number(x[j]))) return true;
                              if (greater_nan_first(number(x[j]), number(x[i]))) return false;
                              return i < j;
                            });
          T* values = static_cast<T*>(args.outputs[0]) + row * k;
          char* indices =
              static_cast<char*>(args.outputs[1]) + static_cast<size_t>(row * k) * dtype_size(index);
          for (int64_t i = 0; i < k; ++i) {
            const int64_t from = order[static_cast<size_t>(i)];
            values[i] = x[from];
            store_number(index, indices + static_cast<size_t>(i) * dtype_size(index), from);
          }
        }
      });
    });
    return {};
  });
}

/// True where fewer than k classes have a larger prediction than the target's.
template <class T>
bool row_in_top_k(const T* x, int64_t classes, int64_t target, int64_t k) {
  if (target < 0 || target >= classes) return false;
  const Computed<T> wanted = number(x[target]);
  if (!std::isfinite(wanted)) return false;
  int64_t larger = 0;
  for (int64_t i = 0; i < classes; ++i) {
    const Computed<T> value = number(x[i]);
    if (is_nan(value)) return false;
    larger += value > wanted;
  }
  return larger < k;
}

BoundLaunch bind_in_top_k(const NodeView& node) {
  const std::vector<int64_t> sizes = sizes_of(node.inputs[0]);
  const int64_t rows = sizes[0], classes = sizes[1], k = node.node->attrs.integer("k");
  const DType dtype = node.inputs[0].dtype;
  const ReadInteger read = integer_reader(node.inputs[1].dtype);
  return make_launch("cpu_in_top_k", [=](const LaunchArgs& args) -> Status {
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, classes));
    with_floating(dtype, [&](auto element) {
      using T = decltype(element);
      const T* x = static_cast<const T*>(args.inputs[0]);
      uint8_t* y = static_cast<uint8_t*>(args.outputs[0]);
      parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          y[row] = row_in_top_k(x + row * classes, classes, read(args.inputs[1], row), k);
        }
      });
    });
    return {};
  });
}

/// Fills `inverse` (as long as x) and returns, for each different number in ascending order, the
/// place where it comes first. NaN comes last and once.
template <class T>
std::vector<int64_t> unique_places(const T* x, int64_t n, std::vector<int64_t>* inverse) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [x](int64_t i, int64_t j) {
    const Computed<T> a = number(x[i]), b = number(x[j]);
    if (a < b || (!is_nan(a) && is_nan(b))) return true;
    if (b < a || (is_nan(a) && !is_nan(b))) return false;
    return i < j;
  });
  inverse->resize(static_cast<size_t>(n));
  std::vector<int64_t> places;
  for (int64_t i : order) {
    const bool same = !places.empty() && (number(x[places.back()]) == number(x[i]) ||
                                          (is_nan(number(x[places.back()])) &&
                                           is_nan(number(x[i]))));
    if (!same) places.push_back(i);
    (*inverse)[static_cast<size_t>(i)] = static_cast<int64_t>(places.size()) - 1;
  }
  return places;
}

BoundLaunch bind_unique(const NodeView& node) {
  const int64_t n = elements_of(node.inputs[0]), fixed = node.node->attrs.integer("size");
  const DType dtype = node.inputs[0].dtype, index = node.outputs[1].dtype;
  return make_launch("cpu_unique", [=](const LaunchArgs& args) -> Status {
    const auto run = [&](auto element) {
      using T = decltype(element);
      const T* x = static_cast<const T*>(args.inputs[0]);
      T* values = static_cast<T*>(args.outputs[0]);
      std::vector<int64_t> inverse;
      const std::vector<int64_t> places = unique_places(x, n, &inverse);
      const int64_t count = static_cast<int64_t>(places.size());
      const int64_t room = fixed < 0 ? count : fixed;
      for (int64_t i = 0; i < room; ++i) {
        if (count == 0) {
          values[i] = T();
        } else {
          values[i] = x[places[static_cast<size_t>(i < count ? i : 0)]];
        }
      }
      char* to = static_cast<char*>(args.outputs[1]);
      for (int64_t i = 0; i < n; ++i) {
        store_number(index, to + static_cast<size_t>(i) * dtype_size(index),
                     inverse[static_cast<size_t>(i)]);
      }
      store_number(index, args.outputs[2], count);
    };
    if (dtype == DType::kBool) {
      run(uint8_t());
    } else {
      with_real(dtype, run);
    }
    return {};
  });
}

}  // namespace

std::vector<KernelSpec> selection_kernels() {
  return {
      {"top_k", "cpu_top_k", accept_any, bind_top_k},
      {"in_top_k", "cpu_in_top_k", accept_any, bind_in_top_k},
      {"unique", "cpu_unique", accept_any, bind_unique},
  };
}

}  // namespace tracefire::cpu
