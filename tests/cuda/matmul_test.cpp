// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <random>

#include "backends/cuda/kernel_table.h"
#include "cuda/emulated_gpu.h"
#include "tracefire/half.h"

namespace tracefire::cuda {
namespace {

using test::EmulatedGpu;

struct Case {
  std::vector<int64_t> a, b;
  bool transpose_a = false, transpose_b = false;
};

/// Types of a product and the node that makes it.
struct Problem {
  Node node;
  std::vector<ValueType> inputs, outputs;
  NodeView view;

  Problem(const Case& c, DType dtype, const char* precision = "default") {
    node.op = OpTable::instance().id("matmul");
    node.attrs = Attrs{{"transpose_a", c.transpose_a},
                       {"transpose_b", c.transpose_b},
                       {"precision", std::string(precision)}};
    inputs = {{dtype, Shape::of(c.a)}, {dtype, Shape::of(c.b)}};
    const Status inferred = OpTable::instance().infer(inputs, &node);
    REQUIRE(inferred.ok());
    outputs = node.outputs;
    view.node = &node;
    view.inputs = inputs;
    view.outputs = outputs;
  }
};

size_t count(const std::vector<int64_t>& sizes) {
  return static_cast<size_t>(product(sizes, 0, sizes.size()));
}

/// The definition, in double, by coordinates.
std::vector<double> reference(const Case& c, const std::vector<int64_t>& out,
                              const std::vector<double>& a, const std::vector<double>& b) {
  const size_t rank = out.size();
  const int64_t k = c.a[c.a.size() - (c.transpose_a ? 2 : 1)];
  std::vector<double> result(count(out), 0);
  for (size_t e = 0; e < result.size(); ++e) {
    std::vector<int64_t> index(rank);
    size_t rest = e;
    for (size_t i = rank; i-- > 0;) {
      index[i] = static_cast<int64_t>(rest) % out[i];
      rest /= static_cast<size_t>(out[i]);
    }
    const auto offset = [&](const std::vector<int64_t>& sizes, bool swap, int64_t row,
                            int64_t col) {
      int64_t place = 0;
      for (size_t i = 0; i + 2 < sizes.size(); ++i) {
        const int64_t at = index[rank - sizes.size() + i];
        place = place * sizes[i] + (sizes[i] == 1 ? 0 : at);
      }
      if (swap) std::swap(row, col);
      return static_cast<size_t>((place * sizes[sizes.size() - 2] + row) * sizes[sizes.size() - 1] +
                                 col);
    };
    for (int64_t q = 0; q < k; ++q) {
      result[e] += a[offset(c.a, c.transpose_a, index[rank - 2], q)] *
                   b[offset(c.b, c.transpose_b, q, index[rank - 1])];
    }
  }
  return result;
}

template <class T>
void check_product(EmulatedGpu& gpu, const Case& c, double tolerance, size_t shift = 0) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const auto draw = [&](size_t n) {
    std::vector<T> values;
    for (size_t i = 0; i < n; ++i) values.push_back(static_cast<T>(normal(random)));
    return values;
  };
  Problem problem(c, DTypeOf<T>::value);
  const std::vector<T> a = draw(count(c.a)), b = draw(count(c.b));
  std::vector<T> shifted = b;
  shifted.insert(shifted.begin(), shift, T());
  const BufferPtr da = gpu.put(a), db = gpu.put(shifted);
  const std::vector<int64_t> out = problem.outputs[0].shape.sizes();
  const BufferPtr dc = gpu.put(std::vector<T>(count(out), static_cast<T>(NAN)));
  const Kernel* const kernel = gpu.device().kernels(problem.node.op).front();
  REQUIRE(kernel->accept(problem.view).accepted);
  const Result<std::unique_ptr<Launch>> launch = kernel->bind(problem.view, gpu.device());
  REQUIRE(launch.ok());
  const BufferPtr workspace =
      gpu.device().allocate((*launch)->workspace_bytes(), "workspace").value();
  void* const inputs[] = {da->data(), static_cast<T*>(db->data()) + shift};
  void* const outputs[] = {dc->data()};
  const Status ran = (*launch)->run({gpu.stream(), inputs, outputs, workspace->data(), nullptr, 0});
  REQUIRE(ran.ok());
  const std::vector<double> expected = reference(c, out, std::vector<double>(a.begin(), a.end()),
                                                 std::vector<double>(b.begin(), b.end()));
  const std::vector<T> got = gpu.get<T>(dc, expected.size());
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = std::fabs(static_cast<double>(got[i]) - expected[i]);
    largest =
        std::isnan(error) ? INFINITY : std::max(largest, error / (1 + std::fabs(expected[i])));
  }
  CHECK(largest <= tolerance);
}

const Case kCases[] = {
    {{3, 4}, {4, 5}},
    {{4, 3}, {4, 5}, true, false},
    {{3, 4}, {5, 4}, false, true},
    {{4, 3}, {5, 4}, true, true},
    {{1, 7}, {7, 1}},
    {{2, 3, 4}, {2, 4, 5}},              // one matrix of each a batch element
    {{2, 3, 4}, {4, 5}},                 // the same b for all
    {{2, 4, 3}, {4, 5}, true, false},    // the same, but a is transposed
    {{3, 4}, {6, 4, 5}},                 // the same a for all
    {{2, 1, 3, 4}, {5, 4, 2}},           // both repeat, along different axes
    {{2, 1, 3, 3, 4}, {1, 2, 1, 4, 5}},  // an outer axis needs calls of its own
    {{2, 3, 2, 4}, {2, 3, 4, 2}},        // two axes that merge
};

TEST_CASE("cuda matmul: every way to transpose and to repeat") {
  EmulatedGpu gpu;
  for (const Case& c : kCases) {
    CAPTURE(c.a.size());
    check_product<double>(gpu, c, 1e-13);
    check_product<float>(gpu, c, 1e-6);
  }
}

TEST_CASE("cuda matmul: half types") {
  EmulatedGpu gpu;
  // The values are drawn as bits of the type itself, so only the result is rounded.
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const Case c{{2, 3}, {3, 2}};
    Problem problem(c, dtype);
    const auto bits = [&](float v) {
      return dtype == DType::kF16 ? f16_from_float(v) : bf16_from_float(v);
    };
    std::vector<uint16_t> a, b;
    for (int i = 0; i < 6; ++i) a.push_back(bits(static_cast<float>(i))), b.push_back(bits(1.f));
    const BufferPtr da = gpu.put(a), db = gpu.put(b), dc = gpu.put(std::vector<uint16_t>(4));
    const Kernel* const kernel = gpu.device().kernels(problem.node.op).front();
    const std::unique_ptr<Launch> launch = kernel->bind(problem.view, gpu.device()).value();
    void* const inputs[] = {da->data(), db->data()};
    void* const outputs[] = {dc->data()};
    REQUIRE(launch->run({gpu.stream(), inputs, outputs, nullptr, nullptr, 0}).ok());
    CHECK(gpu.get<uint16_t>(dc, 4) == std::vector<uint16_t>{bits(3), bits(3), bits(12), bits(12)});
  }
}

TEST_CASE("cuda matmul: an operand at an odd address gets a plan of its own") {
  EmulatedGpu gpu;
  check_product<float>(gpu, {{3, 4}, {4, 5}}, 1e-6, 1);
  check_product<float>(gpu, {{2, 1, 3, 4}, {5, 4, 2}}, 1e-6, 3);
}

TEST_CASE("cuda matmul: nothing to add, nothing to write") {
  EmulatedGpu gpu;
  check_product<float>(gpu, {{3, 0}, {0, 5}}, 0);  // a sum over nothing is zero
  check_product<float>(gpu, {{0, 3}, {3, 5}}, 0);
  check_product<float>(gpu, {{0, 2, 3}, {3, 5}}, 0);
  CHECK(gpu.counts().matmuls == 0);
}

TEST_CASE("cuda matmul: refusals say why") {
  EmulatedGpu gpu;
  Problem problem({{3, 4}, {4, 5}}, DType::kI32);
  const Answer answer = gpu.device().kernels(problem.node.op).front()->accept(problem.view);
  CHECK_FALSE(answer.accepted);
  CHECK(answer.refusal == "cublaslt: products of int32 are not supported");
}

TEST_CASE(
    "cuda matmul: plans are kept, large ones are measured unless the program must be "
    "deterministic") {
  EmulatedGpu gpu;
  const Case large{{1024, 1024}, {1024, 512}};
  Problem problem(large, DType::kF32);
  const Kernel* const kernel = gpu.device().kernels(problem.node.op).front();
  problem.view.deterministic = true;
  REQUIRE(kernel->bind(problem.view, gpu.device()).ok());
  CHECK(gpu.counts().matmuls == 0);

  const Case small{{64, 64}, {64, 64}};
  Problem other(small, DType::kF32);
  REQUIRE(kernel->bind(other.view, gpu.device()).ok());
  CHECK(gpu.counts().matmuls == 0);
  CHECK(gpu.device().memory().in_use == 0);
}

TEST_CASE("cuda matmul: the fastest algorithm is chosen by measurement") {
  EmulatedGpu gpu;
  const test::ScopedEnv slow("TF_EMU_SLOW_FIRST", "1");
  MatmulPlans* const plans = gpu.device().matmul_plans().value();
  const std::shared_ptr<const Context> context = gpu.device().context().value();
  const auto pool = std::make_shared<Pool>(context, [] { return Pool::Token(); });
  MatmulProblem problem;
  problem.m = problem.n = problem.k = 8;
  const MatmulPlans::Tuning tuning{*pool, lane_of(gpu.stream()), 0};
  const auto measured = plans->find(problem, tuning).value();
  CHECK(measured->workspace_bytes() == 4096);  // the second algorithm's
  CHECK(gpu.counts().matmuls == 12);           // two candidates, one run to warm up and five timed
  CHECK(plans->find(problem, tuning).value() == measured);
  CHECK(gpu.counts().matmuls == 12);
  problem.m = 9;
  CHECK(plans->find(problem, std::nullopt).value()->workspace_bytes() == 0);
  CHECK(pool->stats().in_use == 0);
}

TEST_CASE("cuda matmul: a product can be recorded") {
  EmulatedGpu gpu;
  Problem problem({{2, 2}, {2, 2}}, DType::kF32);
  const Kernel* const kernel = gpu.device().kernels(problem.node.op).front();
  const std::unique_ptr<Launch> launch = kernel->bind(problem.view, gpu.device()).value();
  const BufferPtr a = gpu.put(std::vector<float>{0, 1, 1, 0});
  const BufferPtr b = gpu.put(std::vector<float>{1, 2, 3, 4});
  const BufferPtr c = gpu.put(std::vector<float>(4, 0.f));
  const Result<std::unique_ptr<CapturedGraph>> graph =
      gpu.device().capture(gpu.stream(), [&](Stream& stream) {
        void* const inputs[] = {a->data(), b->data()};
        void* const outputs[] = {c->data()};
        return launch->run({stream, inputs, outputs, nullptr, nullptr, 0});
      });
  REQUIRE(graph.ok());
  CHECK(gpu.get<float>(c, 4) == std::vector<float>(4, 0.f));
  REQUIRE((*graph)->launch(gpu.stream()).ok());
  CHECK(gpu.get<float>(c, 4) == std::vector<float>{3, 4, 1, 2});
}

}  // namespace
}  // namespace tracefire::cuda
