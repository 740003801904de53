// SPDX-License-Identifier: Apache-2.0
// Programs of all passes compute what programs of none compute: on the CPU, bit by bit where passes
// promise it, closely where they may round differently.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "core/compile/compile.h"
#include "core/graph/builder.h"
#include "core/graph/text.h"
#include "core/runtime/executor.h"
#include "core/runtime/transfer.h"
#include "support/paths.h"

namespace tracefire {
namespace {

constexpr Device kCpu{Device::kCpu, 0};

CompileOptions plain_options() {
  CompileOptions options;
  options.device = kCpu;
  options.precision = Precision::kHighest;
  options.disabled_passes = {"raise_softmax", "simplify", "fuse"};
  return options;
}

CompileOptions full_options() {
  CompileOptions options = plain_options();
  options.disabled_passes.clear();
  return options;
}

/// Outputs, then the new values of slots, of one run.
std::vector<HostArray> run(const GraphPtr& graph, const CompileOptions& options,
                           const std::vector<HostArray>& inputs, const DimEnv& env) {
  RunRequest request;
  request.program = compile(graph, options).value();
  request.env = env;
  for (const HostArray& input : inputs) {
    request.params.push_back(from_host_array(input, kCpu).value());
  }
  const RunOutcome outcome = Executor::instance().run(request).value();
  std::vector<HostArray> arrays;
  for (size_t i = 0; i < outcome.results.size(); ++i) {
    const int32_t slot = graph->results[i].slot;
    arrays.push_back(to_host(outcome.types[i], slot >= 0 ? request.params[static_cast<size_t>(slot)]
                                                         : outcome.results[i])
                         .value());
  }
  return arrays;
}

float element(const HostArray& array, size_t index) {
  float value;
  std::memcpy(&value, array.bytes.data() + index * 4, 4);
  return value;
}

/// Relative difference; infinite where one is NaN and the other is not.
double difference(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : INFINITY;
  if (a == b) return 0;
  return std::fabs(a - b) / std::max({std::fabs(a), std::fabs(b), 1e-3f});
}

void check_same(const GraphPtr& graph, const std::vector<HostArray>& inputs, const DimEnv& env,
                double tolerance) {
  const auto plain = run(graph, plain_options(), inputs, env);
  const auto full = run(graph, full_options(), inputs, env);
  REQUIRE(plain.size() == full.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    INFO("result ", i, " of ", print(OpTable::instance(), *graph));
    REQUIRE(plain[i].sizes == full[i].sizes);
    if (plain[i].dtype != DType::kF32 || tolerance == 0) {
      // NaNs may differ in their bits, nothing else.
      bool same = plain[i].bytes.size() == full[i].bytes.size();
      for (size_t k = 0; same && k < plain[i].bytes.size() / 4; ++k) {
        same = std::memcmp(plain[i].bytes.data() + k * 4, full[i].bytes.data() + k * 4, 4) == 0 ||
               (plain[i].dtype == DType::kF32 && std::isnan(element(plain[i], k)) &&
                std::isnan(element(full[i], k)));
      }
      CHECK(same);
      continue;
    }
    double worst = 0;
    for (size_t k = 0; k < plain[i].bytes.size() / 4; ++k) {
      worst = std::max(worst, difference(element(plain[i], k), element(full[i], k)));
    }
    CHECK(worst <= tolerance);
  }
}

HostArray floats(const std::vector<int64_t>& sizes, std::mt19937* random, bool special) {
  static const float kSpecial[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1.0f, -1.0f, 1e-40f};
  HostArray array{DType::kF32, sizes, {}, {}};
  int64_t elements = 1;
  for (int64_t size : sizes) elements *= size;
  for (int64_t i = 0; i < elements; ++i) {
    float value = std::normal_distribution<float>(0, 2)(*random);
    if (special && (*random)() % 4 == 0) value = kSpecial[(*random)() % std::size(kSpecial)];
    const char* bytes = reinterpret_cast<const char*>(&value);
    array.bytes.insert(array.bytes.end(), bytes, bytes + 4);
  }
  return array;
}

HostArray integers(DType dtype, const std::vector<int64_t>& sizes, uint32_t limit,
                   std::mt19937* random) {
  HostArray array{dtype, sizes, {}, {}};
  int64_t elements = 1;
  for (int64_t size : sizes) elements *= size;
  for (int64_t i = 0; i < elements; ++i) {
    const uint32_t value = (*random)() % limit;
    const char* bytes = reinterpret_cast<const char*>(&value);
    array.bytes.insert(array.bytes.end(), bytes, bytes + 4);
  }
  return array;
}

GraphPtr parsed(const std::string& text) { return parse(OpTable::instance(), text).value(); }

/// Random element-wise graphs over shapes that broadcast, with casts, reshapes, reductions and
/// scalars among them.
class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed), b_(OpTable::instance(), "random") {}

  GraphPtr build(std::vector<HostArray>* inputs, bool special) {
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{4, 5}, Shape{4, 1}, Shape{20}}) {
      values_.push_back(b_.param({DType::kF32, shape}));
      inputs->push_back(floats(shape.sizes(), &random_, special));
    }
    for (int i = 0; i < 30; ++i) add();
    for (int i = 0; i < 4; ++i) b_.result(values_[values_.size() - 1 - random_() % 12]);
    return b_.finish().value();
  }

 private:
  Value pick() { return values_[random_() % values_.size()]; }

  void add() {
    static const char* const kUnary[] = {"neg", "abs", "relu", "square", "floor", "sign"};
    static const char* const kBinary[] = {"add", "sub", "mul", "maximum", "minimum"};
    static const double kNumbers[] = {0, -0.0, 1, -1, 2, 0.5};
    const Value x = pick();
    Value y;
    switch (random_() % 9) {
      case 0:
      case 1:
        y = b_.op(kUnary[random_() % std::size(kUnary)], {x});
        break;
      case 2:
        y = b_.op(kBinary[random_() % std::size(kBinary)],
                  {x, b_.scalar(kNumbers[random_() % std::size(kNumbers)], DType::kF32)});
        break;
      case 3:
        y = b_.op("div", {x, b_.scalar(random_() % 2 ? 1 : 4, DType::kF32)});
        break;
      case 4:
        y = b_.op("select",
                  {b_.op("less", {x, b_.scalar(0.5, DType::kF32)}), x, b_.scalar(0, DType::kF32)});
        break;
      case 5:
        if (b_.shape(x).elements() != Dim(20)) return;
        y = b_.op("reshape", {x}, {{"shape", b_.shape(x).rank() == 1 ? Shape{4, 5} : Shape{20}}});
        break;
      case 6:
        if (b_.shape(x).rank() == 0 || b_.shape(x) == Shape{20}) return;
        y = b_.op("broadcast_to", {x}, {{"shape", Shape{4, 5}}});
        break;
      case 7:
        if (b_.shape(x) != Shape{4, 5}) return;
        y = b_.op("reduce_max", {x}, {{"axes", std::vector<int64_t>{1}}, {"keepdims", true}});
        break;
      default: {
        const Value z = pick();
        const bool vector = b_.shape(x) == Shape{20} || b_.shape(z) == Shape{20};
        if (vector && b_.shape(x) != b_.shape(z)) return;
        y = b_.op(kBinary[random_() % std::size(kBinary)], {x, z});
      }
    }
    values_.push_back(y);
  }

  std::mt19937 random_;
  Builder b_;
  std::vector<Value> values_;
};

TEST_CASE("random graphs: passes keep every bit, NaN, infinity and the sign of zero") {
  for (uint32_t seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    std::vector<HostArray> inputs;
    const GraphPtr graph = RandomGraph(seed).build(&inputs, seed % 2 == 1);
    check_same(graph, inputs, {}, 0);
  }
}

TEST_CASE("softmax and log_softmax in primitives are raised to the same numbers") {
  const std::string head =
      "graph g(%0: float32(N, 7)) {\n"
      "  %1 = reduce_max(%0) {axes = [1], keepdims = true} : float32(N, 1)\n"
      "  %2 = sub(%0, %1) : float32(N, 7)\n"
      "  %3 = exp(%2) : float32(N, 7)\n"
      "  %4 = reduce_sum(%3) {axes = [1], keepdims = true} : float32(N, 1)\n";
  const GraphPtr graph = parsed(head +
                                "  %5 = div(%3, %4) : float32(N, 7)\n"
                                "  %6 = log(%4) : float32(N, 1)\n"
                                "  %7 = sub(%2, %6) : float32(N, 7)\n"
                                "  return %5, %7\n}\n");
  const int32_t n = graph->params[0].type.shape[0].symbol();
  std::mt19937 random(5);
  for (bool special : {false, true}) {
    for (float scale : {1.0f, 60.0f, 1e37f}) {  // exp() underflows, sums of differences overflow
      DimEnv env;
      env.set(n, 40);
      HostArray x = floats({40, 7}, &random, special);
      for (size_t i = 0; i < x.bytes.size() / 4; ++i) {
        const float value = element(x, i) * scale;
        std::memcpy(x.bytes.data() + i * 4, &value, 4);
      }
      // The logarithm of a sum near 1 has the sum's absolute error.
      check_same(graph, {x}, env, scale == 1 ? 1e-5 : 1e-4);
    }
  }
}

TEST_CASE("the logarithm of a softmax is -inf where the softmax underflows") {
  const GraphPtr graph = parsed(
      "graph g(%0: float32(3, 3)) {\n"
      "  %1 = softmax(%0) {axis = 1} : float32(3, 3)\n"
      "  %2 = log(%1) : float32(3, 3)\n"
      "  %3 = log_softmax(%0) {axis = 1} : float32(3, 3)\n"
      "  return %2, %3\n}\n");
  const float x[] = {0, -200, 1, 0, -std::numeric_limits<float>::infinity(), 0, 1, 2, NAN};
  HostArray input{DType::kF32, {3, 3}, {}, {}};
  input.bytes.assign(reinterpret_cast<const char*>(x), reinterpret_cast<const char*>(x + 9));
  check_same(graph, {input}, {}, 1e-6);
  const auto results = run(graph, full_options(), {input}, {});
  const float minus_infinity = -std::numeric_limits<float>::infinity();
  CHECK(element(results[0], 1) == minus_infinity);
  CHECK(element(results[0], 4) == minus_infinity);
  CHECK(element(results[1], 1) == doctest::Approx(-201.31326));  // 1 + log(1 + e^-1) above it
  CHECK(element(results[1], 4) == minus_infinity);
  CHECK(element(results[0], 0) == doctest::Approx(-1.31326));
  for (size_t i = 6; i < 9; ++i) CHECK(std::isnan(element(results[0], i)));
}

TEST_CASE("random bits are the same in a loop, alone, and with other nodes around") {
  const GraphPtr graph = parsed(
      "graph g(%0: uint32(2,), %1: float32(6, 8)) {\n"
      "  %2 = random_uniform(%0) {algorithm = \"threefry2x32\", dtype = float32, shape = (6, 8)} : "
      "float32(6, 8)\n"
      "  %3 = random_bits(%0) {algorithm = \"philox4x32\", dtype = uint32, shape = (48,)} : "
      "uint32(48,)\n"
      "  %4 = reshape(%3) {shape = (6, 8)} : uint32(6, 8)\n"
      "  %5 = cast(%4) {dtype = float32} : float32(6, 8)\n"
      "  %6 = mul(%5, %2) : float32(6, 8)\n"
      "  %7 = add(%6, %1) : float32(6, 8)\n"
      "  return %2, %7\n}\n");
  std::mt19937 random(6);
  check_same(graph, {integers(DType::kU32, {2}, 1u << 31, &random), floats({6, 8}, &random, false)},
             {}, 0);
}

TEST_CASE("one_hot by comparison, whatever its indices are") {
  const GraphPtr graph = parsed(
      "graph g(%0: int32(3, 4)) {\n"
      "  %1 = one_hot(%0) {depth = 5, dtype = float32} : float32(3, 4, 5)\n"
      "  %2 = neg(%1) : float32(3, 4, 5)\n"
      "  return %2\n}\n");
  std::mt19937 random(7);
  check_same(graph, {integers(DType::kI32, {3, 4}, 9, &random)}, {}, 0);
}

TEST_CASE("Keras's train step: variables after three steps") {
  std::ifstream file(test::source_dir() + "/tests/ir/golden/keras_mlp_step.txt");
  std::stringstream text;
  text << file.rdbuf();
  std::string all = text.str();
  const size_t first = all.find("graph "), last = all.find("=== ");
  REQUIRE(last != std::string::npos);
  const GraphPtr graph = parsed(all.substr(first, last - first));
  std::mt19937 random(8);
  std::vector<HostArray> state;
  for (const Param& param : graph->params) {
    const std::vector<int64_t> sizes = param.type.shape.sizes();
    if (param.type.dtype == DType::kF32) {
      HostArray array = floats(sizes, &random, false);
      // Second moments and counts are not negative.
      for (size_t i = 0; i < array.bytes.size() / 4; ++i) {
        const float value = std::fabs(element(array, i)) * 0.1f;
        std::memcpy(array.bytes.data() + i * 4, &value, 4);
      }
      state.push_back(array);
    } else {
      state.push_back(integers(param.type.dtype, sizes, 3, &random));
    }
  }
  for (int step = 0; step < 3; ++step) {
    check_same(graph, state, {}, 2e-4);
    const auto next = run(graph, full_options(), state, {});
    for (size_t i = 0; i < next.size(); ++i) {
      const int32_t slot = graph->results[i].slot;
      if (slot >= 0) state[static_cast<size_t>(slot)] = next[i];
    }
  }
}

}  // namespace
}  // namespace tracefire
