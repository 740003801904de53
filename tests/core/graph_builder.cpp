// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>

#include "core/fake_ops.h"
#include "core/graph/symbols.h"
#include "core/graph/text.h"
#include "tracefire/half.h"

namespace tracefire {
namespace {

const test::FakeOps kOps;

OpId id(const char* name) { return *kOps.find(name); }

TEST_CASE("attributes are sorted, replaced, and read with their type") {
  Attrs attrs = {{"b", int64_t{1}}, {"a", true}};
  attrs.set("b", int64_t{2});
  attrs.set("c", std::string("text"));
  CHECK(attrs.entries().size() == 3);
  CHECK(attrs.entries()[0].first == "a");
  CHECK(attrs.integer("b") == 2);
  CHECK(attrs.flag("a"));
  CHECK(attrs.text("c") == "text");
  CHECK_FALSE(attrs.has("d"));
  CHECK_THROWS_AS(attrs.integer("a"), Error);
  CHECK_THROWS_AS(attrs.real("d"), Error);
  CHECK(attrs == Attrs{{"c", std::string("text")}, {"a", true}, {"b", int64_t{2}}});
}

TEST_CASE("types print as NumPy would") {
  CHECK(ValueType{DType::kF32, {128, 784}}.str() == "float32(128, 784)");
  CHECK(ValueType{DType::kI64, {}}.str() == "int64()");
}

TEST_CASE("the builder infers, fills in context, and counts uses") {
  Builder b(kOps, "g");
  Value x = b.param({DType::kF32, {Dim::fresh("N"), 4}}, "x");
  b.set_context(make_location("a.py", 3), "scope/add", Device{Device::kGpu, 0}, true);
  Value sum = b.add(id("add"), {x, x}).value();
  Value scaled = b.op("scale", {sum});
  b.result(scaled);
  CHECK(b.shape(sum) == b.shape(x));
  CHECK(b.status().ok());
  GraphPtr graph = b.finish().value();
  CHECK(graph->nodes[0].location.str() == "a.py:3");
  CHECK(graph->nodes[0].name == "scope/add");
  CHECK(graph->nodes[0].device_by_user);
  CHECK(graph->nodes[1].attrs.real("factor") == 1.0);
  CHECK(verify(kOps, *graph).ok());
  UseCounts uses(*graph);
  CHECK(uses.of(x) == 2);
  CHECK(uses.of(sum) == 1);
  CHECK(uses.of(scaled) == 1);
  CHECK(b.graph().nodes.empty());
}

TEST_CASE("add returns its failure, op keeps it for finish") {
  Builder b(kOps);
  Value x = b.param({DType::kF32, {4}}), y = b.param({DType::kF32, {5}});
  CHECK(b.add(id("add"), {x, y}).status().code() == ErrorCode::kShapeMismatch);
  CHECK(b.add(id("add"), {x, Value{}}).status().code() == ErrorCode::kBadGraph);
  CHECK(b.add(id("add"), {x, Value{0, 0}}).status().code() == ErrorCode::kBadGraph);
  CHECK(b.status().ok());
  Value bad = b.op("add", {x, y});
  CHECK_FALSE(bad.valid());
  CHECK_FALSE(b.op("scale", {bad}).valid());
  CHECK(b.finish().status().message() == "add: types differ");
  b.param({DType::kF32, {}});
  CHECK_FALSE(b.op("no_such_op", {}).valid());
  CHECK(b.finish().status().code() == ErrorCode::kUnknownOp);
  b.result(Value{3, 0});
  CHECK(b.finish().status().code() == ErrorCode::kBadGraph);
}

template <class T>
T scalar_of(double value, DType dtype) {
  Builder b(kOps);
  Value v = b.scalar(value, dtype);
  REQUIRE(v.valid());
  const std::string& bytes = b.graph().nodes[0].attrs.text("bytes");
  REQUIRE(bytes.size() == sizeof(T));
  REQUIRE(bytes.size() == dtype_size(dtype));
  T out;
  std::memcpy(&out, bytes.data(), sizeof(T));
  return out;
}

TEST_CASE("scalar constants of every number type") {
  CHECK(scalar_of<float>(0.1, DType::kF32) == 0.1f);
  CHECK(scalar_of<double>(0.1, DType::kF64) == 0.1);
  CHECK(scalar_of<uint16_t>(1.5, DType::kF16) == f16_from_float(1.5f));
  CHECK(scalar_of<uint16_t>(1.5, DType::kBF16) == bf16_from_float(1.5f));
  CHECK(scalar_of<uint8_t>(1.5, DType::kF8E4M3) == f8e4m3_from_float(1.5f));
  CHECK(scalar_of<int8_t>(-3, DType::kI8) == -3);
  CHECK(scalar_of<uint8_t>(-3, DType::kU8) == 0);
  CHECK(scalar_of<int64_t>(1e30, DType::kI64) == std::numeric_limits<int64_t>::max());
  CHECK(scalar_of<int32_t>(NAN, DType::kI32) == 0);
  CHECK(scalar_of<uint8_t>(2, DType::kBool) == 1);
  CHECK(scalar_of<std::array<float, 2>>(2, DType::kC64) == std::array<float, 2>{2, 0});
}

TEST_CASE("types that are given are kept where they agree with the row") {
  Builder b(kOps);
  Value x = b.param({DType::kI64, {8}});
  Node unique;
  unique.op = id("unique");
  unique.inputs = {x};
  Dim count = Dim::fresh("Count", 8);
  unique.outputs = {{DType::kI64, {count}}, {DType::kI64, {count + 1}}};
  REQUIRE(b.add(unique).ok());
  CHECK(b.graph().nodes[0].outputs == unique.outputs);
  SUBCASE("a bound below the row's is not") {
    Dim tight = Dim::fresh("Tight", 7);
    unique.outputs = {{DType::kI64, {tight}}, {DType::kI64, {tight + 1}}};
    REQUIRE(b.add(unique).ok());
    CHECK(b.graph().nodes[1].outputs[0].shape[0].bound() == 8);
  }
  SUBCASE("another type is not") {
    unique.outputs[0].dtype = DType::kF32;
    REQUIRE(b.add(unique).ok());
    CHECK(b.graph().nodes[1].outputs[0].dtype == DType::kI64);
  }
}

TEST_CASE("a copied graph is equal, and dead nodes go while effects stay") {
  Result<GraphPtr> graph = parse(kOps, R"(
    graph g(%0: int64(N<=9,), %1: token token() "print", %2: slot float32(2,) "v") {
      %3, %4 = unique(%0) : int64(U<=9,), int64((U + 1),)
      %5 = scale(%4) : int64((U + 1),)
      %6 = print(%3, %1) : token()
      %7 = add(%2, %2) : float32(2,)
      return slot %2 = %7
    })");
  INFO(graph.status().str());
  REQUIRE(graph.ok());
  Rewriter rewriter(kOps, **graph);
  for (int32_t i = 0; i < 4; ++i) rewriter.copy(i);
  CHECK(rewriter.map(Value{3, 0}) == Value{3, 0});
  GraphPtr copy = rewriter.finish().value();
  CHECK(copy->nodes.size() == 3);
  CHECK(copy->nodes[0].outputs == (*graph)->nodes[0].outputs);
  CHECK(kOps.name(copy->nodes[1].op) == "print");
  CHECK(copy->results[0].slot == 2);
  CHECK(copy->results[0].value == Value{2, 0});
  CHECK(verify(kOps, *copy).ok());
  CHECK(print(kOps, *remove_dead(kOps, *copy)) == print(kOps, *copy));
}

TEST_CASE("a rewriter puts other values in the place of old ones") {
  Builder b(kOps);
  Value x = b.param({DType::kF32, {3}});
  Value twice = b.op("add", {x, x});
  b.result(b.op("scale", {twice}));
  GraphPtr graph = b.finish().value();
  Rewriter rewriter(kOps, *graph);
  rewriter.set(twice, rewriter.builder().op("scale", {rewriter.map(x)}, {{"factor", 2.0}}));
  rewriter.copy(1);
  GraphPtr now = rewriter.finish().value();
  CHECK(print(kOps, *now) ==
        "graph (%0: float32(3,)) {\n"
        "  %1 = scale(%0) {factor = 2.0} : float32(3,)\n"
        "  %2 = scale(%1) {factor = 1.0} : float32(3,)\n"
        "  return %2\n}\n");
  Rewriter forgets(kOps, *graph);
  forgets.copy(1);  // its input has no value in the new graph
  CHECK(forgets.finish().status().code() == ErrorCode::kBadGraph);
}

TEST_CASE("inlining binds the symbols of parameters and renews those of data") {
  Result<GraphPtr> inner = parse(kOps, R"(
    graph inner(%0: int64(N<=50,)) {
      %1, %2 = unique(%0) : int64(U<=50,), int64((U + 1),)
      %3 = reshape(%1) {shape = (1, U)} : int64(1, U)
      %4 = reshape(%0) {shape = (N, 1)} : int64(N, 1)
      return %3, %4
    })");
  REQUIRE(inner.ok());
  Builder b(kOps, "outer");
  Value x = b.param({DType::kI64, {6}});
  std::vector<Value> first = inline_graph(**inner, {x}, &b).value();
  std::vector<Value> second = inline_graph(**inner, {x}, &b).value();
  CHECK(b.shape(first[1]) == Shape({6, 1}));
  Dim u1 = b.shape(first[0])[1], u2 = b.shape(second[0])[1];
  CHECK(u1.is_symbol());
  CHECK(u1.bound() == 6);
  CHECK(u1 != u2);
  for (Value v : first) b.result(v);
  CHECK(verify(kOps, *b.finish().value()).ok());
  Value wrong = b.param({DType::kF32, {6}});
  CHECK(inline_graph(**inner, {wrong}, &b).status().code() == ErrorCode::kBadGraph);
  CHECK(inline_graph(**inner, {}, &b).status().code() == ErrorCode::kBadGraph);
}

TEST_CASE("inlining binds symbols inside regions too") {
  Result<GraphPtr> inner = parse(kOps, R"(
    graph inner(%0: bool(), %1: float32(N,)) {
      %2 = if(%0, %1) [
        graph then(%0: float32(N,)) { return %0 }
        graph else(%0: float32(N,)) { %1 = scale(%0) : float32(N,) return %1 }
      ] : float32(N,)
      return %2
    })");
  REQUIRE(inner.ok());
  Builder b(kOps);
  Value p = b.param({DType::kBool, {}}), x = b.param({DType::kF32, {6}});
  Value out = inline_graph(**inner, {p, x}, &b).value()[0];
  CHECK(b.shape(out) == Shape({6}));
  GraphPtr region = b.graph().nodes[0].regions[1];
  CHECK(region->params[0].type.shape == Shape({6}));
  CHECK(region->nodes[0].outputs[0].shape == Shape({6}));
  CHECK((*inner)->nodes[0].regions[1]->params[0].type.shape[0].is_symbol());
}

Graph small_graph() {
  Result<GraphPtr> graph = parse(kOps, R"(
    graph g(%0: float32(3,), %1: slot float32(3,), %2: token token() "print", %3: bool()) {
      %4 = add(%0, %1) : float32(3,) as "model/add" at "m.py":7
      %5 = print(%4, %2) : token()
      %6 = if(%3, %4) [
        graph then(%0: float32(3,)) { %1 = scale(%0) : float32(3,) return %1 }
        graph else(%0: float32(3,)) { return %0 }
      ] : float32(3,)
      return %6, slot %1 = %4
    })");
  REQUIRE(graph.ok());
  return **graph;
}

std::string refusal(const Graph& graph) {
  Status status = verify(kOps, graph);
  REQUIRE_FALSE(status.ok());
  CHECK(status.code() == ErrorCode::kBadGraph);
  return status.message();
}

Graph with_region(Graph graph, const std::function<void(Graph*)>& change) {
  auto region = std::make_shared<Graph>(*graph.nodes[2].regions[0]);
  change(region.get());
  graph.nodes[2].regions[0] = region;
  return graph;
}

void check_says(const Graph& graph, std::initializer_list<const char*> words) {
  std::string text = refusal(graph);
  CAPTURE(text);
  for (const char* word : words) {
    CAPTURE(word);
    CHECK(text.find(word) != std::string::npos);
  }
}

TEST_CASE("the verifier names op, place, rule and line") {
  const Graph good = small_graph();
  CHECK(verify(kOps, good).ok());
  Graph g = good;
  g.nodes[0].inputs[1] = {1, 0};
  check_says(g, {"graph 'g': node 0 (add, model/add, m.py:7): input 1 uses result 0 of node 1",
                 "Rule: inputs come from before"});
  g = good;
  g.nodes[0].inputs[1] = {-1, 9};
  check_says(g, {"uses parameter 9 of 4"});
  g = good;
  g.nodes[0].inputs[1] = {-2, 0};
  check_says(g, {"never made"});
  g = good;
  g.nodes[0].outputs[0].shape = {4};
  check_says(g, {"written as float32(4,) where its row infers float32(3,)",
                 "Rule: types are what the row infers"});
  g = good;
  g.nodes[0].inputs.pop_back();
  check_says(g, {"its row refuses it", "add: takes two inputs"});
  g = good;
  g.nodes[0].device_by_user = true;
  check_says(g, {"placed by hand"});
  g = good;
  g.params[0].type.dtype = DType::kInvalid;
  check_says(g, {"parameter 0 has no element type"});
  g = good;
  g.params[2].type = {DType::kF32, {}};
  check_says(g, {"parameter 2 orders effects but holds float32()"});
  g = good;
  g.results[0].value = {7, 0};
  check_says(g, {"result 0 uses", "Rule: results exist"});
}

TEST_CASE("the verifier checks variables, effects and regions") {
  const Graph good = small_graph();
  Graph g = good;
  g.results.push_back(g.results[1]);
  check_says(g, {"the variable of parameter 1 is written twice"});
  g = good;
  g.results[1].slot = 0;
  check_says(g, {"parameter 0, which is no variable"});
  g = good;
  g.params[1].type.shape = {3};
  g.results[1].value = {-1, 3};
  check_says(g, {"result 1 is bool() and does not fit", "float32(3,)"});
  g = good;
  g.results.push_back({{-1, 2}, -1});
  check_says(g, {"used again by a result", "Rule: one chain for each class of effects"});
  g = good;
  g.params[2].name = "log";
  check_says(g, {"node 1 (print) has 'print' effects but stands in the chain of 'log'"});
  g = good;
  g.params.push_back(g.params[2]);
  check_says(g, {"a second chain of 'print' effects"});
  g = with_region(good, [](Graph* r) { r->nodes[0].inputs[0] = {-1, 1}; });
  check_says(g, {"node 2 (if), region 0 (then), node 0 (scale)", "captures nothing"});
  g = with_region(good, [](Graph* r) { r->results[0].slot = 0; });
  check_says(g, {"node 2 (if)", "writes a variable", "Rule: regions stand alone"});
  g = with_region(good, [](Graph* r) { r->params[0].kind = ParamKind::kSlot; });
  check_says(g, {"a variable among its parameters"});
  g = good;
  g.nodes[2].regions[1] = nullptr;
  check_says(g, {"empty region"});
}

}  // namespace
}  // namespace tracefire
