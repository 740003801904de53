// SPDX-License-Identifier: Apache-2.0
// Loop programs in the tile interpreter, written by hand.
#include <doctest/doctest.h>

#include <cmath>

#include "core/compile/compile.h"
#include "cpu/node_runner.h"

namespace tracefire::test {
namespace {

constexpr DType kF32 = DType::kF32;

TEST_CASE("cpu: element-wise nodes broadcast every way") {
  struct Case {
    std::vector<int64_t> a, b;
  };
  const Case cases[] = {{{5, 7}, {5, 7}},     {{5, 7}, {7}},       {{5, 7}, {5, 1}},
                        {{5, 1}, {1, 7}},     {{}, {3, 4}},        {{2, 3, 4}, {3, 1}},
                        {{4, 1, 6}, {5, 1}},  {{1}, {1}},          {{0, 3}, {3}},
                        {{33, 1000}, {1000}}, {{33, 1000}, {33, 1}}, {{2, 1, 3, 1, 5}, {4, 1, 6, 1}}};
  for (const Case& c : cases) {
    const HostTensor a = random_tensor(kF32, c.a, -2, 2, 1), b = random_tensor(kF32, c.b, -2, 2, 2);
    const HostTensor got = run_node("sub", {a, b})[0];
    std::vector<double> wanted;
    for (int64_t i = 0; i < got.elements(); ++i) {
      // The element's place in each operand, axis by axis from the last.
      int64_t rest = i, at[2] = {0, 0}, stride[2] = {1, 1};
      for (size_t axis = got.sizes.size(); axis-- > 0;) {
        const int64_t index = rest % got.sizes[axis];
        rest /= got.sizes[axis];
        const std::vector<int64_t>* shapes[2] = {&c.a, &c.b};
        for (int k = 0; k < 2; ++k) {
          const size_t from_end = got.sizes.size() - axis;
          if (from_end > shapes[k]->size()) continue;
          const int64_t size = (*shapes[k])[shapes[k]->size() - from_end];
          if (size != 1) at[k] += index * stride[k];
          stride[k] *= size;
        }
      }
      wanted.push_back(a.at(at[0]) - b.at(at[1]));
    }
    CHECK(first_difference(got, wanted, 1e-6) == -1);
  }
}

TEST_CASE("cpu: half types compute in f32 and round once") {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    const HostTensor x = random_tensor(dtype, {3000}, -3, 3, 4);
    const HostTensor got = run_node("exp", {x})[0];
    std::vector<double> wanted;
    for (double v : x.numbers()) wanted.push_back(std::exp(v));
    CHECK(first_difference(got, tensor(dtype, {3000}, wanted).numbers(),
                           dtype == DType::kF16 ? 1e-3 : 8e-3) == -1);
    const HostTensor doubled = run_node("add", {x, x})[0];
    for (int64_t i = 0; i < x.elements(); ++i) CHECK(doubled.at(i) == 2 * x.at(i));
  }
}

TEST_CASE("cpu: a result may be written over its operand") {
  const HostTensor x = random_tensor(kF32, {70000}, -2, 2, 3), y = random_tensor(kF32, {70000}, 1, 2, 9);
  RunOptions in_place;
  in_place.in_place = true;
  const HostTensor apart = run_node("div", {x, y})[0];
  const HostTensor over = run_node("div", {x, y}, {}, in_place)[0];
  CHECK(over.bytes == apart.bytes);
}

TEST_CASE("cpu: check_finite reports the first bad element, whatever thread finds one") {
  std::vector<double> values(200000, 1.0);
  values[150001] = NAN;
  values[77777] = INFINITY;
  ErrorWord word;
  RunOptions options;
  options.error = &word;
  const HostTensor x = tensor(kF32, {200000}, values);
  const HostTensor got = run_node("check_finite", {x}, {}, options)[0];
  CHECK(got.bytes == x.bytes);
  CHECK(word.step_plus_one == 8);
  CHECK(word.code == static_cast<uint32_t>(ErrorCode::kNotFinite));
  CHECK(word.detail == 77777);
  run_node("check_finite", {tensor(kF32, {10}, {1.0})}, {}, options);
  CHECK(word.step_plus_one == 0);
}

TEST_CASE("cpu: iota, casts and bit casts") {
  const HostTensor rows = run_node("iota", {}, {{"dtype", DType::kI32},
                                                {"shape", Shape{300, 7}},
                                                {"axis", int64_t{0}}})[0];
  const HostTensor columns = run_node("iota", {}, {{"dtype", DType::kF16},
                                                   {"shape", Shape{300, 7}},
                                                   {"axis", int64_t{1}}})[0];
  for (int64_t i = 0; i < 2100; ++i) {
    CHECK(rows.at(i) == i / 7);
    CHECK(columns.at(i) == i % 7);
  }
  const HostTensor one = tensor(DType::kF16, {2}, {1.0, -2.0});
  const HostTensor bits = run_node("bitcast", {one}, {{"dtype", DType::kU16}})[0];
  CHECK(bits.at(0) == 0x3c00);
  CHECK(bits.at(1) == 0xc000);
  CHECK(run_node("bitcast", {bits}, {{"dtype", DType::kF16}})[0].bytes == one.bytes);
  const HostTensor as_bf16 = run_node("bitcast", {bits}, {{"dtype", DType::kBF16}})[0];
  CHECK(as_bf16.bytes == bits.bytes);
  const HostTensor saturated = run_node("cast", {tensor(kF32, {2}, {1e10, -1e10})},
                                        {{"dtype", DType::kI8}})[0];
  CHECK(saturated.at(0) == 127);
  CHECK(saturated.at(1) == -128);
}

/// A fused node with two results over one another's operands.
GraphPtr fused_graph(int64_t n) {
  const OpTable& ops = OpTable::instance();
  Builder body(ops);
  const ValueType type{kF32, Shape{n}};
  const Value x = body.param(type), y = body.param(type);
  const Value sum = body.op("add", {x, y});
  const Value scaled = body.op("mul", {sum, body.scalar(0.5, kF32)});
  body.result(body.op("tanh", {scaled}));
  body.result(body.op("maximum", {x, sum}));
  body.result(x);
  Builder b(ops);
  const Value p = b.param(type), q = b.param(type);
  const Value first = b.op("fused", {p, q}, {}, {body.finish().value()});
  b.result(first);
  return b.finish().value();
}

TEST_CASE("cpu: fused loops with results over operands read before they write") {
  const int64_t n = 50001;
  const GraphPtr graph = fused_graph(n);
  const Node& node = graph->nodes.back();
  const auto loop = emit_loop(*graph, node);
  REQUIRE(loop != nullptr);
  DeviceBackend* device = Backends::instance().find(Device{Device::kCpu, 0}).value();
  const std::vector<ValueType> inputs(2, {kF32, Shape{n}});
  NodeView view;
  view.node = &node;
  view.inputs = inputs;
  view.outputs = node.outputs;
  view.loop = loop.get();
  const Kernel* kernel = device->kernels(node.op)[0];
  CHECK(kernel->in_place());
  REQUIRE(kernel->accept(view).accepted);
  const std::unique_ptr<Launch> launch = kernel->bind(view, *device).value();
  const HostTensor x = random_tensor(kF32, {n}, -1, 1, 5), y = random_tensor(kF32, {n}, -1, 1, 6);
  for (int shared = 0; shared < 3; ++shared) {
    std::vector<float> a(static_cast<size_t>(n)), b(a.size()), r0(a.size()), r1(a.size()), r2(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<float>(x.at(static_cast<int64_t>(i)));
      b[i] = static_cast<float>(y.at(static_cast<int64_t>(i)));
    }
    // Results 0 and 1 lie over the operands: x is read for results 1 and 2 after 0 is computed.
    float* out0 = shared == 1 ? a.data() : shared == 2 ? b.data() : r0.data();
    float* out1 = shared == 1 ? b.data() : shared == 2 ? a.data() : r1.data();
    void* const in[] = {a.data(), b.data()};
    void* const out[] = {out0, out1, r2.data()};
    ErrorWord word;
    const LaunchArgs args{*device->stream(0).value(), in, out, nullptr, &word, 0};
    REQUIRE(launch->run(args).ok());
    int wrong = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const double u = x.at(static_cast<int64_t>(i)), v = y.at(static_cast<int64_t>(i));
      wrong += !near(out0[i], std::tanh(0.5 * (u + v)), 1e-6);
      wrong += !near(out1[i], std::max(u, u + v), 1e-6);
      wrong += r2[i] != static_cast<float>(u);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("cpu: select keeps NaN out of what it does not take") {
  const HostTensor cond = tensor(DType::kBool, {4}, {1, 0, 1, 0});
  const HostTensor x = tensor(kF32, {4}, {1, NAN, 3, NAN}), y = tensor(kF32, {4}, {NAN, 2, NAN, 4});
  const HostTensor got = run_node("select", {cond, x, y})[0];
  CHECK(first_difference(got, {1, 2, 3, 4}, 0) == -1);
}

}  // namespace
}  // namespace tracefire::test
