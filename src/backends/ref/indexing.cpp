// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backends/ref/oracle.h"

namespace tracefire::ref {
namespace {

using Index = std::vector<int64_t>;

size_t axis_of(const Eval& e) { return static_cast<size_t>(e.attrs().integer("axis")); }

/// The index as a number from 0 to size - 1; -1, and a failure, where it is outside.
int64_t checked(Eval& e, Int index, int64_t size) {
  if (index >= 0 && index < size) return static_cast<int64_t>(index);
  e.fail(ErrorCode::kIndexOutOfRange, static_cast<int64_t>(index));
  return -1;
}

/// The number that stands in `indices` for an element of the array whose axis `axis` they replace.
Int index_at(const Array& indices, const Index& index, size_t axis) {
  const Index part(index.begin() + static_cast<std::ptrdiff_t>(axis),
                   index.begin() + static_cast<std::ptrdiff_t>(axis) + indices.rank());
  return indices.whole[static_cast<size_t>(dot(part, strides_of(indices.sizes)))];
}

/// `index` with the axes of indices (from `axis` on, `rank` of them) replaced by one number.
Index with_index(const Index& index, size_t axis, int rank, int64_t at) {
  Index result(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(axis));
  result.push_back(at);
  result.insert(result.end(), index.begin() + static_cast<std::ptrdiff_t>(axis) + rank,
                index.end());
  return result;
}

void gather(Eval& e) {
  const size_t axis = axis_of(e);
  const Array &x = e.in[0], &indices = e.in[1];
  const Index strides = strides_of(x.sizes);
  for_each(e.out[0].sizes, [&](int64_t i, const Index& index) {
    const int64_t at = checked(e, index_at(indices, index, axis), x.sizes[axis]);
    if (at < 0) return;
    copy_element(x, dot(with_index(index, axis, indices.rank(), at), strides), &e.out[0], i);
  });
}

void scatter_add(Eval& e) {
  const size_t axis = axis_of(e);
  const Array &updates = e.in[0], &indices = e.in[1];
  Array& y = e.out[0];
  const Index strides = strides_of(y.sizes);
  for_each(updates.sizes, [&](int64_t i, const Index& index) {
    const int64_t at = checked(e, index_at(indices, index, axis), y.sizes[axis]);
    if (at < 0) return;
    const size_t place =
        static_cast<size_t>(dot(with_index(index, axis, indices.rank(), at), strides));
    if (y.is_real()) {
      y.real[place] += updates.real[static_cast<size_t>(i)];
    } else {
      y.whole[place] = wrap_to(y.dtype, y.whole[place] + updates.whole[static_cast<size_t>(i)]);
    }
  });
}

double product(double x, double y) { return x * y; }
Int product(Int x, Int y) {  // wraps around instead of overflowing
  return static_cast<Int>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y));
}

/// What an element becomes when `update` falls on it.
template <class T>
T combined(const std::string& reduction, T old, T update) {
  if (reduction == "add") return old + update;
  if (reduction == "mul") return product(old, update);
  if (reduction == "update" || old != old || update != update) {
    return reduction != "update" && old != old ? old : update;
  }
  return reduction == "max" ? std::max(old, update) : std::min(old, update);
}

void scatter(Eval& e) {
  const Array &x = e.in[0], &indices = e.in[1], &updates = e.in[2];
  const std::string reduction = e.attrs().text("reduction");
  Array& y = e.out[0];
  y = x;
  const size_t depth = static_cast<size_t>(indices.sizes.back());
  const size_t lead = indices.sizes.size() - 1;
  const Index strides = strides_of(x.sizes), lead_strides = strides_of(indices.sizes);
  for_each(updates.sizes, [&](int64_t i, const Index& index) {
    int64_t from = 0, to = 0;
    for (size_t k = 0; k < lead; ++k) from += index[k] * lead_strides[k];
    for (size_t k = 0; k < depth; ++k) {
      const Int named = indices.whole[static_cast<size_t>(from) + k];
      const int64_t at = checked(e, named, x.sizes[k]);
      if (at < 0) return;
      to += at * strides[k];
    }
    for (size_t k = depth; k < x.sizes.size(); ++k) to += index[lead + k - depth] * strides[k];
    const size_t target = static_cast<size_t>(to), source = static_cast<size_t>(i);
    if (y.is_real()) {
      y.real[target] = combined(reduction, y.real[target], updates.real[source]);
    } else {
      y.whole[target] =
          wrap_to(y.dtype, combined(reduction, y.whole[target], updates.whole[source]));
    }
  });
}

void one_hot(Eval& e) {
  const size_t axis = axis_of(e);
  const Index strides = strides_of(e.in[0].sizes);
  for_each(e.out[0].sizes, [&](int64_t i, const Index& index) {
    Index outer = index;
    outer.erase(outer.begin() + static_cast<std::ptrdiff_t>(axis));
    const bool hot = e.in[0].whole[static_cast<size_t>(dot(outer, strides))] == index[axis];
    if (e.out[0].is_real()) {
      e.out[0].real[static_cast<size_t>(i)] = hot;
    } else {
      e.out[0].whole[static_cast<size_t>(i)] = hot;
    }
  });
}

void gather_along(Eval& e) {
  const size_t axis = axis_of(e);
  const Index strides = strides_of(e.in[0].sizes);
  for_each(e.out[0].sizes, [&](int64_t i, const Index& index) {
    Index from = index;
    from[axis] = checked(e, e.in[1].whole[static_cast<size_t>(i)], e.in[0].sizes[axis]);
    if (from[axis] >= 0) copy_element(e.in[0], dot(from, strides), &e.out[0], i);
  });
}

/// Start of a slice of `size` entries, or -1 with a failure where it does not lie inside `limit`.
int64_t start_of(Eval& e, const Array& start, int64_t size, int64_t limit) {
  const Int at = start.whole[0];
  if (at >= 0 && at + size <= limit) return static_cast<int64_t>(at);
  e.fail(ErrorCode::kIndexOutOfRange, static_cast<int64_t>(at));
  return -1;
}

void dynamic_slice(Eval& e) {
  const size_t axis = axis_of(e);
  const int64_t start = start_of(e, e.in[1], e.out[0].sizes[axis], e.in[0].sizes[axis]);
  if (start < 0) return;
  const Index strides = strides_of(e.in[0].sizes);
  for_each(e.out[0].sizes, [&](int64_t i, const Index& index) {
    copy_element(e.in[0], dot(index, strides) + start * strides[axis], &e.out[0], i);
  });
}

void dynamic_update_slice(Eval& e) {
  const size_t axis = axis_of(e);
  e.out[0] = e.in[0];
  const int64_t start = start_of(e, e.in[2], e.in[1].sizes[axis], e.in[0].sizes[axis]);
  if (start < 0) return;
  const Index strides = strides_of(e.out[0].sizes);
  for_each(e.in[1].sizes, [&](int64_t i, const Index& index) {
    copy_element(e.in[1], i, &e.out[0], dot(index, strides) + start * strides[axis]);
  });
}

void check_range(Eval& e) {
  e.out[0] = e.in[0];
  const int64_t limit = e.attrs().shape("limit").sizes()[0];
  for (Int value : e.in[0].whole) checked(e, value, limit);
}

}  // namespace

std::vector<Entry> indexing_entries() {
  return {{"gather", gather},
          {"scatter_add", scatter_add},
          {"scatter", scatter},
          {"one_hot", one_hot},
          {"gather_along", gather_along},
          {"dynamic_slice", dynamic_slice},
          {"dynamic_update_slice", dynamic_update_slice},
          {"check_range", check_range}};
}

}  // namespace tracefire::ref
