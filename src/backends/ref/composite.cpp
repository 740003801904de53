// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "backends/ref/oracle.h"

namespace tracefire::ref {
namespace {

/// Softmax or its logarithm along each line of `axis`.
void softmax_lines(const Array& x, size_t axis, bool logarithm, std::vector<double>* y) {
  const std::vector<int64_t> strides = strides_of(x.sizes);
  std::vector<int64_t> rest = x.sizes;
  rest[axis] = 1;
  const size_t size = static_cast<size_t>(x.sizes[axis]);
  const size_t step = static_cast<size_t>(strides[axis]);
  y->resize(x.real.size());
  if (size == 0) return;
  for_each(rest, [&](int64_t, const std::vector<int64_t>& index) {
    const size_t first = static_cast<size_t>(dot(index, strides));
    double top = -INFINITY;
    for (size_t k = 0; k < size; ++k) {
      const double value = x.real[first + k * step];
      if (value > top || std::isnan(value)) top = value;
    }
    long double sum = 0;
    for (size_t k = 0; k < size; ++k) sum += std::exp(x.real[first + k * step] - top);
    for (size_t k = 0; k < size; ++k) {
      const double low = x.real[first + k * step] - top;
      (*y)[first + k * step] = logarithm ? low - static_cast<double>(std::log(sum))
                                         : std::exp(low) / static_cast<double>(sum);
    }
  });
}

template <bool logarithm>
void softmax(Eval& e) {
  const size_t axis = static_cast<size_t>(e.attrs().integer("axis"));
  softmax_lines(e.in[0], axis, logarithm, &e.out[0].real);
}

/// The class that labels[row] names, or -1 and a failure.
int64_t label_of(Eval& e, int64_t row, int64_t classes) {
  const Int label = e.in[1].whole[static_cast<size_t>(row)];
  if (label >= 0 && label < classes) return static_cast<int64_t>(label);
  e.fail(ErrorCode::kIndexOutOfRange, static_cast<int64_t>(label));
  return -1;
}

void cross_entropy(Eval& e) {
  const Array& logits = e.in[0];
  const int64_t classes = logits.sizes.back();
  std::vector<double> logs;
  softmax_lines(logits, logits.sizes.size() - 1, true, &logs);
  for (int64_t row = 0; row < e.in[1].count(); ++row) {
    const int64_t label = label_of(e, row, classes);
    if (label < 0) continue;
    e.out[0].real[static_cast<size_t>(row)] = -logs[static_cast<size_t>(row * classes + label)];
  }
}

void cross_entropy_grad(Eval& e) {
  const Array& logits = e.in[0];
  const int64_t classes = logits.sizes.back();
  std::vector<double> p;
  softmax_lines(logits, logits.sizes.size() - 1, false, &p);
  for (int64_t row = 0; row < e.in[1].count(); ++row) {
    const int64_t label = label_of(e, row, classes);
    for (int64_t k = 0; k < classes; ++k) {
      const size_t at = static_cast<size_t>(row * classes + k);
      e.out[0].real[at] = (p[at] - (k == label ? 1 : 0)) * e.in[2].real[static_cast<size_t>(row)];
    }
  }
}

void adam_update(Eval& e) {
  const double beta1 = e.attrs().real("beta1"), beta2 = e.attrs().real("beta2");
  const double step = e.in[4].number(0), rate = e.in[5].real[0];
  const double alpha = rate * std::sqrt(1 - std::pow(beta2, step)) / (1 - std::pow(beta1, step));
  for (size_t i = 0; i < e.in[0].real.size(); ++i) {
    const double grad = e.in[1].real[i];
    const double m = e.in[2].real[i] + (grad - e.in[2].real[i]) * (1 - beta1);
    const double v = e.in[3].real[i] + (grad * grad - e.in[3].real[i]) * (1 - beta2);
    e.out[0].real[i] = e.in[0].real[i] - m * alpha / (std::sqrt(v) + e.attrs().real("epsilon"));
    e.out[1].real[i] = m;
    e.out[2].real[i] = v;
  }
}

}  // namespace

std::vector<Entry> composite_entries() {
  return {{"softmax", softmax<false>},
          {"log_softmax", softmax<true>},
          {"softmax_cross_entropy", cross_entropy},
          {"softmax_cross_entropy_grad", cross_entropy_grad},
          {"adam_update", adam_update}};
}

}  // namespace tracefire::ref
