// SPDX-License-Identifier: Apache-2.0
// Composites that run as one kernel: softmax, its logarithm, cross-entropy, Adam's update.

#include <algorithm>

#include "backends/cpu/composite/rows.h"
#include "backends/cpu/kernel_table.h"

namespace tracefire::cpu {
namespace {

constexpr int64_t kGrain = 4 * 1024;

int64_t row_grain(int64_t n) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n)); }

template <bool logarithm>
BoundLaunch bind_softmax(const NodeView& node) {
  const std::vector<int64_t> sizes = sizes_of(node.inputs[0]);
  const size_t axis = static_cast<size_t>(node.node->attrs.integer("axis"));
  const int64_t n = sizes[axis], inner = product(sizes, axis + 1, sizes.size());
  const int64_t rows = product(sizes, 0, axis) * inner;
  const DType dtype = node.inputs[0].dtype;
  const char* symbol = logarithm ? "cpu_log_softmax" : "cpu_softmax";
  return make_launch(symbol, [=](const LaunchArgs& args) -> Status {
    if (n == 0) return {};
    with_floating(dtype, [&](auto element) {
      using T = decltype(element);
      using C = Computed<T>;
      parallel_for(rows, row_grain(n), [&](int64_t begin, int64_t end) {
        RowBuffer<T> in(n), out(n);
        for (int64_t row = begin; row < end; ++row) {
          const int64_t start = row / inner * n * inner + row % inner;
          const C* x = in.read(static_cast<const T*>(args.inputs[0]) + start, inner);
          T* to = static_cast<T*>(args.outputs[0]) + start;
          C* y = out.target(to, inner);
          const C most = row_max(x, n);
          if constexpr (logarithm) {
            std::vector<C>& spare = scratch_row<C>(n);
            const double sum = exp_sum(spare.data(), x, most, n);
            row_subtract(y, x, most, static_cast<C>(std::log(sum)), n);
          } else {
            const double sum = exp_sum(y, x, most, n);
            row_scale(y, y, C(1), static_cast<C>(sum), n);
          }
          out.write(to, inner, y);
        }
      });
    });
    return {};
  });
}

/// Logits [rows, classes], labels [rows].
struct CrossEntropy {
  int64_t rows, classes;
  DType dtype;
  ReadInteger read;

  explicit CrossEntropy(const NodeView& node)
      : rows(elements_of(node.inputs[1])),
        classes(sizes_of(node.inputs[0]).back()),
        dtype(node.inputs[0].dtype),
        read(integer_reader(node.inputs[1].dtype)) {}

  /// The label of a row; -1 (noted) where it is no class.
  int64_t label(const LaunchArgs& args, int64_t row, FirstFailure* wrong) const {
    const int64_t label = read(args.inputs[1], row);
    if (label >= 0 && label < classes) return label;
    wrong->add(row);
    return -1;
  }
  /// Calls body(element of the type, first row, behind the last, failures) for parts of the rows,
  /// and reports the first wrong label.
  template <class Body>
  Status run(const LaunchArgs& args, Body body) const {
    FirstFailure wrong;
    with_floating(dtype, [&](auto element) {
      parallel_for(rows, row_grain(classes),
                   [&](int64_t begin, int64_t end) { body(element, begin, end, &wrong); });
    });
    if (wrong.any()) report(args, ErrorCode::kIndexOutOfRange, read(args.inputs[1], wrong.index()));
    return {};
  }
};

BoundLaunch bind_cross_entropy(const NodeView& node) {
  const CrossEntropy shape(node);
  return make_launch("cpu_softmax_cross_entropy", [=](const LaunchArgs& args) -> Status {
    const int64_t n = shape.classes;
    return shape.run(args, [&](auto element, int64_t begin, int64_t end, FirstFailure* wrong) {
      using T = decltype(element);
      using C = Computed<T>;
      RowBuffer<T> in(n);
      for (int64_t row = begin; row < end; ++row) {
        const int64_t label = shape.label(args, row, wrong);
        C loss = 0;
        if (label >= 0) {
          const C* x = in.read(static_cast<const T*>(args.inputs[0]) + row * n, 1);
          const C most = row_max(x, n);
          const double sum = exp_sum(scratch_row<C>(n).data(), x, most, n);
          loss = static_cast<C>(std::log(sum)) - (x[label] - most);
        }
        static_cast<T*>(args.outputs[0])[row] = static_cast<T>(loss);
      }
    });
  });
}

BoundLaunch bind_cross_entropy_grad(const NodeView& node) {
  const CrossEntropy shape(node);
  return make_launch("cpu_softmax_cross_entropy_grad", [=](const LaunchArgs& args) -> Status {
    const int64_t n = shape.classes;
    return shape.run(args, [&](auto element, int64_t begin, int64_t end, FirstFailure* wrong) {
      using T = decltype(element);
      using C = Computed<T>;
      RowBuffer<T> in(n), out(n);
      for (int64_t row = begin; row < end; ++row) {
        const int64_t label = shape.label(args, row, wrong);
        if (label < 0) continue;
        const C* x = in.read(static_cast<const T*>(args.inputs[0]) + row * n, 1);
        const C g = number(static_cast<const T*>(args.inputs[2])[row]);
        T* to = static_cast<T*>(args.outputs[0]) + row * n;
        C* y = out.target(to, 1);
        const C most = row_max(x, n);
        const C sum = static_cast<C>(exp_sum(y, x, most, n));
        const C taken = (y[label] / sum - C(1)) * g;
        row_scale(y, y, g, sum, n);
        y[label] = taken;
        out.write(to, 1, y);
      }
    });
  });
}

/// beta1 and the like of a node, for one step number and learning rate.
struct AdamSettings {
  double beta1, beta2, epsilon;
  double alpha(double step, double learning_rate) const {
    return learning_rate * std::sqrt(1 - std::pow(beta2, step)) / (1 - std::pow(beta1, step));
  }
};

void adam_range(const AdamSettings& settings, double alpha, const double* const in[4],
                double* const out[3], int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double p = in[0][i], g = in[1][i], m0 = in[2][i], v0 = in[3][i];
    const double m = m0 + (g - m0) * (1 - settings.beta1);
    const double v = v0 + (g * g - v0) * (1 - settings.beta2);
    out[0][i] = p - m * alpha / (std::sqrt(v) + settings.epsilon);
    out[1][i] = m;
    out[2][i] = v;
  }
}
void adam_range(const AdamSettings& settings, double alpha, const float* const in[4],
                float* const out[3], int64_t n) {
  const AdamNumbers numbers{static_cast<float>(alpha), static_cast<float>(1 - settings.beta1),
                            static_cast<float>(1 - settings.beta2),
                            static_cast<float>(settings.epsilon)};
  row_functions().adam(numbers, in, out, n);
}
/// Narrow types, a piece at a time in f32.
template <class T>
void adam_range(const AdamSettings& settings, double alpha, const T* const in[4], T* const out[3],
                int64_t n) {
  constexpr int64_t kPiece = 512;
  const size_t dtype = static_cast<size_t>(DTypeOf<T>::value);
  alignas(64) float memory[4][kPiece];
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t count = std::min(kPiece, n - i);
    const float* wide_in[4];
    for (int k = 0; k < 4; ++k) {
      tile_table().loads[dtype](memory[k], in[k] + i, nullptr, nullptr, count);
      wide_in[k] = memory[k];
    }
    float* const wide_out[3] = {memory[0], memory[2], memory[3]};
    adam_range(settings, alpha, wide_in, wide_out, count);
    for (int k = 0; k < 3; ++k) {
      tile_table().stores[dtype](out[k] + i, wide_out[k], nullptr, nullptr, count);
    }
  }
}

BoundLaunch bind_adam(const NodeView& node) {
  const Attrs& attrs = node.node->attrs;
  const AdamSettings settings{attrs.real("beta1"), attrs.real("beta2"), attrs.real("epsilon")};
  const DType dtype = node.inputs[0].dtype, step_type = node.inputs[4].dtype;
  const DType rate_type = node.inputs[5].dtype;
  const int64_t elements = elements_of(node.inputs[0]);
  return make_launch("cpu_adam", [=](const LaunchArgs& args) -> Status {
    const double alpha = settings.alpha(load_number(step_type, args.inputs[4]),
                                        load_number(rate_type, args.inputs[5]));
    with_floating(dtype, [&](auto element) {
      using T = decltype(element);
      parallel_for(elements, 16 * 1024, [&](int64_t begin, int64_t end) {
        const T* in[4];
        T* out[3];
        for (size_t k = 0; k < 4; ++k) in[k] = static_cast<const T*>(args.inputs[k]) + begin;
        for (size_t k = 0; k < 3; ++k) out[k] = static_cast<T*>(args.outputs[k]) + begin;
        adam_range(settings, alpha, in, out, end - begin);
      });
    });
    return {};
  });
}

}  // namespace

std::vector<KernelSpec> composite_kernels() {
  return {
      {"softmax", "cpu_softmax", accept_any, bind_softmax<false>},
      {"log_softmax", "cpu_log_softmax", accept_any, bind_softmax<true>},
      {"softmax_cross_entropy", "cpu_softmax_cross_entropy", accept_any, bind_cross_entropy},
      {"softmax_cross_entropy_grad", "cpu_softmax_cross_entropy_grad", accept_any,
       bind_cross_entropy_grad},
      {"adam_update", "cpu_adam", accept_any, bind_adam, true},
  };
}

}  // namespace tracefire::cpu
