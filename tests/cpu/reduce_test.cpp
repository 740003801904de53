// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "backends/cpu/reduce/reduce_table.h"
#include "cpu/node_runner.h"

namespace tracefire::test {
namespace {

constexpr DType kF32 = DType::kF32;

/// Folds x over axes in double, in row-major order of x.
std::vector<double> fold(const HostTensor& x, const std::vector<int64_t>& axes, double init,
                         const std::function<double(double, double)>& step) {
  std::vector<int64_t> stride(x.sizes.size(), 0);
  int64_t results = 1;
  for (size_t axis = x.sizes.size(); axis-- > 0;) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end()) continue;
    stride[axis] = results;
    results *= x.sizes[axis];
  }
  std::vector<double> out(static_cast<size_t>(results), init);
  for (int64_t i = 0; i < x.elements(); ++i) {
    int64_t rest = i, at = 0;
    for (size_t axis = x.sizes.size(); axis-- > 0;) {
      at += rest % x.sizes[axis] * stride[axis];
      rest /= x.sizes[axis];
    }
    double& slot = out[static_cast<size_t>(at)];
    slot = step(slot, x.at(i));
  }
  return out;
}

double add(double a, double b) { return a + b; }
double multiply(double a, double b) { return a * b; }
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

struct Case {
  std::vector<int64_t> sizes, axes;
};
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{7}, {0}},           {{}, {}},               {{5, 6}, {0}},
      {{5, 6}, {1}},        {{5, 6}, {0, 1}},       {{5, 6}, {}},
      {{3, 4, 5}, {1}},     {{3, 4, 5}, {0, 2}},    {{2, 3, 4, 5}, {0, 2}},
      {{2, 3, 4, 5}, {1, 3}}, {{1, 9, 1}, {1}},     {{100000}, {0}},
      {{700, 600}, {0}},    {{4, 70000}, {1}},      {{3000, 17}, {0}},
      {{2, 1500, 40}, {0, 1}}, {{40, 3, 1100}, {0, 2}}, {{2000, 3}, {1}}};
  return all;
}

void check(const char* op, DType dtype, const Case& c, double low, double high, double init,
           double (*step)(double, double), double tolerance, bool mean = false) {
  const HostTensor x = random_tensor(dtype, c.sizes, low, high, 3);
  std::vector<double> wanted = fold(x, c.axes, init, step);
  if (mean) {
    const double count = static_cast<double>(x.elements()) / static_cast<double>(wanted.size());
    for (double& value : wanted) value /= count;
  }
  RunOptions options;
  const HostTensor got = run_node(op, {x}, {{"axes", c.axes}})[0];
  INFO(op, " of ", dtype_name(dtype), " ", Shape::of(c.sizes).str(), " over ", Shape::of(c.axes).str());
  CHECK(first_difference(got, wanted, tolerance) == -1);
  options.one_thread = true;
  CHECK(run_node(op, {x}, {{"axes", c.axes}}, options)[0].bytes == got.bytes);
}

TEST_CASE("cpu: reductions over any axes, the same bits with one thread") {
  for (const Case& c : cases()) {
    check("reduce_sum", kF32, c, -1, 1, 0, add, 4e-6);
    check("reduce_sum", DType::kF64, c, -1, 1, 0, add, 1e-12);
    check("reduce_sum", DType::kI32, c, -9, 9, 0, add, 0);
    check("reduce_mean", kF32, c, 0, 1, 0, add, 1e-6, true);
    check("reduce_mean", DType::kBF16, c, 0, 1, 0, add, 8e-3, true);
    check("reduce_max", kF32, c, -5, 5, -INFINITY, larger, 0);
    check("reduce_min", DType::kI16, c, -500, 500, 32767, smaller, 0);
    check("reduce_max", DType::kF16, c, -5, 5, -INFINITY, larger, 0);
  }
  for (const Case& c : {Case{{3, 4, 5}, {1}}, Case{{3, 40}, {1}}, Case{{40, 3}, {0}}}) {
    check("reduce_prod", kF32, c, 0.5, 2, 1, multiply, 2e-6);
    check("reduce_prod", DType::kF64, c, 0.5, 2, 1, multiply, 1e-12);
    check("reduce_prod", DType::kI64, c, -2, 3, 1, multiply, 0);
  }
}

TEST_CASE("cpu: sums of many equal numbers keep their digits") {
  const int64_t n = 3000001;
  const HostTensor x = tensor(kF32, {n}, {0.1f});
  const double wanted = static_cast<double>(0.1f) * static_cast<double>(n);
  const double got = run_node("reduce_sum", {x}, {{"axes", std::vector<int64_t>{0}}})[0].at(0);
  CHECK(std::fabs(got - wanted) <= 3e-7 * wanted);
  const HostTensor halves = tensor(DType::kF16, {65536}, {0.25});
  CHECK(run_node("reduce_sum", {halves}, {{"axes", std::vector<int64_t>{0}}})[0].at(0) == 16384);
}

TEST_CASE("cpu: reductions of nothing") {
  const HostTensor none = tensor(kF32, {3, 0}, {0.0});
  const Attrs axis = {{"axes", std::vector<int64_t>{1}}};
  CHECK(first_difference(run_node("reduce_sum", {none}, axis)[0], {0, 0, 0}, 0) == -1);
  CHECK(first_difference(run_node("reduce_prod", {none}, axis)[0], {1, 1, 1}, 0) == -1);
  CHECK(first_difference(run_node("reduce_mean", {none}, axis)[0], {NAN, NAN, NAN}, 0) == -1);
  CHECK(run_node("reduce_max", {none}, axis)[0].at(0) == -INFINITY);
  CHECK(run_node("reduce_min", {tensor(DType::kI8, {1, 0}, {0.0})}, axis)[0].at(0) == 127);
  CHECK(run_node("reduce_all", {tensor(DType::kBool, {1, 0}, {0.0})}, axis)[0].at(0) == 1);
  CHECK(run_node("reduce_any", {tensor(DType::kBool, {1, 0}, {0.0})}, axis)[0].at(0) == 0);
  CHECK(run_node("reduce_sum", {none}, {{"axes", std::vector<int64_t>{0}}})[0].elements() == 0);
}

TEST_CASE("cpu: NaN stays in extremes and sums, wherever it stands") {
  for (int64_t place : {0, 5, 31, 40, 63, 99}) {
    std::vector<double> values(100, 1.0);
    values[static_cast<size_t>(place)] = NAN;
    const HostTensor row = tensor(kF32, {1, 100}, values), column = tensor(kF32, {100, 1}, values);
    for (const char* op : {"reduce_max", "reduce_min", "reduce_sum", "reduce_mean", "reduce_prod"}) {
      CHECK(std::isnan(run_node(op, {row}, {{"axes", std::vector<int64_t>{1}}})[0].at(0)));
      CHECK(std::isnan(run_node(op, {column}, {{"axes", std::vector<int64_t>{0}}})[0].at(0)));
    }
  }
  const HostTensor infinite = tensor(kF32, {3}, {INFINITY, 1, -INFINITY});
  CHECK(run_node("reduce_max", {infinite}, {{"axes", std::vector<int64_t>{0}}})[0].at(0) == INFINITY);
  CHECK(std::isnan(run_node("reduce_sum", {infinite}, {{"axes", std::vector<int64_t>{0}}})[0].at(0)));
}

TEST_CASE("cpu: any and all") {
  const HostTensor x = tensor(DType::kBool, {2, 3}, {0, 1, 0, 1, 1, 1});
  const Attrs axis = {{"axes", std::vector<int64_t>{1}}};
  CHECK(first_difference(run_node("reduce_any", {x}, axis)[0], {1, 1}, 0) == -1);
  CHECK(first_difference(run_node("reduce_all", {x}, axis)[0], {0, 1}, 0) == -1);
}

TEST_CASE("cpu: reductions have the same bits on every instruction set") {
  const HostTensor x = random_tensor(kF32, {5000}, -1, 1, 8);
  for (size_t op = 0; op < cpu::kReduceOps; ++op) {
    double wanted = 0;
    for (cpu::Isa isa : {cpu::Isa::kBaseline, cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
      const cpu::ReduceFunctions* fn =
          cpu::reduce_functions(static_cast<cpu::ReduceOp>(op), cpu::RegType::kF32, isa);
      if (fn == nullptr) continue;
      double acc = 0;
      float result = 0;
      fn->init(&acc, 1);
      fn->row(&acc, x.bytes.data(), 5000);
      fn->finish(&result, &acc, 1, 1);
      if (isa == cpu::Isa::kBaseline) wanted = result;
      CHECK(static_cast<double>(result) == wanted);
    }
  }
}

TEST_CASE("cpu: argmax and argmin take the first of equal ones, and NaN before all") {
  const HostTensor x = tensor(kF32, {3, 4}, {1, 3, 3, 2, -1, NAN, 5, NAN, 0, 0, 0, 0});
  const Attrs last = {{"axis", int64_t{1}}, {"dtype", DType::kI32}};
  CHECK(first_difference(run_node("argmax", {x}, last)[0], {1, 1, 0}, 0) == -1);
  CHECK(first_difference(run_node("argmin", {x}, last)[0], {0, 1, 0}, 0) == -1);
  const HostTensor tall = random_tensor(DType::kF64, {50, 3, 7}, -1, 1, 6);
  for (int64_t axis : {0, 1, 2}) {
    const HostTensor got = run_node("argmax", {tall}, {{"axis", axis}})[0];
    const HostTensor best = run_node("reduce_max", {tall}, {{"axes", std::vector<int64_t>{axis}}})[0];
    const int64_t inner = axis == 0 ? 21 : axis == 1 ? 7 : 1;
    const int64_t size = tall.sizes[static_cast<size_t>(axis)];
    for (int64_t i = 0; i < got.elements(); ++i) {
      const int64_t start = i / inner * inner * size + i % inner;
      CHECK(tall.at(start + static_cast<int64_t>(got.at(i)) * inner) == best.at(i));
    }
  }
  const HostTensor flags = tensor(DType::kBool, {4}, {0, 1, 0, 1});
  CHECK(run_node("argmax", {flags}, {{"axis", int64_t{0}}})[0].at(0) == 1);
}

TEST_CASE("cpu: running sums, all four kinds") {
  const HostTensor x = tensor(kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto run = [&](int64_t axis, bool exclusive, bool reverse) {
    return run_node("cumsum", {x},
                    {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}})[0];
  };
  CHECK(first_difference(run(1, false, false), {1, 3, 6, 4, 9, 15}, 0) == -1);
  CHECK(first_difference(run(1, true, false), {0, 1, 3, 0, 4, 9}, 0) == -1);
  CHECK(first_difference(run(1, false, true), {6, 5, 3, 15, 11, 6}, 0) == -1);
  CHECK(first_difference(run(0, true, true), {4, 5, 6, 0, 0, 0}, 0) == -1);
  const HostTensor bytes = tensor(DType::kU8, {4}, {200, 100, 1, 1});
  const HostTensor wrapped = run_node("cumsum", {bytes}, {{"axis", int64_t{0}}})[0];
  CHECK(first_difference(wrapped, {200, 44, 45, 46}, 0) == -1);
  // A long sum of f32 stays exact to the last place: it is kept in double.
  const HostTensor tenths = tensor(kF32, {100000}, {0.1f});
  const double end = run_node("cumsum", {tenths}, {{"axis", int64_t{0}}})[0].at(99999);
  CHECK(std::fabs(end - 10000.0) <= 1e-3);
}

}  // namespace
}  // namespace tracefire::test
