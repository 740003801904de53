// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/grad/grad.h"
#include "core/graph/text.h"
#include "core/ops/math.h"
#include "ops/device_run.h"
#include "ops/op_case.h"
#include "support/paths.h"
#include "support/skip.h"
#include "tracefire/half.h"

namespace tracefire::test {
namespace {

const OpRow& row_of(const OpCase& op_case) {
  return OpTable::instance().row(OpTable::instance().id(op_case.op));
}

std::vector<Array> expect(const OpCase& op_case, const Node& node, const std::vector<Array>& inputs,
                          std::optional<ref::Failure>* failure) {
  if (node.regions.empty()) return ref::evaluate(node, inputs, failure).value();
  return ref::run_graph(*one_node_graph(op_case), inputs, failure).value();
}

/// Every kernel that accepts the case gives what the oracle gives.
void check_correct(const OpCase& op_case, DeviceBackend& device) {
  const BoundNode bound(one_node_graph(op_case), device);
  const std::vector<Array> inputs = make_inputs(op_case, 7);
  std::optional<ref::Failure> failure;
  const std::vector<Array> expected = expect(op_case, bound.node(), inputs, &failure);
  REQUIRE(failure.has_value() == op_case.fails.has_value());
  if (failure) REQUIRE(failure->code == *op_case.fails);
  for (const Kernel* kernel : device.kernels(bound.node().op)) {
    if (!kernel->accept(bound.view()).accepted) continue;
    INFO(device.device().str() << " " << kernel->name() << ": " << op_case.label());
    const Result<DeviceResult> got = run_kernel(device, *kernel, bound.view(), inputs, expected);
    REQUIRE_MESSAGE(got.ok(), got.status().str());
    CHECK(got->failure.has_value() == failure.has_value());
    if (failure && got->failure) {
      CHECK(got->failure->code == failure->code);
      CHECK(got->failure->detail == failure->detail);
    }
    for (size_t i = 0; !failure && i < expected.size(); ++i) {
      CHECK(difference(op_case, got->outputs[i], expected[i]) == "");
    }
  }
}

void check_family(std::vector<OpCase> (*family)(Scale)) {
  for (const OpCase& op_case : family(Scale::kSmall)) {
    for (DeviceBackend* device : case_devices()) check_correct(op_case, *device);
  }
}

TEST_CASE("correct: unary") { check_family(unary_cases); }
TEST_CASE("correct: binary") { check_family(binary_cases); }
TEST_CASE("correct: movement") { check_family(movement_cases); }
TEST_CASE("correct: indexing") { check_family(indexing_cases); }
TEST_CASE("correct: reduction") { check_family(reduction_cases); }
TEST_CASE("correct: product") { check_family(product_cases); }
TEST_CASE("correct: random") { check_family(random_cases); }
TEST_CASE("correct: composite") { check_family(composite_cases); }
TEST_CASE("correct: strings") { check_family(string_cases); }
TEST_CASE("correct: fused") { check_family(fused_cases); }

/// The pieces of a decomposition give what the row promises.
TEST_CASE("correct: decompositions") {
  for (const OpCase& op_case : all_cases(Scale::kSmall)) {
    if (!row_of(op_case).decompose) continue;
    const GraphPtr whole = one_node_graph(op_case);
    Builder b(OpTable::instance());
    std::vector<Value> params;
    for (const Param& param : whole->params) params.push_back(b.param(param.type));
    for (Value value : row_of(op_case).decompose(b, whole->nodes[0], params)) b.result(value);
    const Result<GraphPtr> pieces = b.finish();
    CAPTURE(op_case.label());
    REQUIRE_MESSAGE(pieces.ok(), pieces.status().str());
    const std::vector<Array> inputs = make_inputs(op_case, 7);
    std::optional<ref::Failure> failure, failure_of_pieces;
    const std::vector<Array> expected = expect(op_case, whole->nodes[0], inputs, &failure);
    const std::vector<Array> got = ref::run_graph(**pieces, inputs, &failure_of_pieces).value();
    CHECK(failure.has_value() == failure_of_pieces.has_value());
    if (failure && failure_of_pieces) CHECK(failure->code == failure_of_pieces->code);
    for (size_t i = 0; !failure && i < expected.size(); ++i) {
      CHECK(difference(op_case, got[i], expected[i]) == "");
    }
  }
}

/// The case in double, with attributes to fit; nothing where it is not a floating case.
std::optional<OpCase> in_double(OpCase op_case) {
  int64_t elements = 0;
  for (InputSpec& input : op_case.inputs) {
    input.special.clear();
    if (!is_floating(input.dtype)) continue;
    if (input.dtype != DType::kF64) return std::nullopt;
    elements += ref::count_of(input.sizes);
  }
  const bool fits = elements > 0 && elements <= 64 && op_case.gradient && !op_case.fails;
  return fits ? std::optional<OpCase>(op_case) : std::nullopt;
}

struct Derivative {
  GraphPtr loss, grads;
};

/// loss = sum of all floating results times weights, which are parameters behind the inputs.
Derivative derivative(const OpCase& op_case, std::vector<Array>* params) {
  const GraphPtr whole = one_node_graph(op_case);
  Builder b(OpTable::instance());
  Math m(b);
  std::vector<Value> inputs;
  for (const Param& param : whole->params) inputs.push_back(b.param(param.type));
  std::vector<std::pair<Value, Value>> terms;
  const std::vector<Value> results = inline_graph(*whole, inputs, &b).value();
  InputSpec weight{DType::kF64, {}, 0.5, 1.5, {}};
  OpCase weights;
  for (Value result : results) {
    if (!is_floating(b.dtype(result))) continue;
    weight.sizes = b.shape(result).sizes();
    weights.inputs.push_back(weight);
    terms.emplace_back(result, b.param(b.type(result)));
  }
  for (Array& array : make_inputs(weights, 11)) params->push_back(std::move(array));
  Value loss = b.scalar(0, DType::kF64);
  for (const auto& [result, factor] : terms) {
    std::vector<int64_t> axes;
    for (int i = 0; i < b.shape(result).rank(); ++i) axes.push_back(i);
    loss = m.add(loss, m.sum(m.mul(result, factor), axes));
  }
  Builder forward(OpTable::instance(), b.graph());
  forward.result(loss);
  const Result<std::vector<Value>> grads = gradients(&b, {loss}, {}, inputs);
  REQUIRE_MESSAGE(grads.ok(), grads.status().str());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value grad = (*grads)[i];
    if (is_floating(b.dtype(inputs[i]))) b.result(grad.valid() ? grad : m.zeros_like(inputs[i]));
  }
  return {forward.finish().value(), b.finish().value()};
}

void check_gradient(const OpCase& op_case) {
  std::vector<Array> params = make_inputs(op_case, 5);
  const size_t inputs = params.size();
  const Derivative graphs = derivative(op_case, &params);
  const std::vector<Array> grads = ref::run_graph(*graphs.grads, params).value();
  size_t next = 0;
  for (size_t p = 0; p < inputs; ++p) {
    if (!params[p].is_real()) continue;
    const Array& grad = grads[next++];
    for (size_t i = 0; i < grad.real.size(); ++i) {
      const double x = params[p].real[i], step = 1e-6 * std::max(1.0, std::fabs(x));
      const auto loss_at = [&](double moved) {
        params[p].real[i] = moved;
        const double loss = ref::run_graph(*graphs.loss, params).value()[0].real[0];
        params[p].real[i] = x;
        return loss;
      };
      const double slope = (loss_at(x + step) - loss_at(x - step)) / (2 * step);
      CAPTURE(p);
      CAPTURE(i);
      CHECK(std::fabs(grad.real[i] - slope) <= 2e-5 * std::max(1.0, std::fabs(slope)));
    }
  }
}

TEST_CASE("gradient: every row that has one, against central differences in double") {
  std::set<std::string> checked;
  for (const OpCase& small : all_cases(Scale::kSmall)) {
    const OpRow& row = row_of(small);
    if (!row.gradient.fn) continue;
    const std::optional<OpCase> op_case = in_double(small);
    if (!op_case) continue;
    CAPTURE(op_case->label());
    check_gradient(*op_case);
    checked.insert(row.name);
  }
  for (const OpRow& row : OpTable::instance().rows()) {
    if (!row.gradient.fn || row.op_class == OpClass::kControl) continue;  // tests/grad has those
    if (std::string_view(row.name) == "stop_gradient") continue;          // it has none on purpose
    CHECK_MESSAGE(checked.count(row.name) == 1, row.name << " has no case in double");
  }
}

TEST_CASE("every row that computes has a case, and a kernel or a decomposition on the CPU") {
  std::set<std::string> covered;
  DeviceBackend* cpu = Backends::instance().find(Device{Device::kCpu, 0}).value();
  for (const OpCase& op_case : all_cases(Scale::kSmall)) {
    covered.insert(op_case.op);
    const BoundNode bound(one_node_graph(op_case), *cpu);
    bool runs = row_of(op_case).decompose != nullptr;
    std::string refusals;
    for (const Kernel* kernel : cpu->kernels(bound.node().op)) {
      const Answer answer = kernel->accept(bound.view());
      runs = runs || answer.accepted;
      refusals += answer.refusal + "; ";
    }
    CHECK_MESSAGE(runs, op_case.label() << ": " << refusals);
  }
  for (const OpRow& row : OpTable::instance().rows()) {
    if (!ref::find_eval(OpTable::instance().id(row.name))) continue;
    CHECK_MESSAGE(covered.count(row.name) == 1, row.name << " has no case");
  }
}

TEST_CASE("every case's graph is verified, printed and read back") {
  const OpTable& ops = OpTable::instance();
  for (const OpCase& op_case : all_cases(Scale::kSmall)) {
    const GraphPtr graph = one_node_graph(op_case);
    CAPTURE(op_case.label());
    const Status verdict = verify(ops, *graph);
    CHECK_MESSAGE(verdict.ok(), verdict.str());
    const std::string text = print(ops, *graph);
    const Result<GraphPtr> again = parse(ops, text);
    REQUIRE_MESSAGE(again.ok(), again.status().str() << "\n" << text);
    CHECK(print(ops, **again) == text);
    CHECK(cache_key(ops, **again) == cache_key(ops, *graph));
  }
}

TEST_CASE("support: which kernel accepts which types, written to build/tests/ops_support.json") {
  nlohmann::json table = nlohmann::json::array();
  size_t accepted = 0;
  for (const OpCase& op_case : all_cases(Scale::kSmall)) {
    for (DeviceBackend* device : Backends::instance().devices()) {
      const BoundNode bound(one_node_graph(op_case), *device);
      nlohmann::json entry = {{"op", op_case.op},
                              {"case", op_case.label()},
                              {"device", device->device().str()},
                              {"kernel", nullptr},
                              {"refusals", nlohmann::json::array()}};
      for (const Kernel* kernel : device->kernels(bound.node().op)) {
        const Answer answer = kernel->accept(bound.view());
        if (answer.accepted) {
          entry["kernel"] = kernel->name();
          ++accepted;
          break;
        }
        CHECK(!answer.refusal.empty());
        entry["refusals"].push_back(answer.refusal);
      }
      entry["decomposed"] = entry["kernel"].is_null() && row_of(op_case).decompose != nullptr;
      table.push_back(std::move(entry));
    }
  }
  CHECK(accepted > 0);
  std::ofstream file(binary_dir() + "/tests/ops_support.json");
  file << table.dump(1) << "\n";
  CHECK(file.good());
}

TEST_CASE("speed: GB/s and TFLOP/s of every kernel") {
  if (!std::getenv("TRACEFIRE_OPS_SPEED")) return skip("set TRACEFIRE_OPS_SPEED=1 to time kernels");
  const char* only = std::getenv("TRACEFIRE_OPS_ONLY");
  for (const OpCase& op_case : all_cases(Scale::kLarge)) {
    if (only && op_case.op.find(only) == std::string::npos) continue;
    const std::vector<Array> inputs = make_inputs(op_case, 3);
    for (DeviceBackend* device : Backends::instance().devices()) {
      const GraphPtr graph = one_node_graph(op_case);
      const BoundNode bound(graph, *device);
      std::vector<Array> shapes;
      for (const ValueType& type : bound.node().outputs) {
        shapes.emplace_back(type.dtype, type.shape.sizes());
      }
      const Cost cost = node_cost(*graph, bound.node(), DimEnv());
      for (const Kernel* kernel : device->kernels(bound.node().op)) {
        if (!kernel->accept(bound.view()).accepted) continue;
        const Result<DeviceResult> got =
            run_kernel(*device, *kernel, bound.view(), inputs, shapes, true);
        REQUIRE_MESSAGE(got.ok(), got.status().str());
        std::printf("%-8s %-24s %9.1f us %8.2f GB/s %9.4f TFLOP/s  %s\n",
                    device->device().str().c_str(), std::string(kernel->name()).c_str(),
                    got->seconds * 1e6, cost.bytes / got->seconds * 1e-9,
                    cost.flops / got->seconds * 1e-12, op_case.label().c_str());
      }
    }
  }
}

}  // namespace
}  // namespace tracefire::test
