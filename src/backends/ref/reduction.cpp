// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/ref/oracle.h"

namespace tracefire::ref {
namespace {

using Index = std::vector<int64_t>;

/// Calls fn(result element, input element) for every input element.
template <class Fn>
void fold(Eval& e, Fn fn) {
  Index strides;
  const Index& sizes = e.in[0].sizes;
  const std::vector<int64_t>& axes = e.attrs().ints("axes");
  int64_t stride = 1;
  strides.resize(sizes.size());
  for (size_t axis = sizes.size(); axis-- > 0;) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end()) continue;
    strides[axis] = stride;
    stride *= sizes[axis];
  }
  for_each(sizes, [&](int64_t i, const Index& index) {
    fn(static_cast<size_t>(dot(index, strides)), static_cast<size_t>(i));
  });
}

int64_t reduced_count(const Eval& e) {
  const int64_t results = e.out[0].count();
  return results ? e.in[0].count() / results : 0;
}

void fill(Array* array, double real, Int whole) {
  std::fill(array->real.begin(), array->real.end(), real);
  std::fill(array->whole.begin(), array->whole.end(), whole);
}

/// Sums in long double, so that a float64 kernel is compared with something better.
std::vector<long double> sums(Eval& e) {
  std::vector<long double> sum(e.out[0].real.size());
  fold(e, [&](size_t to, size_t from) { sum[to] += e.in[0].real[from]; });
  return sum;
}

void reduce_sum(Eval& e) {
  if (e.in[0].is_real()) {
    const std::vector<long double> sum = sums(e);
    std::copy(sum.begin(), sum.end(), e.out[0].real.begin());
    return;
  }
  fold(e, [&](size_t to, size_t from) {
    e.out[0].whole[to] = wrap_to(e.out[0].dtype, e.out[0].whole[to] + e.in[0].whole[from]);
  });
}

void reduce_mean(Eval& e) {
  const std::vector<long double> sum = sums(e);
  const long double count = static_cast<long double>(reduced_count(e));
  for (size_t i = 0; i < sum.size(); ++i) e.out[0].real[i] = static_cast<double>(sum[i] / count);
}

void reduce_max(Eval& e) {
  fill(&e.out[0], -INFINITY, e.in[0].is_real() ? 0 : lowest(e.in[0].dtype));
  fold(e, [&](size_t to, size_t from) {
    if (e.in[0].is_real()) {
      const double x = e.in[0].real[from];
      double& y = e.out[0].real[to];
      if (x > y || std::isnan(x)) y = x;
    } else {
      e.out[0].whole[to] = std::max(e.out[0].whole[to], e.in[0].whole[from]);
    }
  });
}

void reduce_min(Eval& e) {
  fill(&e.out[0], INFINITY, e.in[0].is_real() ? 0 : highest(e.in[0].dtype));
  fold(e, [&](size_t to, size_t from) {
    if (e.in[0].is_real()) {
      const double x = e.in[0].real[from];
      double& y = e.out[0].real[to];
      if (x < y || std::isnan(x)) y = x;
    } else {
      e.out[0].whole[to] = std::min(e.out[0].whole[to], e.in[0].whole[from]);
    }
  });
}

void reduce_prod(Eval& e) {
  fill(&e.out[0], 1, 1);
  fold(e, [&](size_t to, size_t from) {
    if (e.in[0].is_real()) {
      e.out[0].real[to] *= e.in[0].real[from];
    } else {
      e.out[0].whole[to] = wrap_to(e.out[0].dtype, e.out[0].whole[to] * e.in[0].whole[from]);
    }
  });
}

void reduce_any(Eval& e) {
  fold(e, [&](size_t to, size_t from) { e.out[0].whole[to] |= e.in[0].whole[from]; });
}

void reduce_all(Eval& e) {
  fill(&e.out[0], 0, 1);
  fold(e, [&](size_t to, size_t from) { e.out[0].whole[to] &= e.in[0].whole[from]; });
}

/// Calls fn(first element, distance between elements, number) for each line along an axis, in
/// row-major order of the other axes.
template <class Fn>
void lines(const Index& sizes, size_t axis, Fn fn) {
  const Index strides = strides_of(sizes);
  Index rest = sizes;
  rest[axis] = 1;
  for_each(rest, [&](int64_t line, const Index& index) {
    fn(static_cast<size_t>(dot(index, strides)), static_cast<size_t>(strides[axis]),
       static_cast<size_t>(line));
  });
}

/// Whether `a` comes before `b` when the largest is first: NaN, then numbers; by value.
bool larger(const Array& x, size_t a, size_t b) {
  if (!x.is_real()) return x.whole[a] > x.whole[b];
  const bool na = std::isnan(x.real[a]), nb = std::isnan(x.real[b]);
  return na || nb ? na && !nb : x.real[a] > x.real[b];
}

bool smaller(const Array& x, size_t a, size_t b) {  // NaN first here too
  if (!x.is_real()) return x.whole[a] < x.whole[b];
  const bool na = std::isnan(x.real[a]), nb = std::isnan(x.real[b]);
  return na || nb ? na && !nb : x.real[a] < x.real[b];
}

template <bool (*before)(const Array&, size_t, size_t)>
void arg(Eval& e) {
  const size_t axis = static_cast<size_t>(e.attrs().integer("axis"));
  const Array& x = e.in[0];
  lines(x.sizes, axis, [&](size_t first, size_t step, size_t line) {
    size_t best = 0;
    for (size_t k = 1; k < static_cast<size_t>(x.sizes[axis]); ++k) {
      if (before(x, first + k * step, first + best * step)) best = k;
    }
    e.out[0].whole[line] = static_cast<Int>(best);
  });
}

/// Running sums, or products.
template <bool product>
void running(Eval& e) {
  const size_t axis = static_cast<size_t>(e.attrs().integer("axis"));
  const bool exclusive = e.attrs().flag("exclusive"), backwards = e.attrs().flag("reverse");
  const Array& x = e.in[0];
  Array& y = e.out[0];
  const size_t size = static_cast<size_t>(x.sizes[axis]);
  lines(x.sizes, axis, [&](size_t first, size_t step, size_t) {
    long double real = product ? 1 : 0;
    Int whole = product ? 1 : 0;
    for (size_t k = 0; k < size; ++k) {
      const size_t at = first + (backwards ? size - 1 - k : k) * step;
      const long double real_before = real;
      const Int whole_before = whole;
      if (x.is_real()) {
        real = product ? real * x.real[at] : real + x.real[at];
        y.real[at] = static_cast<double>(exclusive ? real_before : real);
      } else {
        using Word = unsigned __int128;  // its products wrap around
        const Word a = static_cast<Word>(whole), b = static_cast<Word>(x.whole[at]);
        whole = wrap_to(x.dtype, static_cast<Int>(product ? a * b : a + b));
        y.whole[at] = exclusive ? whole_before : whole;
      }
    }
  });
}

/// Places of the elements of each line in their sorted order; NaN is the largest.
template <bool values>
void sorted(Eval& e) {
  const size_t axis = static_cast<size_t>(e.attrs().integer("axis"));
  const bool descending = e.attrs().flag("descending");
  const Array& x = e.in[0];
  const size_t size = static_cast<size_t>(x.sizes[axis]);
  lines(x.sizes, axis, [&](size_t first, size_t step, size_t) {
    std::vector<size_t> order(size);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const size_t i = first + a * step, j = first + b * step;
      return descending ? larger(x, i, j) : larger(x, j, i);
    });
    for (size_t k = 0; k < size; ++k) {
      const size_t to = first + k * step;
      if constexpr (values) {
        copy_element(x, static_cast<int64_t>(first + order[k] * step), &e.out[0],
                     static_cast<int64_t>(to));
      } else {
        e.out[0].whole[to] = static_cast<Int>(order[k]);
      }
    }
  });
}

void top_k(Eval& e) {
  const Array& x = e.in[0];
  const size_t axis = x.sizes.size() - 1, size = static_cast<size_t>(x.sizes[axis]);
  const size_t k = static_cast<size_t>(e.out[0].sizes[axis]);
  lines(x.sizes, axis, [&](size_t first, size_t, size_t line) {
    std::vector<size_t> order(size);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return larger(x, first + a, first + b); });
    for (size_t i = 0; i < k; ++i) {
      copy_element(x, static_cast<int64_t>(first + order[i]), &e.out[0],
                   static_cast<int64_t>(line * k + i));
      e.out[1].whole[line * k + i] = static_cast<Int>(order[i]);
    }
  });
}

void in_top_k(Eval& e) {
  const int64_t classes = e.in[0].sizes[1], k = e.attrs().integer("k");
  for (int64_t row = 0; row < e.in[0].sizes[0]; ++row) {
    const Int target = e.in[1].whole[static_cast<size_t>(row)];
    if (target < 0 || target >= classes) continue;
    const double* scores = e.in[0].real.data() + row * classes;
    const double own = scores[static_cast<int64_t>(target)];
    bool valid = std::isfinite(own);
    int64_t above = 0;
    for (int64_t i = 0; i < classes; ++i) {
      valid = valid && !std::isnan(scores[i]);
      above += scores[i] > own;
    }
    e.out[0].whole[static_cast<size_t>(row)] = valid && above < k;
  }
}

/// Ascending, NaN last and once.
void unique(Eval& e) {
  const Array& x = e.in[0];
  std::vector<size_t> order(static_cast<size_t>(x.count()));
  std::iota(order.begin(), order.end(), size_t{0});
  const auto before = [&](size_t a, size_t b) {
    if (!x.is_real()) return x.whole[a] < x.whole[b];
    const bool na = std::isnan(x.real[a]), nb = std::isnan(x.real[b]);
    return na || nb ? nb && !na : x.real[a] < x.real[b];
  };
  std::stable_sort(order.begin(), order.end(), before);
  std::vector<size_t> firsts;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || before(order[i - 1], order[i])) firsts.push_back(order[i]);
    e.out[1].whole[order[i]] = static_cast<Int>(firsts.size()) - 1;
  }
  e.out[2].whole[0] = static_cast<Int>(firsts.size());
  const int64_t size = e.attrs().integer("size");
  const int64_t results = size < 0 ? static_cast<int64_t>(firsts.size()) : size;
  e.out[0] = Array(x.dtype, {results});
  for (int64_t i = 0; i < results && !firsts.empty(); ++i) {
    const size_t from = static_cast<size_t>(i) < firsts.size() ? static_cast<size_t>(i) : 0;
    copy_element(x, static_cast<int64_t>(firsts[from]), &e.out[0], i);
  }
}

}  // namespace

std::vector<Entry> reduction_entries() {
  return {{"reduce_sum", reduce_sum},   {"reduce_mean", reduce_mean},
          {"reduce_max", reduce_max},   {"reduce_min", reduce_min},
          {"reduce_prod", reduce_prod}, {"reduce_any", reduce_any},
          {"reduce_all", reduce_all},   {"argmax", arg<larger>},
          {"argmin", arg<smaller>},     {"cumsum", running<false>},
          {"cumprod", running<true>},   {"argsort", sorted<false>},
          {"sort", sorted<true>},       {"top_k", top_k},
          {"in_top_k", in_top_k},       {"unique", unique}};
}

}  // namespace tracefire::ref
