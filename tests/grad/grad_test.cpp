// SPDX-License-Identifier: Apache-2.0
// Reverse mode on whole graphs, run by the oracle in double and compared with central differences.
#include "core/grad/grad.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "backends/ref/oracle.h"
#include "core/ops/math.h"
#include "core/ops/op_table.h"

namespace tracefire {
namespace {

using ref::Array;
using Values = std::vector<Value>;

ValueType f64(std::initializer_list<Dim> dims) { return {DType::kF64, Shape(dims)}; }

Array numbers(std::vector<int64_t> sizes, uint32_t seed) {
  Array array(DType::kF64, std::move(sizes));
  std::mt19937 random(seed);
  for (double& x : array.real) x = 0.2 + static_cast<double>(random() % 1000) / 800.0;
  return array;
}

/// A graph that returns one scalar, and the same graph that returns its gradients.
struct Pair {
  GraphPtr loss, grads;
};

/// `make` builds the loss from the parameters; gradients are taken of all floating parameters.
template <class Fn>
Pair differentiate(const std::vector<ValueType>& types, Fn make) {
  Builder b(OpTable::instance());
  Values params;
  for (const ValueType& type : types) params.push_back(b.param(type));
  const Value loss = make(b, params);
  REQUIRE_MESSAGE(b.status().ok(), b.status().str());
  Builder forward(OpTable::instance(), b.graph());
  forward.result(loss);
  const Result<Values> grads = gradients(&b, {loss}, {}, params);
  REQUIRE_MESSAGE(grads.ok(), grads.status().str());
  Math m(b);
  for (size_t i = 0; i < params.size(); ++i) {
    if (!is_floating(types[i].dtype)) continue;
    const Value grad = (*grads)[i];
    b.result(grad.valid() ? grad : m.zeros_like(params[i]));
  }
  Pair pair;
  pair.loss = forward.finish().value();
  pair.grads = b.finish().value();
  return pair;
}

double run_loss(const Graph& graph, const std::vector<Array>& params) {
  return ref::run_graph(graph, params).value()[0].real[0];
}

/// Compares every element's gradient with a central difference.
void check_pair(const Pair& pair, std::vector<Array> params) {
  const std::vector<Array> grads = ref::run_graph(*pair.grads, params).value();
  size_t next = 0;
  for (size_t p = 0; p < params.size(); ++p) {
    if (!params[p].is_real()) continue;
    const Array& grad = grads[next++];
    REQUIRE(grad.sizes == params[p].sizes);
    for (size_t i = 0; i < grad.real.size(); ++i) {
      const double x = params[p].real[i], step = 1e-5;
      params[p].real[i] = x + step;
      const double above = run_loss(*pair.loss, params);
      params[p].real[i] = x - step;
      const double below = run_loss(*pair.loss, params);
      params[p].real[i] = x;
      CAPTURE(p);
      CAPTURE(i);
      CHECK(grad.real[i] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-6));
    }
  }
}

Value total(Builder& b, Value x) {
  std::vector<int64_t> axes;
  for (int i = 0; i < b.shape(x).rank(); ++i) axes.push_back(i);
  return Math(b).sum(x, axes);
}

GraphPtr region(std::initializer_list<ValueType> types, Values (*make)(Builder&, const Values&)) {
  Builder b(OpTable::instance(), "region");
  Values params;
  for (const ValueType& type : types) {
    params.push_back(
        b.param(type, "", type.dtype == DType::kToken ? ParamKind::kToken : ParamKind::kInput));
  }
  for (Value value : make(b, params)) b.result(value);
  return b.finish().value();
}

TEST_CASE("gradients of a small network, with fan-in and broadcasting") {
  const Pair pair =
      differentiate({f64({3, 4}), f64({4, 2}), f64({2})}, [](Builder& b, const Values& p) {
        Math m(b);
        const Value hidden = m.op("tanh", {m.add(m.op("matmul", {p[0], p[1]}), p[2])});
        return total(b, m.mul(hidden, m.add(hidden, p[2])));
      });
  check_pair(pair, {numbers({3, 4}, 1), numbers({4, 2}, 2), numbers({2}, 3)});
}

TEST_CASE("gradients through symbolic sizes") {
  const Dim n = Dim::fresh("N");
  const Pair pair = differentiate({f64({n, 3}), f64({3})}, [](Builder& b, const Values& p) {
    Math m(b);
    const Value mean = m.op("reduce_mean", {m.mul(p[0], p[1])},
                            {{"axes", std::vector<int64_t>{0}}, {"keepdims", false}});
    return total(b, m.square(mean));
  });
  check_pair(pair, {numbers({5, 3}, 1), numbers({3}, 2)});
  check_pair(pair, {numbers({2, 3}, 4), numbers({3}, 5)});
}

TEST_CASE("gradients of products are exact where factors are 0") {
  for (int mode = 0; mode < 4; ++mode) {
    const Attrs attrs = {{"axis", int64_t{1}}, {"exclusive", mode % 2 == 1}, {"reverse", mode > 1}};
    const auto make = [&](Builder& builder, const Values& p) {
      Math m(builder);
      return total(builder, m.mul(m.op("cumprod", {p[0]}, attrs), p[1]));
    };
    Array x = numbers({4, 5}, 1);  // rows with no zero, one, two, and one at each end
    for (const size_t at : {6, 11, 13, 15, 19}) x.real[at] = 0;
    check_pair(differentiate({f64({4, 5}), f64({4, 5})}, make), {x, numbers({4, 5}, 2)});
  }
  const auto combine = [](Builder& b, const Values& p) {
    Math m(b);
    const Value y = m.op("scatter", {p[0], p[2], p[1]}, {{"reduction", std::string("mul")}});
    return total(b, m.mul(y, p[3]));
  };
  const Pair pair = differentiate({f64({4}), f64({5}), {DType::kI32, Shape{5, 1}}, f64({4})}, combine);
  Array x = numbers({4}, 3), updates = numbers({5}, 4), places(DType::kI32, {5, 1});
  places.whole = {0, 0, 1, 3, 3};
  x.real[0] = updates.real[2] = updates.real[3] = updates.real[4] = 0;
  check_pair(pair, {x, updates, places, numbers({4}, 5)});
}

TEST_CASE("no gradient flows through integers, stop_gradient or comparisons") {
  Builder b(OpTable::instance());
  Math m(b);
  const Value x = b.param(f64({3})), y = b.param(f64({3})), z = b.param(f64({3}));
  const Value whole = m.cast(m.cast(x, DType::kI32), DType::kF64);
  const Value kept = m.op("stop_gradient", {y});
  const Value chosen = m.select(m.op("greater", {x, y}), z, kept);
  const Result<Values> grads = gradients(&b, {m.add(whole, chosen)}, {}, {x, y, z});
  REQUIRE(grads.ok());
  CHECK_FALSE((*grads)[0].valid());
  CHECK_FALSE((*grads)[1].valid());
  CHECK((*grads)[2].valid());
}

TEST_CASE("an intermediate value and the output itself can be asked for") {
  Builder b(OpTable::instance());
  Math m(b);
  const Value x = b.param(f64({}));
  const Value y = m.square(x);
  const Value z = m.mul(y, m.scalar(3, y));
  const Value grads_of = b.param(f64({}));
  const Result<Values> grads = gradients(&b, {z}, {grads_of}, {y, z, x});
  REQUIRE(grads.ok());
  for (Value grad : *grads) b.result(grad);
  const GraphPtr graph = b.finish().value();
  Array two(DType::kF64, {}), ten(DType::kF64, {});
  two.real[0] = 2;
  ten.real[0] = 10;
  const std::vector<Array> out = ref::run_graph(*graph, {two, ten}).value();
  CHECK(out[0].real[0] == 30);   // dz/dy = 3
  CHECK(out[1].real[0] == 10);   // dz/dz = 1
  CHECK(out[2].real[0] == 120);  // dz/dx = 6 x
}

TEST_CASE("errors: an op without a gradient on the path, an integer output") {
  Builder b(OpTable::instance());
  b.set_context(make_location("model.py", 7), "head");
  const Value x = b.param(f64({4}));
  const Value values = b.op("unique", {x}, {{"size", int64_t{4}}});
  const Result<Values> none = gradients(&b, {values}, {}, {x});
  REQUIRE_FALSE(none.ok());
  CHECK(none.status().str() ==
        "[TF-E0107] unique (head) at model.py:7 has no gradient: which elements are equal is not a "
        "smooth function of them. Put stop_gradient before it, or differentiate another quantity.");
  Builder fine(OpTable::instance());  // the same op beside the path does no harm
  const Value p = fine.param(f64({4})), q = fine.param(f64({4}));
  const Value seen = fine.op("unique", {q}, {{"size", int64_t{4}}});
  CHECK(gradients(&fine, {Math(fine).mul(p, seen)}, {}, {p}).ok());
  Builder whole(OpTable::instance());
  const Value n = whole.param({DType::kI32, Shape()});
  CHECK(gradients(&whole, {n}, {}, {n}).status().code() == ErrorCode::kDTypeMismatch);
}

Values then_branch(Builder& b, const Values& p) { return {Math(b).mul(p[0], p[1])}; }
Values else_branch(Builder& b, const Values& p) { return {Math(b).op("exp", {p[0]})}; }

TEST_CASE("if: each branch has its gradient") {
  const GraphPtr yes = region({f64({3}), f64({3})}, then_branch);
  const GraphPtr no = region({f64({3}), f64({3})}, else_branch);
  const ValueType truth{DType::kBool, Shape()};
  const Pair pair = differentiate({truth, f64({3}), f64({3})}, [&](Builder& b, const Values& p) {
    return total(b, b.op("if", {p[0], p[1], p[2]}, {}, {yes, no}));
  });
  Array pred(DType::kBool, {});
  for (int taken = 0; taken < 2; ++taken) {
    pred.whole[0] = taken;
    check_pair(pair, {pred, numbers({3}, 1), numbers({3}, 2)});
  }
}

Values printing_branch(Builder& b, const Values& p) {
  const Value token = b.op("print", {p[0], p[1]}, {{"format", std::string("{}")}});
  return {Math(b).square(p[0]), token};
}

TEST_CASE("effects in a branch happen once: the gradient leaves them out") {
  const ValueType token{DType::kToken, Shape()};
  const GraphPtr branch = region({f64({2}), token}, printing_branch);
  Builder b(OpTable::instance());
  const Value pred = b.param({DType::kBool, Shape()}), x = b.param(f64({2}));
  const Value start = b.op("token", {}, {{"effect", std::string("print")}});
  const Value y = b.op("if", {pred, x, start}, {}, {branch, branch});
  const Result<Values> grads = gradients(&b, {y}, {}, {x});
  REQUIRE_MESSAGE(grads.ok(), grads.status().str());
  int prints = 0, ifs = 0;
  for (const Node& node : b.graph().nodes) {
    ifs += OpTable::instance().name(node.op) == "if";
    for (const GraphPtr& part : node.regions) {
      for (const Node& inner : part->nodes) prints += OpTable::instance().name(inner.op) == "print";
    }
  }
  CHECK(ifs == 2);
  CHECK(prints == 2);  // one a branch, of the forward if
}

Values call_body(Builder& b, const Values& p) {
  return {Math(b).square(p[0]), Math(b).op("sin", {p[1]})};
}

TEST_CASE("call: gradients of several results") {
  const GraphPtr body = region({f64({3}), f64({3})}, call_body);
  const Pair pair = differentiate({f64({3}), f64({3})}, [&](Builder& b, const Values& p) {
    const Value first = b.op("call", p, {}, {body});
    return total(b, Math(b).mul(first, {first.node, 1}));
  });
  check_pair(pair, {numbers({3}, 1), numbers({3}, 2)});
}

// State: counter, x, running product, weight (fixed).
Values loop_cond(Builder& b, const Values& p) {
  return {b.op("less", {p[0], b.scalar(4, DType::kI32)})};
}
Values loop_body(Builder& b, const Values& p) {
  Math m(b);
  const Value x = m.op("sin", {m.mul(p[1], p[3])});
  return {m.shift(p[0], 1), x, m.add(p[2], m.mul(x, p[1])), p[3]};
}

TEST_CASE("while: gradients through the turns, for variables and what stays fixed") {
  const ValueType counter{DType::kI32, Shape()};
  const GraphPtr cond = region({counter, f64({2}), f64({2}), f64({2})}, loop_cond);
  const GraphPtr body = region({counter, f64({2}), f64({2}), f64({2})}, loop_body);
  const auto make = [&](int64_t limit) {
    return [&, limit](Builder& b, const Values& p) {
      const Value zeros = Math(b).zeros(DType::kF64, {2});
      const Value first = b.op("while", {b.scalar(0, DType::kI32), p[0], zeros, p[1]},
                               {{"max_iterations", limit}}, {cond, body});
      return total(b, {first.node, 2});
    };
  };
  check_pair(differentiate({f64({2}), f64({2})}, make(10)), {numbers({2}, 1), numbers({2}, 2)});
  check_pair(differentiate({f64({2}), f64({2})}, make(2)), {numbers({2}, 3), numbers({2}, 4)});

  Builder b(OpTable::instance());
  const Value x = b.param(f64({2})), w = b.param(f64({2}));
  const Value loss = make(-1)(b, {x, w});
  const Result<Values> grads = gradients(&b, {loss}, {}, {x});
  REQUIRE_FALSE(grads.ok());
  CHECK(grads.status().code() == ErrorCode::kNoGradient);
  CHECK(grads.status().message().find("Give max_iterations") != std::string::npos);
}

TEST_CASE("gradients of gradients") {
  const Pair pair = differentiate({f64({3})}, [](Builder& b, const Values& p) {
    Math m(b);
    const Value y = total(b, m.mul(m.op("exp", {p[0]}), m.square(p[0])));
    const Values first = gradients(&b, {y}, {}, {p[0]}).value();
    return total(b, m.op("tanh", {first[0]}));
  });
  check_pair(pair, {numbers({3}, 9)});
}

}  // namespace
}  // namespace tracefire
