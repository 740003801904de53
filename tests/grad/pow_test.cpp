// SPDX-License-Identifier: Apache-2.0
// The gradients of pow at zeros, infinities and negative bases.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "backends/ref/oracle.h"
#include "core/grad/grad.h"
#include "core/ops/op_table.h"

namespace tracefire {
namespace {

using ref::Array;
using Values = std::vector<Value>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// x, y, and both gradients of pow(x, y) as JAX 0.10.2 computes them in float64 (jax.lax.pow).
struct Point {
  double x, y, dx, dy;
};
constexpr Point kJax[] = {
    {kInf, 0, 0, kInf},
    {-kInf, 0, 0, kNan},
    {kInf, 1, 1, kInf},
    {kInf, 2, kInf, kInf},
    {kInf, -1, 0, kNan},
    {-kInf, 1, 1, kNan},
    {-kInf, 2, -kInf, kNan},
    {-kInf, 3, kInf, kNan},
    {-kInf, -1, 0, kNan},
    {0, 1, 1, 0},
    {0, 2, 0, 0},
    {0, 0.5, kInf, 0},
    {0, -1, -kInf, kNan},
    {-0.0, 1, 1, 0},
    {-0.0, 3, 0, 0},
    {-2, 0, 0, kNan},
    {-2, 1, 1, kNan},
    {-2, 2, -4, kNan},
    {-2, 3, 12, kNan},
    {-2, -1, -0.25, kNan},
    {-2, -2, 0.25, kNan},
    {-2, 0.5, kNan, kNan},
    {2, kInf, kInf, kInf},
    {2, -kInf, kNan, 0},
    {1, kInf, kInf, 0},
    {kNan, 2, kNan, kNan},
    {2, kNan, kNan, kNan},
    {2, 0, 0, 0.6931471805599453},
    {0.5, 0, 0, -0.6931471805599453},
    {1e300, 0, 0, 690.7755278982137},
};

/// Both gradients of pow at each point, element by element. `second` differentiates dx again.
std::vector<Array> pow_gradients(const std::vector<Point>& points, bool second = false) {
  Builder b(OpTable::instance());
  const Dim count(static_cast<int64_t>(points.size()));
  const Value x = b.param({DType::kF64, Shape{count}}), y = b.param({DType::kF64, Shape{count}});
  Values grads = gradients(&b, {b.op("pow", {x, y})}, {}, {x, y}).value();
  if (second) grads = gradients(&b, {grads[0]}, {}, {x, y}).value();
  for (Value grad : grads) b.result(grad);
  std::vector<Array> params(2, Array(DType::kF64, {static_cast<int64_t>(points.size())}));
  for (size_t i = 0; i < points.size(); ++i) {
    params[0].real[i] = points[i].x;
    params[1].real[i] = points[i].y;
  }
  return ref::run_graph(*b.finish().value(), params).value();
}

bool same(double got, double wanted) {
  if (std::isnan(wanted) || std::isinf(wanted)) {
    return std::isnan(wanted) ? std::isnan(got) : got == wanted;
  }
  return std::abs(got - wanted) <= 1e-12 * std::abs(wanted);
}

TEST_CASE("gradients of pow at zeros, infinities and negative bases are those of JAX") {
  const std::vector<Point> points(std::begin(kJax), std::end(kJax));
  const std::vector<Array> grads = pow_gradients(points);
  for (size_t i = 0; i < points.size(); ++i) {
    const Point& point = points[i];
    CAPTURE(point.x);
    CAPTURE(point.y);
    CAPTURE(grads[0].real[i]);
    CAPTURE(grads[1].real[i]);
    CHECK(same(grads[0].real[i], point.dx));
    // Left of 0 there is no real power beside an exponent: 0 as in TensorFlow, where JAX says NaN.
    const bool finite_left = point.x < 0 && std::isfinite(std::pow(point.x, point.y));
    CHECK(same(grads[1].real[i], finite_left ? 0 : point.dy));
  }
}

TEST_CASE("pow(x, 0) is 1 for every x, so that its gradient is 0 where JAX says NaN") {
  const std::vector<Point> points = {{0, 0, 0, 0}, {-0.0, 0, 0, 0}, {5e-324, 0, 0, 0}};
  const std::vector<Array> grads = pow_gradients(points);
  for (size_t i = 0; i < points.size(); ++i) CHECK(grads[0].real[i] == 0);
}

TEST_CASE("the second gradient of pow at exponent 0 is 1 / x") {
  const std::vector<Point> points = {
      {2, 0, 0, 0.5}, {0.25, 0, 0, 4}, {3, 2, 2, 3 + 6 * std::log(3)}};
  const std::vector<Array> grads = pow_gradients(points, true);
  for (size_t i = 0; i < points.size(); ++i) {
    CHECK(same(grads[0].real[i], points[i].dx));
    CHECK(same(grads[1].real[i], points[i].dy));
  }
}

}  // namespace
}  // namespace tracefire
