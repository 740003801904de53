// SPDX-License-Identifier: Apache-2.0
// Products, random numbers, composites, strings and fused loops.
#include <cmath>

#include "core/ops/math.h"
#include "ops/op_case.h"

namespace tracefire::test {
namespace {

using Ints = std::vector<int64_t>;
const double kNan = NAN, kInf = INFINITY;

struct Product {
  Ints a, b;
  bool ta, tb;
};
const std::vector<Product> kProducts = {
    {{3, 4}, {4, 5}, false, false},       {{4, 3}, {4, 5}, true, false},
    {{3, 4}, {5, 4}, false, true},        {{4, 3}, {5, 4}, true, true},
    {{2, 3, 4}, {4, 2}, false, false},    {{2, 1, 3, 2}, {2, 2, 3}, false, false},
    {{1, 7}, {7, 1}, false, false},       {{65, 129}, {129, 33}, false, false},
    {{129, 65}, {33, 129}, true, true},   {{128, 784}, {784, 10}, false, false},
    {{784, 128}, {784, 64}, true, false}, {{3, 0}, {0, 2}, false, false},
    {{0, 3}, {3, 2}, false, false}};

}  // namespace

std::vector<OpCase> product_cases(Scale scale) {
  std::vector<OpCase> cases;
  if (scale == Scale::kLarge) {
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      const InputSpec square{dtype, {2048, 2048}, -1, 1, {}};
      cases.push_back({"matmul", {square, square}, {}, {}});
      cases.push_back(
          {"matmul", {{dtype, {128, 784}, -1, 1, {}}, {dtype, {784, 128}, -1, 1, {}}}, {}, {}});
    }
    return cases;
  }
  for (const Product& product : kProducts) {
    for (DType dtype :
         {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI32, DType::kI64}) {
      const bool whole = !is_floating(dtype);
      OpCase op_case{"matmul",
                     {{dtype, product.a, whole ? -9.0 : -1.0, whole ? 9.0 : 1.0, {}},
                      {dtype, product.b, whole ? -9.0 : -1.0, whole ? 9.0 : 1.0, {}}},
                     {{"transpose_a", product.ta}, {"transpose_b", product.tb}},
                     {}};
      op_case.whole_scale = true;
      cases.push_back(op_case);
    }
  }
  for (const Product& product : kProducts) {
    for (DType a : {DType::kI8, DType::kU8}) {
      for (DType b : {DType::kI8, DType::kU8}) {
        const auto all = [](DType dtype, const std::vector<int64_t>& sizes) {
          const bool is_signed = dtype == DType::kI8;
          return InputSpec{dtype, sizes, is_signed ? -128.0 : 0.0, is_signed ? 127.0 : 255.0, {}};
        };
        cases.push_back({"int_matmul",
                         {all(a, product.a), all(b, product.b)},
                         {{"transpose_a", product.ta}, {"transpose_b", product.tb}},
                         {}});
      }
    }
  }
  // All extremes: sums of pairs of products leave 16 bits.
  for (const double low : {-128.0, 127.0}) {
    cases.push_back({"int_matmul",
                     {{DType::kU8, {3, 70}, 255, 255, {}}, {DType::kI8, {70, 5}, low, low, {}}},
                     {},
                     {}});
  }
  OpCase precise = cases[1];
  precise.attrs.set("precision", std::string("highest"));
  cases.push_back(precise);
  return cases;
}

std::vector<OpCase> random_cases(Scale scale) {
  std::vector<OpCase> cases;
  const InputSpec key{DType::kU32, {2}, 0, 4294967295.0, {}};
  const InputSpec offset{DType::kI64, {}, 1000, 1e12, {}};
  const Shape shape = scale == Scale::kLarge ? Shape{4096, 2048} : Shape{7, 11};
  for (const char* algorithm : {"threefry2x32", "philox4x32"}) {
    const auto attrs = [&](DType dtype) {
      return Attrs{{"shape", shape}, {"dtype", dtype}, {"algorithm", std::string(algorithm)}};
    };
    if (scale == Scale::kLarge) {
      cases.push_back({"random_bits", {key}, attrs(DType::kU32), {}});
      continue;
    }
    for (DType dtype : {DType::kU32, DType::kU64, DType::kU8, DType::kU16}) {
      cases.push_back({"random_bits", {key}, attrs(dtype), {}});
      cases.push_back({"random_bits", {key, offset}, attrs(dtype), {}});
    }
    for (DType dtype : kFloats) {
      cases.push_back({"random_uniform", {key}, attrs(dtype), {}});
      cases.push_back({"random_uniform", {key, offset}, attrs(dtype), {}});
    }
  }
  return cases;
}

namespace {

void add_softmax(std::vector<OpCase>* cases, DType dtype) {
  for (const char* op : {"softmax", "log_softmax"}) {
    cases->push_back({op, {{dtype, {4, 6}, -4, 4, {}}}, {}, {}});
    cases->push_back({op, {{dtype, {3, 5, 2}, -4, 4, {}}}, {{"axis", int64_t{1}}}, {}});
    cases->push_back({op, {{dtype, {33, 129}, -9, 9, {100, -100}}}, {}, {}});
    cases->push_back({op, {{dtype, {3, 4}, -4, 4, {-kInf, 1, 2, 3, kNan}}}, {}, {}});
    for (size_t i = cases->size() - 4; i < cases->size(); ++i) (*cases)[i].slack = 4;
  }
}

void add_losses(std::vector<OpCase>* cases, DType dtype) {
  for (DType index : {DType::kI32, DType::kI64, DType::kU8}) {
    for (const auto& [rows, classes] :
         {std::pair<Ints, int64_t>{{5}, 4}, {{2, 3}, 5}, {{64}, 10}}) {
      Ints sizes = rows;
      sizes.push_back(classes);
      const InputSpec logits{dtype, sizes, -3, 3, {}};
      const InputSpec labels{index, rows, 0, static_cast<double>(classes - 1), {}};
      OpCase loss{"softmax_cross_entropy", {logits, labels}, {}, {}};
      OpCase grad{
          "softmax_cross_entropy_grad", {logits, labels, {dtype, rows, 0.5, 2, {}}}, {}, {}};
      loss.slack = grad.slack = 4;
      loss.whole_scale = grad.whole_scale = true;
      cases->insert(cases->end(), {loss, grad});
      if (index == DType::kU8) continue;
      for (OpCase* op_case : {&loss, &grad}) {
        op_case->inputs[1].special = {0, static_cast<double>(classes)};
        op_case->fails = ErrorCode::kIndexOutOfRange;
        cases->push_back(*op_case);
        op_case->inputs[1].special = {0, -1};
        cases->push_back(*op_case);
      }
    }
  }
}

void add_adam(std::vector<OpCase>* cases, DType dtype) {
  for (DType step : {DType::kI64, DType::kF32, DType::kI32}) {
    for (const Ints& sizes : {Ints{7}, Ints{33, 20}, Ints{}}) {
      const InputSpec x{dtype, sizes, -1, 1, {}}, v{dtype, sizes, 0.1, 1, {}};
      OpCase op_case{"adam_update",
                     {x, x, x, v, {step, {}, 3, 3, {}}, {DType::kF32, {}, 0.001, 0.1, {}}},
                     {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-7}},
                     {}};
      op_case.whole_scale = true;
      op_case.slack = 2;
      cases->push_back(op_case);
    }
  }
}

}  // namespace

std::vector<OpCase> composite_cases(Scale scale) {
  std::vector<OpCase> cases;
  if (scale == Scale::kLarge) {
    const InputSpec x{DType::kF32, {4096, 2048}, -3, 3, {}};
    const InputSpec rate{DType::kF32, {}, 0.001, 0.001, {}}, step{DType::kI64, {}, 3, 3, {}};
    const InputSpec v{DType::kF32, {4096, 2048}, 0.1, 1, {}};
    cases.push_back({"softmax", {x}, {}, {}});
    cases.push_back({"softmax_cross_entropy", {x, {DType::kI64, {4096}, 0, 2047, {}}}, {}, {}});
    cases.push_back({"adam_update", {x, x, x, v, step, rate}, {}, {}});
    return cases;
  }
  for (DType dtype : kFloats) {
    add_softmax(&cases, dtype);
    add_losses(&cases, dtype);
    add_adam(&cases, dtype);
  }
  return cases;
}

std::vector<OpCase> string_cases(Scale scale) {
  if (scale == Scale::kLarge) return {};
  std::vector<OpCase> cases;
  const InputSpec text{DType::kString, {3, 5}, 0, 0, {}}, row{DType::kString, {5}, 0, 0, {}};
  for (const char* op : {"string_length", "string_upper", "string_lower"}) {
    cases.push_back({op, {text}, {}, {}});
  }
  cases.push_back({"string_join", {text, row, text}, {{"separator", std::string("-")}}, {}});
  cases.push_back({"string_join", {row}, {}, {}});
  for (DType dtype : kNumbers) {
    cases.push_back({"as_string", {{dtype, {20}, 0, 100, {0, 1, 2.5}}}, {}, {}});
    cases.push_back({"as_string", {{dtype, {20}, 0, 100, {}}}, {{"precision", int64_t{3}}}, {}});
  }
  cases.push_back({"as_string", {{DType::kBool, {20}, 0, 1, {}}}, {}, {}});
  cases.push_back(
      {"as_string", {{DType::kF32, {20}, 0, 1, {kNan, kInf, -kInf, 1e30, 1e-30}}}, {}, {}});
  return cases;
}

namespace {

/// tanh(a * b + c) > 0 ? … : …, with a broadcast row and two results.
GraphPtr chain(DType dtype, const Shape& shape, const Shape& row) {
  Builder b(OpTable::instance(), "chain");
  Math m(b);
  const Value x = b.param({dtype, shape}), y = b.param({dtype, shape}), c = b.param({dtype, row});
  const Value sum = m.add(m.mul(x, y), c);
  const Value curve = m.op("tanh", {sum});
  const Value positive = m.op("greater", {curve, m.scalar(0, curve)});
  b.result(m.select(positive, curve, m.scale(sum, 0.25)));
  b.result(m.square(curve));
  return b.finish().value();
}

/// Dropout: random bits, compared and selected, in one loop.
GraphPtr dropout(const Shape& shape) {
  Builder b(OpTable::instance(), "dropout");
  Math m(b);
  const Value x = b.param({DType::kF32, shape}), key = b.param({DType::kU32, Shape{2}});
  const Value bits = m.op("random_bits", {key}, {{"shape", shape}});
  const Value keep = m.op("less", {bits, m.scalar(3000000000.0, bits)});
  b.result(m.select(keep, m.scale(x, 1.4), m.scalar(0, x)));
  return b.finish().value();
}

}  // namespace

std::vector<OpCase> fused_cases(Scale scale) {
  std::vector<OpCase> cases;
  const Ints small = {6, 10}, large = {4096, 2048};
  const Ints& sizes = scale == Scale::kLarge ? large : small;
  const Ints row = {sizes[1]};
  for (DType dtype : kFloats) {
    const InputSpec x{dtype, sizes, -2, 2, {}};
    OpCase op_case{"fused",
                   {x, x, {dtype, row, -1, 1, {}}},
                   {},
                   {chain(dtype, Shape::of(sizes), Shape::of(row))}};
    op_case.slack = 4;
    op_case.whole_scale = true;
    cases.push_back(op_case);
  }
  cases.push_back({"fused",
                   {{DType::kF32, sizes, -2, 2, {}}, {DType::kU32, {2}, 0, 4294967295.0, {}}},
                   {},
                   {dropout(Shape::of(sizes))}});
  return cases;
}

}  // namespace tracefire::test
