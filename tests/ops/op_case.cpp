// SPDX-License-Identifier: Apache-2.0
#include "ops/op_case.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>

namespace tracefire::test {

std::string OpCase::label() const {
  std::string text = op;
  for (const InputSpec& input : inputs) {
    text += " " + ValueType{input.dtype, Shape::of(input.sizes)}.str();
  }
  for (const auto& [name, value] : attrs.entries()) {
    text += " " + name;
    if (const int64_t* number = std::get_if<int64_t>(&value)) text += "=" + std::to_string(*number);
    if (const bool* flag = std::get_if<bool>(&value)) text += *flag ? "=true" : "=false";
    if (const DType* dtype = std::get_if<DType>(&value))
      text += "=" + std::string(dtype_name(*dtype));
    if (const Shape* shape = std::get_if<Shape>(&value)) text += "=" + shape->str();
    if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
      text += "=" + Shape::of(*ints).str();
    }
  }
  return text;
}

std::vector<OpCase> all_cases(Scale scale) {
  std::vector<OpCase> all;
  for (auto family : {unary_cases, binary_cases, movement_cases, indexing_cases, reduction_cases,
                      product_cases, random_cases, composite_cases, string_cases, fused_cases}) {
    std::vector<OpCase> cases = family(scale);
    std::move(cases.begin(), cases.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<Array> make_inputs(const OpCase& op_case, uint32_t seed) {
  std::vector<Array> arrays;
  std::mt19937_64 random(seed);
  for (const InputSpec& spec : op_case.inputs) {
    Array array(spec.dtype, spec.sizes);
    const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
    for (double& x : array.real) x = spec.low + (spec.high - spec.low) * unit();
    for (ref::Int& x : array.whole) {
      const double count = std::floor(spec.high) - std::ceil(spec.low) + 1;
      x = static_cast<ref::Int>(std::ceil(spec.low) + std::floor(count * unit()));
    }
    for (std::string& text : array.text) {
      text.resize(random() % 20);
      for (char& c : text) c = static_cast<char>(32 + random() % 95);
    }
    for (size_t i = 0; i < spec.special.size(); ++i) {
      if (i < array.real.size()) array.real[i] = spec.special[i];
      if (i < array.whole.size() && std::isfinite(spec.special[i])) {
        array.whole[i] = static_cast<ref::Int>(spec.special[i]);
      }
    }
    ref::settle(&array);
    arrays.push_back(std::move(array));
  }
  return arrays;
}

GraphPtr one_node_graph(const OpCase& op_case) {
  Builder b(OpTable::instance(), op_case.op);
  std::vector<Value> params;
  for (const InputSpec& input : op_case.inputs) {
    params.push_back(b.param({input.dtype, Shape::of(input.sizes)}));
  }
  const Value first = b.op(op_case.op, params, op_case.attrs, op_case.regions);
  b.status().throw_if_error();
  const int32_t results = static_cast<int32_t>(b.graph().node(first).outputs.size());
  for (int32_t i = 0; i < results; ++i) b.result({first.node, i});
  return b.finish().value();
}

namespace {

double tolerance_of(const OpCase& op_case, DType dtype) {
  const Tolerance& row = OpTable::instance().row(OpTable::instance().id(op_case.op)).tolerance;
  switch (dtype) {
    case DType::kF64:
      return op_case.slack * row.f64;
    case DType::kF32:
      return op_case.slack * row.f32;
    case DType::kF16:
      return op_case.slack * row.f16;
    case DType::kBF16:
      return op_case.slack * row.bf16;
    case DType::kF8E4M3:
      return op_case.slack * 0.13;
    default:
      return op_case.slack * 0.26;
  }
}

/// Below this a result may be off by its rounding to a denormal number.
double smallest_normal(DType dtype) {
  return dtype == DType::kF64 ? 1e-290 : dtype == DType::kF16 ? 6.2e-5 : 1e-30;
}

}  // namespace

std::string difference(const OpCase& op_case, const Array& got, const Array& expected) {
  if (got.dtype != expected.dtype || got.sizes != expected.sizes) {
    return concat_text("got ", dtype_name(got.dtype), Shape::of(got.sizes).str(), " instead of ",
                       dtype_name(expected.dtype), Shape::of(expected.sizes).str());
  }
  for (size_t i = 0; i < expected.whole.size(); ++i) {
    if (got.whole[i] == expected.whole[i]) continue;
    return concat_text("element ", i, " is ", static_cast<int64_t>(got.whole[i]), " instead of ",
                       static_cast<int64_t>(expected.whole[i]));
  }
  for (size_t i = 0; i < expected.text.size(); ++i) {
    if (got.text[i] == expected.text[i]) continue;
    return concat_text("element ", i, " is '", got.text[i], "' instead of '", expected.text[i],
                       "'");
  }
  double largest = smallest_normal(expected.dtype);
  if (op_case.whole_scale) {
    for (double x : expected.real) {
      if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
    }
  }
  const double tolerance = tolerance_of(op_case, expected.dtype);
  for (size_t i = 0; i < expected.real.size(); ++i) {
    const double x = got.real[i], y = expected.real[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (std::isfinite(y) && std::fabs(x - y) <= tolerance * std::max(std::fabs(y), largest)) {
      continue;
    }
    char text[160];
    std::snprintf(text, sizeof text, "element %zu is %.17g instead of %.17g, tolerance %g", i, x, y,
                  tolerance);
    return text;
  }
  return "";
}

}  // namespace tracefire::test
