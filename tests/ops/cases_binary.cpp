// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/op_case.h"

namespace tracefire::test {
namespace {

const double kNan = NAN, kInf = INFINITY;
using Sizes = std::vector<int64_t>;

const std::vector<std::pair<Sizes, Sizes>> kShapes = {
    {{3, 4}, {4}}, {{5, 9}, {5, 9}}, {{2, 3, 1}, {3, 4}}, {{}, {17}}, {{40, 33}, {40, 1}}};

/// One case for each pair of shapes.
void add_shapes(std::vector<OpCase>* cases, const char* op, InputSpec x, InputSpec y,
                bool whole_scale = false) {
  for (const auto& [sx, sy] : kShapes) {
    x.sizes = sx;
    y.sizes = sy;
    OpCase op_case{op, {x, y}, {}, {}};
    op_case.whole_scale = whole_scale;
    op_case.slack = op == std::string("pow") ? 4 : 1;
    cases->push_back(op_case);
  }
}

void add_special(std::vector<OpCase>* cases, const char* op, DType dtype,
                 const std::vector<std::pair<double, double>>& pairs) {
  InputSpec x{dtype, {41}, 1, 3, {}}, y = x;
  for (const auto& [a, b] : pairs) {
    x.special.push_back(a);
    y.special.push_back(b);
  }
  cases->push_back({op, {x, y}, {}, {}});
}

double lowest_of(DType dtype) {
  return is_floating(dtype) ? -3 : is_signed_integer(dtype) ? -20 : 0;
}

void add_arithmetic(std::vector<OpCase>* cases) {
  for (DType dtype : kNumbers) {
    const double low = lowest_of(dtype), high = is_floating(dtype) ? 3 : 90;
    for (const char* op : {"add", "sub", "mul", "maximum", "minimum"}) {
      add_shapes(cases, op, {dtype, {}, low, high, {}}, {dtype, {}, low, high, {}});
    }
    const InputSpec divisor{
        dtype, {}, is_floating(dtype) ? 0.5 : low, is_floating(dtype) ? 3.0 : 20.0, {}};
    const InputSpec dividend{
        dtype, {}, is_floating(dtype) ? -9 : low, is_floating(dtype) ? 9.0 : 100.0, {}};
    add_shapes(cases, "floor_div", dividend, divisor);
    add_shapes(cases, "floor_mod", dividend, divisor, true);
    if (is_floating(dtype)) {
      add_shapes(cases, "div", dividend, divisor);
      add_shapes(cases, "pow", {dtype, {}, 0.2, 3, {}}, {dtype, {}, -2, 2, {}});
      add_shapes(cases, "atan2", {dtype, {}, -3, 3, {}}, {dtype, {}, -3, 3, {}}, true);
      for (const char* op : {"maximum", "minimum"}) {
        add_special(cases, op, dtype, {{kNan, 1}, {1, kNan}, {kInf, 2}, {-kInf, 2}, {1, 1}});
      }
      add_special(cases, "div", dtype,
                  {{1, 0}, {-1, 0}, {0, 0}, {kInf, kInf}, {1, -0.0}, {1, kInf}});
      const double large = dtype == DType::kF16 ? 6e4 : 1e30, small = 1e-7;
      for (const char* op : {"floor_div", "floor_mod"}) {
        add_special(cases, op, dtype,
                    {{-5, kInf},
                     {5, kInf},
                     {5, -kInf},
                     {0, kInf},
                     {-0.0, 3},
                     {kInf, 3},
                     {-kInf, 0},
                     {kInf, kInf},
                     {1, 0},
                     {0, 0},
                     {kNan, 1},
                     {1, kNan},
                     {1, 0.1},
                     {-small, large},
                     {large, 3},
                     {small, -large},
                     {-6, 3},
                     {7, -2}});
      }
      add_special(cases, "pow", dtype,
                  {{0, 0}, {kNan, 0}, {-2, 3}, {-8, 0.5}, {0, -1}, {kInf, -1}, {0, 2}, {-1, 2}});
      add_special(cases, "atan2", dtype, {{0, 1}, {0, -1}, {1, 0}, {-1, 0}, {kNan, 1}, {1, kInf}});
    } else {
      const double least = static_cast<double>(ref::lowest(dtype));
      for (const char* op : {"floor_div", "floor_mod"}) {
        if (is_signed_integer(dtype)) {
          add_special(cases, op, dtype,
                      {{7, 0}, {-7, 2}, {7, -2}, {least, -1}, {-7, 0}, {least, 1}});
        } else {
          add_special(cases, op, dtype, {{7, 0}, {0, 0}, {7, 2}});
        }
      }
      const bool is_signed = is_signed_integer(dtype);
      add_shapes(cases, "pow", {dtype, {}, is_signed ? -3.0 : 0.0, 3, {}},
                 {dtype, {}, is_signed ? -2.0 : 0.0, 7, {}});
    }
  }
}

void add_comparisons(std::vector<OpCase>* cases) {
  for (const char* op : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
    for (DType dtype : kNumbers) {
      InputSpec x{dtype, {}, is_floating(dtype) || is_signed_integer(dtype) ? -2.0 : 0.0, 2, {}};
      add_shapes(cases, op, x, x);
      if (is_floating(dtype)) {
        add_special(cases, op, dtype, {{kNan, 1}, {kNan, kNan}, {0, -0.0}, {kInf, kInf}, {2, 2}});
      }
    }
    add_shapes(cases, op, {DType::kBool, {}, 0, 1, {}}, {DType::kBool, {}, 0, 1, {}});
  }
  // Values that only an unsigned or a wide comparison tells apart.
  add_special(cases, "less", DType::kU32, {{3e9, 1}, {1, 3e9}});
  add_special(cases, "less", DType::kU64, {{1e19, 1}, {1, 1e19}});
  add_special(cases, "maximum", DType::kU64, {{1e19, 1}, {1, 1e19}});
  add_special(cases, "equal", DType::kI64, {{9007199254740992.0, 9007199254740994.0}});
}

void add_bits(std::vector<OpCase>* cases) {
  for (const char* op : {"bitwise_and", "bitwise_or", "bitwise_xor"}) {
    for (DType dtype : kIntegers) {
      add_shapes(cases, op, {dtype, {}, 0, 120, {}}, {dtype, {}, 0, 120, {}});
    }
    add_shapes(cases, op, {DType::kBool, {}, 0, 1, {}}, {DType::kBool, {}, 0, 1, {}});
  }
  for (const char* op : {"logical_and", "logical_or"}) {
    add_shapes(cases, op, {DType::kBool, {}, 0, 1, {}}, {DType::kBool, {}, 0, 1, {}});
  }
  for (const char* op : {"shift_left", "shift_right"}) {
    for (DType dtype : kIntegers) {
      const double bits = ref::bits_of(dtype);
      const bool is_signed = is_signed_integer(dtype);
      add_shapes(cases, op, {dtype, {}, is_signed ? -100.0 : 0.0, 120, {}},
                 {dtype, {}, is_signed ? -2.0 : 0.0, bits + 2, {}});
    }
  }
}

void add_selects(std::vector<OpCase>* cases) {
  for (DType dtype :
       {DType::kF64, DType::kF32, DType::kF16, DType::kI8, DType::kI64, DType::kBool}) {
    const double high = dtype == DType::kBool ? 1 : 100;
    cases->push_back({"select",
                      {{DType::kBool, {3, 1}, 0, 1, {}},
                       {dtype, {3, 4}, 0, high, {}},
                       {dtype, {4}, 0, high, {}}},
                      {},
                      {}});
    cases->push_back(
        {"select",
         {{DType::kBool, {150}, 0, 1, {}}, {dtype, {}, 0, high, {}}, {dtype, {150}, 0, high, {}}},
         {},
         {}});
  }
  OpCase shadowed{"select",
                  {{DType::kBool, {4}, 0, 1, {1, 0, 1, 0}},
                   {DType::kF32, {4}, 0, 1, {1, kNan, 2, kInf}},
                   {DType::kF32, {4}, 0, 1, {kNan, 3, kNan, 4}}},
                  {},
                  {}};
  cases->push_back(shadowed);
}

void add_fmas(std::vector<OpCase>* cases) {
  for (DType dtype : kFloats) {
    const auto operand = [dtype](std::vector<int64_t> sizes) {
      return InputSpec{dtype, std::move(sizes), -3, 3, {}};
    };
    for (OpCase op_case : {OpCase{"fma", {operand({3, 4}), operand({3, 4}), operand({3, 4})}},
                           OpCase{"fma", {operand({3, 1}), operand({}), operand({2, 3, 4})}},
                           OpCase{"fma", {operand({150}), operand({150}), operand({1})}}}) {
      op_case.whole_scale = true;  // a sum may cancel
      cases->push_back(op_case);
    }
  }
  // (1 + e)^2 - 1 of one rounding keeps the e^2 that a rounded product loses.
  const double e = 0x1p-13;
  const OpCase exact{"fma",
                     {{DType::kF32, {2}, 0, 1, {1 + e, kInf}},
                      {DType::kF32, {2}, 0, 1, {1 + e, 2}},
                      {DType::kF32, {2}, 0, 1, {-1 - 2 * e, kNan}}}};
  cases->push_back(exact);
}

}  // namespace

std::vector<OpCase> binary_cases(Scale scale) {
  std::vector<OpCase> cases;
  if (scale == Scale::kLarge) {
    for (const char* op : {"add", "mul", "less"}) {
      const InputSpec x{DType::kF32, {4096, 2048}, -3, 3, {}};
      cases.push_back({op, {x, x}, {}, {}});
      cases.push_back({op, {x, {DType::kF32, {2048}, -3, 3, {}}}, {}, {}});
    }
    return cases;
  }
  add_arithmetic(&cases);
  add_comparisons(&cases);
  add_bits(&cases);
  add_selects(&cases);
  add_fmas(&cases);
  return cases;
}

}  // namespace tracefire::test
