// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "cpu/node_runner.h"

namespace tracefire::test {
namespace {

constexpr DType kF32 = DType::kF32;

double tolerance(DType dtype) {
  return dtype == DType::kF64 ? 1e-13 : dtype == kF32 ? 2e-6 : dtype == DType::kF16 ? 2e-3 : 1.6e-2;
}

/// Softmax or its logarithm of n elements `stride` apart, from `start`.
void softmax_row(const std::vector<double>& x, int64_t start, int64_t n, int64_t stride,
                 bool logarithm, std::vector<double>* y) {
  double most = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max(most, x[static_cast<size_t>(start + i * stride)]);
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[static_cast<size_t>(start + i * stride)] - most);
  for (int64_t i = 0; i < n; ++i) {
    const size_t at = static_cast<size_t>(start + i * stride);
    (*y)[at] = logarithm ? x[at] - most - std::log(sum) : std::exp(x[at] - most) / sum;
  }
}

TEST_CASE("cpu: softmax and its logarithm along every axis, in every floating type") {
  for (DType dtype : {DType::kF64, kF32, DType::kF16, DType::kBF16}) {
    for (const std::vector<int64_t>& sizes :
         {std::vector<int64_t>{4, 10}, {3, 1000}, {2, 5, 6}, {1}, {7, 1}}) {
      const HostTensor x = random_tensor(dtype, sizes, -8, 8, 4);
      for (int64_t axis = 0; axis < static_cast<int64_t>(sizes.size()); ++axis) {
        const int64_t n = sizes[static_cast<size_t>(axis)];
        int64_t inner = 1;
        for (size_t i = static_cast<size_t>(axis) + 1; i < sizes.size(); ++i) inner *= sizes[i];
        for (bool logarithm : {false, true}) {
          std::vector<double> wanted(x.numbers().size());
          for (int64_t row = 0; row < x.elements() / n; ++row) {
            softmax_row(x.numbers(), row / inner * n * inner + row % inner, n, inner, logarithm,
                        &wanted);
          }
          const char* op = logarithm ? "log_softmax" : "softmax";
          const HostTensor got = run_node(op, {x}, {{"axis", axis}})[0];
          CHECK(first_difference(got, wanted, tolerance(dtype)) == -1);
        }
      }
    }
  }
}

TEST_CASE("cpu: softmax of huge, infinite and undefined numbers") {
  const HostTensor huge = tensor(kF32, {2, 2}, {3e38, 3e38, -3e38, 3e38});
  CHECK(run_node("softmax", {huge})[0].numbers() == std::vector<double>{0.5, 0.5, 0, 1});
  const HostTensor odd = tensor(kF32, {3, 2}, {-INFINITY, 1, INFINITY, 1, NAN, 1});
  const HostTensor got = run_node("softmax", {odd})[0];
  CHECK(got.at(0) == 0);
  CHECK(got.at(1) == 1);
  for (int64_t i = 2; i < 6; ++i) CHECK((std::isnan(got.at(i)) || got.at(i) == 0));
  CHECK(std::isnan(got.at(2)));
  CHECK(std::isnan(got.at(4)));
}

TEST_CASE("cpu: cross-entropy, its gradient, and labels that are no class") {
  for (DType dtype : {DType::kF64, kF32, DType::kBF16}) {
    const int64_t rows = 300, classes = 10;
    const HostTensor logits = random_tensor(dtype, {rows, classes}, -5, 5, 3);
    const HostTensor labels = random_tensor(DType::kI32, {rows}, 0, classes, 5);
    const HostTensor scale = random_tensor(dtype, {rows}, 0, 1, 6);
    std::vector<double> loss, grad(static_cast<size_t>(rows * classes));
    for (int64_t row = 0; row < rows; ++row) {
      softmax_row(logits.numbers(), row * classes, classes, 1, false, &grad);
      const size_t label = static_cast<size_t>(row * classes + static_cast<int64_t>(labels.at(row)));
      loss.push_back(-std::log(grad[label]));
      grad[label] -= 1;
      for (int64_t i = 0; i < classes; ++i) grad[static_cast<size_t>(row * classes + i)] *= scale.at(row);
    }
    const HostTensor got = run_node("softmax_cross_entropy", {logits, labels})[0];
    CHECK(first_difference(got, loss, tolerance(dtype)) == -1);
    const HostTensor back = run_node("softmax_cross_entropy_grad", {logits, labels, scale})[0];
    CHECK(first_difference(back, grad, tolerance(dtype)) == -1);
  }
  ErrorWord word;
  RunOptions options;
  options.error = &word;
  const HostTensor logits = tensor(kF32, {3, 2}, {0.5});
  for (double bad : {2.0, -1.0}) {
    run_node("softmax_cross_entropy", {logits, tensor(DType::kI64, {3}, {1, bad, 0})}, {}, options);
    CHECK(word.code == static_cast<uint32_t>(ErrorCode::kIndexOutOfRange));
    CHECK(word.detail == static_cast<int64_t>(bad));
    run_node("softmax_cross_entropy_grad",
             {logits, tensor(DType::kI64, {3}, {1, bad, 0}), tensor(kF32, {3}, {1})}, {}, options);
    CHECK(word.detail == static_cast<int64_t>(bad));
  }
}

TEST_CASE("cpu: Adam's update in every type, also over its operands") {
  for (DType dtype : {DType::kF64, kF32, DType::kBF16}) {
    const int64_t n = 20000;
    const HostTensor p = random_tensor(dtype, {n}, -1, 1, 1), g = random_tensor(dtype, {n}, -1, 1, 2);
    const HostTensor m = random_tensor(dtype, {n}, -0.1, 0.1, 3), v = random_tensor(dtype, {n}, 0, 0.1, 4);
    const HostTensor step = tensor(DType::kI64, {}, {3}), rate = tensor(kF32, {}, {0.001953125});
    const Attrs attrs = {{"beta1", 0.9}, {"beta2", 0.99}, {"epsilon", 1e-7}};
    const auto got = run_node("adam_update", {p, g, m, v, step, rate}, attrs);
    const double alpha = 0.001953125 * std::sqrt(1 - std::pow(0.99, 3)) / (1 - std::pow(0.9, 3));
    std::vector<double> wanted[3];
    for (int64_t i = 0; i < n; ++i) {
      const double mean = m.at(i) + (g.at(i) - m.at(i)) * (1 - 0.9);
      const double square = v.at(i) + (g.at(i) * g.at(i) - v.at(i)) * (1 - 0.99);
      wanted[0].push_back(p.at(i) - alpha * mean / (std::sqrt(square) + 1e-7));
      wanted[1].push_back(mean);
      wanted[2].push_back(square);
    }
    for (size_t i = 0; i < 3; ++i) CHECK(first_difference(got[i], wanted[i], tolerance(dtype)) == -1);
    RunOptions options;
    options.in_place = true;
    CHECK(run_node("adam_update", {p, g, m, v, step, rate}, attrs, options)[0].bytes == got[0].bytes);
  }
}

TEST_CASE("cpu: top_k, in_top_k, unique") {
  const HostTensor x = tensor(kF32, {2, 5}, {1, 5, 5, NAN, 0, -1, -2, -3, -4, -5});
  const auto top = run_node("top_k", {x}, {{"k", int64_t{3}}});
  CHECK(first_difference(top[0], {NAN, 5, 5, -1, -2, -3}, 0) == -1);
  CHECK(top[1].numbers() == std::vector<double>{3, 1, 2, 0, 1, 2});
  const HostTensor scores = tensor(kF32, {5, 3}, {.1, .7, .2, .3, .3, .4, NAN, 1, 0, 1, INFINITY, 0, 1, 1, 1});
  const HostTensor targets = tensor(DType::kI32, {5}, {2, 0, 1, 1, 9});
  CHECK(run_node("in_top_k", {scores, targets}, {{"k", int64_t{2}}})[0].numbers() ==
        std::vector<double>{1, 1, 0, 0, 0});
  const HostTensor mixed = tensor(kF32, {6}, {3, NAN, 1, 3, NAN, 2});
  const auto unique = run_node("unique", {mixed});
  CHECK(unique[2].at(0) == 4);
  CHECK(unique[0].at(0) == 1);
  CHECK(unique[0].at(2) == 3);
  CHECK(std::isnan(unique[0].at(3)));
  CHECK(unique[1].numbers() == std::vector<double>{2, 3, 0, 2, 3, 1});
  const auto fixed = run_node("unique", {tensor(DType::kI64, {4}, {7, 7, 8, 9})}, {{"size", int64_t{2}}});
  CHECK(fixed[0].numbers() == std::vector<double>{7, 8});
  CHECK(fixed[1].numbers() == std::vector<double>{0, 0, 1, 2});
  const auto padded = run_node("unique", {tensor(DType::kBool, {3}, {1, 1, 1})}, {{"size", int64_t{3}}});
  CHECK(padded[0].numbers() == std::vector<double>{1, 1, 1});
  CHECK(padded[2].at(0) == 1);
}

TEST_CASE("cpu: random bits of every width agree, and start anywhere") {
  const HostTensor key = tensor(DType::kU32, {2}, {12345, 678});
  const HostTensor offset = tensor(DType::kI64, {}, {4099});
  for (const char* algorithm : {"threefry2x32", "philox4x32"}) {
    const auto draw = [&](DType dtype, int64_t n, bool moved) {
      std::vector<HostTensor> inputs = {key};
      if (moved) inputs.push_back(offset);
      return run_node("random_bits", inputs,
                      {{"shape", Shape{n}}, {"dtype", dtype}, {"algorithm", std::string(algorithm)}})[0];
    };
    const HostTensor words = draw(DType::kU32, 9000, false);
    const HostTensor later = draw(DType::kU32, 3000, true);
    const HostTensor bytes = draw(DType::kU8, 9000, false), shorts = draw(DType::kU16, 9000, false);
    int wrong = 0;
    for (int64_t i = 0; i < 3000; ++i) {
      wrong += later.at(i) != words.at(i + 4099);
      wrong += bytes.at(i) != std::fmod(words.at(i), 256);
      wrong += shorts.at(i) != std::fmod(words.at(i), 65536);
    }
    CHECK(wrong == 0);
    CHECK(draw(DType::kU64, 10, false).elements() == 10);
    const HostTensor uniform = run_node(
        "random_uniform", {key}, {{"shape", Shape{9000}}, {"algorithm", std::string(algorithm)}})[0];
    double sum = 0;
    for (int64_t i = 0; i < 9000; ++i) {
      wrong += uniform.at(i) != std::floor(words.at(i) / 512) / 8388608;
      sum += uniform.at(i);
    }
    CHECK(wrong == 0);
    CHECK(std::fabs(sum / 9000 - 0.5) < 0.02);
  }
}

TEST_CASE("cpu: strings") {
  const HostTensor words = string_tensor({3}, {"Abc", "", "z\xc3\xa4Z"});
  CHECK(run_node("string_length", {words})[0].numbers() == std::vector<double>{3, 0, 4});
  CHECK(run_node("string_upper", {words})[0].strings == std::vector<std::string>{"ABC", "", "Z\xc3\xa4Z"});
  CHECK(run_node("string_lower", {words})[0].strings == std::vector<std::string>{"abc", "", "z\xc3\xa4z"});
  const HostTensor tails = string_tensor({2, 1}, {"x", "y"});
  CHECK(run_node("string_join", {words, tails}, {{"separator", std::string("-")}})[0].strings ==
        std::vector<std::string>{"Abc-x", "-x", "z\xc3\xa4Z-x", "Abc-y", "-y", "z\xc3\xa4Z-y"});
  CHECK(run_node("as_string", {tensor(DType::kI8, {2}, {-5, 7})})[0].strings ==
        std::vector<std::string>{"-5", "7"});
  CHECK(run_node("as_string", {tensor(DType::kBool, {2}, {0, 1})})[0].strings ==
        std::vector<std::string>{"false", "true"});
  CHECK(run_node("as_string", {tensor(kF32, {4}, {0.1f, 1e10, NAN, -INFINITY})})[0].strings ==
        std::vector<std::string>{"0.1", "1e+10", "nan", "-inf"});
  CHECK(run_node("as_string", {tensor(DType::kF64, {1}, {2.0 / 3})}, {{"precision", int64_t{3}}})[0].strings ==
        std::vector<std::string>{"0.667"});
}

}  // namespace
}  // namespace tracefire::test
