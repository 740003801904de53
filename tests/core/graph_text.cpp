// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <random>

#include "core/fake_ops.h"
#include "core/graph/text.h"

namespace tracefire {
namespace {

const test::FakeOps kOps;

GraphPtr read(const std::string& text) {
  Result<GraphPtr> graph = parse(kOps, text);
  INFO(graph.status().str());
  REQUIRE(graph.ok());
  return *graph;
}

/// Printing, reading and printing again gives the same text and an equal graph.
void check_round_trip(const Graph& graph) {
  PrintOptions all{true, true};
  std::string text = print(kOps, graph, all);
  CAPTURE(text);
  Result<GraphPtr> back = parse(kOps, text);
  INFO(back.status().str());
  REQUIRE(back.ok());
  CHECK(print(kOps, **back, all) == text);
  CHECK(cache_key(kOps, **back) == cache_key(kOps, graph));
}

const char* kExample =
    R"(graph mlp(%0: float32(N<=128, 784), %1: slot float32(784, 10) "kernel" @/GPU:0) {
  %2 = matmul(%0, %1) : float32(N, 10) as "dense/matmul" @/GPU:0 by user at "train.py":12
  %3 = scale(%2) {axes = [1, -2], factor = 0.5} : float32(N, 10)
  %4 = exp.v2(%1) {flag = true} : float32(784, 10)
  return %3, slot %1 = %4
}
)";

TEST_CASE("the printer writes what the reader reads") {
  GraphPtr graph = read(kExample);
  CHECK(print(kOps, *graph, {true, true}) == kExample);
  CHECK(graph->name == "mlp");
  CHECK(graph->params[1].kind == ParamKind::kSlot);
  CHECK(graph->params[1].device == Device{Device::kGpu, 0});
  CHECK(graph->params[0].type.shape[0].bound() == 128);
  CHECK(graph->nodes[0].device_by_user);
  CHECK(graph->nodes[0].location.str() == "train.py:12");
  CHECK(graph->nodes[1].attrs.ints("axes") == std::vector<int64_t>{1, -2});
  CHECK(graph->results[1].slot == 1);
  check_round_trip(*graph);
}

TEST_CASE("devices and locations may be left out") {
  std::string text = print(kOps, *read(kExample), {false, false});
  CHECK(text.find("GPU") == std::string::npos);
  CHECK(text.find("train.py") == std::string::npos);
  read(text);
}

TEST_CASE("attributes of every type come back exactly") {
  Dim n = Dim::fresh("N", 9), m = Dim::fresh("M");
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  Attrs attrs = {{"flag", false},
                 {"integer", std::numeric_limits<int64_t>::min()},
                 {"real", 0.1},
                 {"whole", 3.0},
                 {"huge", -std::numeric_limits<double>::infinity()},
                 {"inf", std::numeric_limits<double>::infinity()},
                 {"tiny", 4.9e-324},
                 {"big", 1e300},
                 {"text", bytes},
                 {"empty", std::string()},
                 {"dtype", DType::kF8E4M3},
                 {"ints", std::vector<int64_t>{}},
                 {"shape", Shape({n, m, 3})},
                 {"one", Shape({n + 1})},
                 {"scalar", Shape()},
                 {"ends", Shape({-1, std::numeric_limits<int64_t>::max()})}};
  Builder b(kOps, "attributes");
  Value x = b.param({DType::kF32, {n, m}});
  REQUIRE(b.add(*kOps.find("scale"), {x}, attrs).ok());
  GraphPtr graph = b.finish().value();
  check_round_trip(*graph);
  GraphPtr back = read(print(kOps, *graph));
  const Attrs& now = back->nodes[0].attrs;
  CHECK(now.text("text") == bytes);
  CHECK(now.real("whole") == 3.0);
  CHECK(now.real("tiny") == 4.9e-324);
  CHECK(now.integer("integer") == std::numeric_limits<int64_t>::min());
  CHECK(now.dtype("dtype") == DType::kF8E4M3);
  CHECK(now.shape("one").rank() == 1);
  CHECK(now.shape("shape")[0] == back->params[0].type.shape[0]);
  CHECK(now.real("factor") == 1.0);
}

TEST_CASE("names and locations keep every byte") {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (const std::string& text : {bytes, std::string(1, '\0'), std::string("a\0b", 3),
                                  std::string("\"\\\n"), std::string("caf\xc3\xa9.py")}) {
    CAPTURE(text);
    Builder b(kOps, text);
    const Value x = b.param({DType::kF32, {2}}, text);
    Node node;
    node.op = *kOps.find("scale");
    node.inputs = {x};
    node.name = text;
    node.location = make_location(text, 7);
    b.result(b.add(std::move(node)).value());
    const GraphPtr graph = b.finish().value();
    check_round_trip(*graph);
    const GraphPtr back = read(print(kOps, *graph, {true, true}));
    CHECK(back->name == text);
    CHECK(back->params[0].name == text);
    CHECK(back->nodes[0].name == text);
    CHECK(back->nodes[0].location.file_name() == text);
    CHECK(back->nodes[0].location.line == 7);
    CHECK(back->nodes[0].location.str() == text + ":7");
  }
  // A front end may know a line of no file.
  Builder b(kOps, "nowhere");
  Node node;
  node.op = *kOps.find("scale");
  node.inputs = {b.param({DType::kF32, {2}})};
  node.location.file = "";
  node.location.line = 3;
  b.result(b.add(std::move(node)).value());
  check_round_trip(*b.finish().value());
}

TEST_CASE("symbols of one name stay apart, odd names become identifiers") {
  Dim a = Dim::fresh("N"), b = Dim::fresh("N"), odd = Dim::fresh("1 x"), none = Dim::fresh("", 4),
      largest = Dim::fresh("max"), long_name = Dim::fresh("N_2");
  Builder builder(kOps, "names");
  builder.param({DType::kF32, {a * b + b, b, a, odd, none, largest, long_name, max(a, b)}});
  builder.param({DType::kF32, {floor_div(a * 3 + 1, 2), 5 - a, floor_div(a, b), max(largest, 1)}});
  GraphPtr graph = builder.finish().value();
  check_round_trip(*graph);
  Shape back = read(print(kOps, *graph))->params[0].type.shape;
  CHECK(back[1] != back[2]);
  CHECK(back[0] == back[1] * back[2] + back[1]);
  CHECK(back[7] == max(back[1], back[2]));
}

TEST_CASE("a bound is written at the first place where its symbol stands") {
  Dim z = Dim::fresh("Z", 8), n = Dim::fresh("N", 7);
  Builder b(kOps, "bounds");
  b.param({DType::kF32, {z * n + z * z + n, n}});
  GraphPtr graph = b.finish().value();
  CHECK(print(kOps, *graph) ==
        "graph bounds(%0: float32((N<=7 + N * Z<=8 + Z * Z), N)) {\n  return\n}\n");
  check_round_trip(*graph);
}

TEST_CASE("sizes that depend on data keep their symbol") {
  GraphPtr graph = read(
      "graph g(%0: int64(N<=50,)) {\n"
      "  %1, %2 = unique(%0) : int64(U<=50,), int64((U + 1),)\n"
      "  %3 = reshape(%1) {shape = (U, 1)} : int64(U, 1)\n"
      "  return %3\n"
      "}\n");
  const Graph& g = *graph;
  CHECK(g.nodes[0].outputs[1].shape[0] == g.nodes[0].outputs[0].shape[0] + 1);
  CHECK(g.nodes[1].outputs[0].shape[0] == g.nodes[0].outputs[0].shape[0]);
  CHECK(g.nodes[0].outputs[0].shape[0] != g.params[0].type.shape[0]);
  check_round_trip(g);
}

TEST_CASE("regions, tokens, several results") {
  GraphPtr graph = read(R"(
    # A comment; blanks do not matter.
    graph "two words"(%p: bool(), %x: float32(8, 3, 4, 4), %t: token token() "print") {
      %a, %b = split(%x) : float32(4, 3, 4, 4), float32(4, 3, 4, 4)
      %u = print(%a, %t) : token()
      %c, %v = if(%p, %b, %u) {} [
        graph then(%0: float32(4, 3, 4, 4), %1: token token() "print") {
          %2 = print(%0, %1) : token()
          return %0, %2
        }
        graph (%0: float32(4, 3, 4, 4), %1: token token() "print") { return %0, %1 }
      ] : float32(4, 3, 4, 4), token()
      return %c, %v
    })");
  CHECK(graph->nodes[2].regions.size() == 2);
  CHECK(graph->params[2].kind == ParamKind::kToken);
  check_round_trip(*graph);
}

struct Refused {
  const char* text;
  const char* words;
};

const Refused kRefused[] = {
    {"", "line 1, column 1: found the end of the text. Expected 'graph'"},
    {"graphs g() { return }", "'graph'"},
    {"graph g( { return }", "a value such as %0"},
    {"graph g() { return } x", "the end of the text after the graph's '}'"},
    {"graph g() { return", "found the end of the text. Expected a value such as %0"},
    {"graph g() {\n  %0 = nothing() : float32()\n  return }",
     "line 2, column 15: found '() : float32()'. Expected an operation; none is called 'nothing'"},
    {"graph g(%0: float33()) { return }", "'float33' is none"},
    {"graph g(%0: float32(-1)) { return }", "a size from 0 to 2^60, not -1"},
    {"graph g(%0: float32(1152921504606846977)) { return }", "2^60"},
    {"graph g(%0: float32(99999999999999999999)) { return }", "64 bits"},
    {"graph g(%0: float32(N, N<=3)) { return }", "no bound here"},
    {"graph g(%0: float32(N<3)) { return }", "'<='"},
    {"graph g(%0: float32(N / 2)) { return }", "'//'"},
    {"graph g(%0: float32(), %0: float32()) { return }", "%0 is defined already"},
    {"graph g(%0: float32()) { return %1 }", "%1 is not defined before"},
    {"graph g(%0: float32()) { %1 = add(%0, %2) : float32() %2 = exp.v2(%0) : float32() return }",
     "%2 is not defined before"},
    {"graph g(%0: float32()) { %1 = exp(%0) : float32() return }", "version 2 of exp, not 1"},
    {"graph g(%0: float32()) { %1 = scale(%0) : float64() return }", "gives (float32())"},
    {"graph g(%0: float32(3,)) { %1 = scale(%0) : float32(4,) return }", "gives (float32(3,))"},
    {"graph g(%0: float32()) { %1 = scale(%0) return }", "1 results and 0 types"},
    {"graph g(%0: float32()) { scale(%0) return }", "gives (float32())"},
    {"graph g(%0: float32()) { %1 = add(%0) : float32() return }", "add: takes two inputs"},
    {"graph g(%0: float32()) { %1 = scale(%0) {a = 1, a = 2} : float32() return }", "given twice"},
    {"graph g(%0: float32()) { %1 = scale(%0) {a = 1.2.3} : float32() return }", "a number"},
    {"graph g(%0: float32()) { %1 = scale(%0) {a = \"x} : float32() return }", "'\"'"},
    {"graph g(%0: float32()) { %1 = scale(%0) {a = \"\\q\"} : float32() return }", "\\n"},
    {"graph g(%0: float32()) { %1 = scale(%0) {a = \"\\x1\"} : float32() return }", "hexadecimal"},
    {"graph g(%0: float32()) { %1 = scale(%0) : float32() @/TPU:0 return }", "a device"},
    {"graph g(%0: float32()) { %1 = scale(%0) : float32() at \"f\":-1 return }", "a line number"},
    {"graph g(%0: float32()) { return slot %0 = %0 }", "which is no variable"},
    {"graph g(%0: slot float32(2)) { %1 = constant() {dtype = int8, shape = (), bytes = \"\"} : "
     "int8() return slot %0 = %1 }",
     "does not fit the variable"},
    {"graph g(%0: float32(), %1: token token()) { %2 = print(%0, %1) : token() "
     "%3 = print(%0, %1) : token() return }",
     "used again"},
    {"graph g(%0: int64(9,)) { %1, %2 = unique(%0) : int64(U<=3,), int64((U + 1),) return }",
     "gives (int64(U,), int64((U + 1),))"},
    {"graph g(%0: int64(9,)) { %1, %2 = unique(%0) : int64(U<=9,), int64(V<=10,) return }",
     "gives (int64(U,)"},
};

TEST_CASE("what is no graph is refused with line, column and what was expected") {
  for (const Refused& refused : kRefused) {
    CAPTURE(refused.text);
    Result<GraphPtr> graph = parse(kOps, refused.text);
    REQUIRE_FALSE(graph.ok());
    CHECK(graph.status().code() == ErrorCode::kBadText);
    CAPTURE(graph.status().message());
    CHECK(graph.status().message().find(refused.words) != std::string::npos);
  }
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST_CASE("texts made to exhaust the reader are refused") {
  std::string deep = "graph g(%0: float32(" + repeated("(", 100000) + "N";
  CHECK(parse(kOps, deep).status().message().find("at most 32 parentheses") != std::string::npos);
  std::string regions =
      "graph g(%0: bool()) { " + repeated("%1 = if(%0) [ graph g(%0: bool()) { ", 10000);
  CHECK(parse(kOps, regions).status().message().find("32 regions") != std::string::npos);
  std::string rank = "graph g(%0: float32(" + repeated("1,", 100000) + ")) { return }";
  CHECK(parse(kOps, rank).status().message().find("64 axes") != std::string::npos);
  std::string symbols = "graph g(";
  for (int i = 0; i < 5000; ++i) {
    std::string n = std::to_string(i);
    symbols += (i ? ", %" : "%") + n + ": float32(S" + n + ",)";
  }
  CHECK(parse(kOps, symbols + ") { return }").status().message().find("4096 symbols") !=
        std::string::npos);
  std::string sums = "graph g(%0: float32(" + repeated("N * 2 + ", 200000) + "1)) { return }";
  CHECK(parse(kOps, sums).status().message().find("100000 operators") != std::string::npos);
  std::string product = "graph g(%0: float32(" + repeated("(N + 1) * ", 40000) + "1)) { return }";
  CHECK(parse(kOps, product).ok());
}

TEST_CASE("cut and damaged texts never do worse than an error") {
  std::string text = kExample;
  for (size_t i = 0; i < text.size() - 1; ++i) {
    CAPTURE(i);
    Result<GraphPtr> graph = parse(kOps, text.substr(0, i));
    CHECK(graph.ok() == (i == text.size() - 1));
  }
  std::mt19937 rng(99);
  const std::string letters = "%(){}[]<>=,:;\"\\/ \n0123456789NmaxgrphU-+*#@.v\x80";
  auto pick = [&rng](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(rng); };
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = text;
    for (size_t k = pick(3) + 1; k > 0; --k) {
      size_t at = pick(damaged.size());
      switch (pick(3)) {
        case 0:
          damaged[at] = letters[pick(letters.size())];
          break;
        case 1:
          damaged.erase(at, pick(8));
          break;
        default:
          damaged.insert(at, damaged.substr(pick(damaged.size()), pick(12)));
      }
    }
    Result<GraphPtr> graph = parse(kOps, damaged);
    if (!graph.ok()) {
      REQUIRE(graph.status().code() == ErrorCode::kBadText);
      continue;
    }
    ++accepted;
    REQUIRE(verify(kOps, **graph).ok());
    std::string printed = print(kOps, **graph, {true, true});
    Result<GraphPtr> back = parse(kOps, printed);
    CAPTURE(printed);
    INFO(back.status().str());
    REQUIRE(back.ok());
    REQUIRE(print(kOps, **back, {true, true}) == printed);
  }
  CHECK(accepted > 100);
}

TEST_CASE("equal graphs have equal keys, whatever their names and symbols") {
  std::string text = kExample;
  auto key = [](std::string t) { return cache_key(kOps, *read(t)); };
  auto with = [&text](const std::string& from, const std::string& to) {
    std::string t = text;
    for (size_t at = 0; (at = t.find(from, at)) != std::string::npos; at += to.size()) {
      t.replace(at, from.size(), to);
    }
    return t;
  };
  std::string plain = key(text);
  CHECK(key(text) == plain);
  CHECK(key(with("(N", "(Batch")) == plain);
  CHECK(key(with("mlp", "other")) == plain);
  CHECK(key(with("dense/matmul", "x")) == plain);
  CHECK(key(with("train.py\":12", "b.py\":13")) == plain);
  CHECK(key(with("\"kernel\"", "\"weights\"")) == plain);
  CHECK(key(with("<=128", "<=256")) != plain);
  CHECK(key(with("784", "785")) != plain);
  CHECK(key(with("float32", "float64")) != plain);
  CHECK(key(with("0.5", "0.25")) != plain);
  CHECK(key(with("[1, -2]", "[1]")) != plain);
  CHECK(key(with("GPU:0 by user", "GPU:1 by user")) != plain);
  CHECK(key(with(" by user", "")) != plain);
  CHECK(key(with("return %3,", "return %2,")) != plain);
  CHECK(key(with(", slot %1 = %4", "")) != plain);
}

}  // namespace
}  // namespace tracefire
