// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tracefire/error.h"
#include "tracefire/nn.h"
#include "tracefire/ops.h"

namespace tracefire::testing {

/// What Keras on JAX gave: tests/nn/data/keras.json, made by make_values.py beside it.
const nlohmann::json& keras_values();

/// Checks numbers one by one: |got - expected| <= rtol |expected| + atol.
void check_close(const std::vector<double>& got, const std::vector<double>& expected, double rtol,
                 double atol = 0);
inline void check_close(const Tensor& got, const nlohmann::json& expected, double rtol,
                        double atol = 0) {
  check_close(cast(got, DType::kF64).values<double>(), expected.get<std::vector<double>>(), rtol,
              atol);
}

/// f32 numbers that keras.random.uniform(sizes, low, high, seed=seed) gives.
inline Tensor draw(const std::vector<int64_t>& sizes, double low, double high, uint32_t seed) {
  return nn::uniform(low, high, seed)(Shape::of(sizes), DType::kF32);
}
/// int32 labels 0 ... classes - 1, as labels() of make_values.py.
inline Tensor draw_labels(int64_t rows, int classes, uint32_t seed) {
  const Tensor scale = Tensor::scalar(static_cast<float>(classes));
  return cast(mul(draw({rows}, 0, 1, seed), scale), DType::kI32);
}

/// Code of the error that `work` throws, or 0; its text goes to `text`.
template <class Work>
int error_of(Work work, std::string* text = nullptr) {
  try {
    work();
  } catch (const Error& error) {
    if (text != nullptr) *text = error.what();
    return error.number();
  }
  return 0;
}

}  // namespace tracefire::testing
