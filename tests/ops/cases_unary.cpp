// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/op_case.h"

namespace tracefire::test {
namespace {

struct Curve {
  const char* op;
  double low, high;
  std::vector<double> special;
  bool whole_scale = false;
};

const double kNan = NAN, kInf = INFINITY;

/// Functions of floating numbers, with a range where they are tame and values where they are not.
const std::vector<Curve> kCurves = {
    {"exp", -5, 5, {kNan, kInf, -kInf, 0, -0.0, 200, -200}},
    {"expm1", -2, 2, {kNan, kInf, -kInf, 0, 1e-5, -1e-5}},
    {"log", 0.1, 9, {kNan, kInf, 0, -0.0, -1, 1}},
    {"log1p", -0.8, 5, {kNan, kInf, 0, -1, -2, 1e-5, -1e-5}},
    {"sqrt", 0.1, 9, {kNan, kInf, 0, -0.0, -1}},
    {"rsqrt", 0.1, 9, {kNan, kInf, 0, -1}},
    {"reciprocal", 0.2, 4, {kNan, kInf, -kInf, 0, -0.0}},
    {"tanh", -3, 3, {kNan, kInf, -kInf, 0, -0.0, 1e-4, 20, -20}},
    {"sigmoid", -6, 6, {kNan, kInf, -kInf, 0, 100, -100}},
    {"erf", -3, 3, {kNan, kInf, -kInf, 0, 1e-4, 6, -6}},
    {"erf_inv", -0.95, 0.95, {kNan, 1, -1, 0, 1.5, 1e-3, 0.9990234375}},
    {"sin", -6, 6, {kNan, kInf, 0, -0.0}, true},
    {"cos", -6, 6, {kNan, kInf, 0}, true},
    {"floor", -4, 4, {kNan, kInf, -kInf, -0.0, 2.5, -2.5, 3}},
    {"ceil", -4, 4, {kNan, kInf, -kInf, -0.0, 2.5, -2.5, 3}},
    {"round", -4, 4, {kNan, kInf, -kInf, 0.5, 1.5, 2.5, -0.5, -1.5, 3}},
    {"is_nan", -4, 4, {kNan, kInf, -kInf, 0}},
    {"is_finite", -4, 4, {kNan, kInf, -kInf, 0}},
};

void add_curves(std::vector<OpCase>* cases) {
  for (const Curve& curve : kCurves) {
    for (DType dtype : kFloats) {
      OpCase tame{curve.op, {{dtype, {3, 7}, curve.low, curve.high, {}}}, {}, {}};
      tame.whole_scale = curve.whole_scale;
      cases->push_back(tame);
      OpCase wild{curve.op, {{dtype, {259}, curve.low, curve.high, curve.special}}, {}, {}};
      wild.whole_scale = curve.whole_scale;
      cases->push_back(wild);
    }
  }
}

void add_arithmetic(std::vector<OpCase>* cases) {
  for (const char* op : {"neg", "abs", "sign", "square", "relu"}) {
    for (DType dtype : kNumbers) {
      const double low = is_floating(dtype) ? -3 : is_signed_integer(dtype) ? -100 : 0;
      const double high = is_floating(dtype) ? 3 : 100;
      const std::vector<double> special =
          is_floating(dtype) ? std::vector<double>{kNan, kInf, -kInf, 0, -0.0}
                             : std::vector<double>{static_cast<double>(ref::lowest(dtype)), 0, 1};
      cases->push_back({op, {{dtype, {5, 4}, low, high, {}}}, {}, {}});
      cases->push_back({op, {{dtype, {131}, low, high, special}}, {}, {}});
    }
  }
  cases->push_back({"neg", {{DType::kF32, {}, -3, 3, {}}}, {}, {}});
  cases->push_back({"neg", {{DType::kF32, {0, 3}, -3, 3, {}}}, {}, {}});
  cases->push_back({"logical_not", {{DType::kBool, {37}, 0, 1, {}}}, {}, {}});
  cases->push_back({"bitwise_not", {{DType::kBool, {37}, 0, 1, {}}}, {}, {}});
  for (DType dtype : kIntegers) {
    cases->push_back({"bitwise_not", {{dtype, {37}, 0, 100, {}}}, {}, {}});
  }
  for (DType dtype : {DType::kF32, DType::kI64, DType::kBool}) {
    cases->push_back({"stop_gradient", {{dtype, {37}, 0, 1, {}}}, {}, {}});
  }
}

void add_checks(std::vector<OpCase>* cases) {
  for (DType dtype : kFloats) {
    cases->push_back({"check_finite", {{dtype, {5, 3}, -3, 3, {}}}, {}, {}});
    for (double bad : {kNan, kInf}) {
      OpCase failing{"check_finite", {{dtype, {50}, -3, 3, {1, 2, bad}}}, {}, {}};
      failing.fails = ErrorCode::kNotFinite;
      cases->push_back(failing);
    }
  }
}

void add_conversions(std::vector<OpCase>* cases) {
  const std::vector<DType> types = {
      DType::kBool, DType::kI8,  DType::kI16, DType::kI32,  DType::kI64, DType::kU8, DType::kU16,
      DType::kU32,  DType::kU64, DType::kF16, DType::kBF16, DType::kF32, DType::kF64};
  const std::vector<double> reals = {0,    -0.0, 0.5,   -0.5, 2.5,   -2.5, 300,  -300, 70000,
                                     -7e4, 1e10, -1e10, 1e20, -1e20, kNan, kInf, -kInf};
  const std::vector<double> wholes = {0,   1,     -1,     127, -128, 255,
                                      256, 65535, -70000, 3e9, -3e9, 1e15};
  for (DType from : types) {
    for (DType to : types) {
      InputSpec input{from, {61}, 0, 100, is_floating(from) ? reals : wholes};
      OpCase op_case{"cast", {input}, {{"dtype", to}}, {}};
      op_case.gradient = from == DType::kF64 && to == DType::kF64;
      cases->push_back(op_case);
    }
  }
  const std::pair<DType, DType> pairs[] = {{DType::kF32, DType::kU32},  {DType::kU32, DType::kF32},
                                           {DType::kF64, DType::kI64},  {DType::kU64, DType::kF64},
                                           {DType::kF16, DType::kU16},  {DType::kU16, DType::kF16},
                                           {DType::kU16, DType::kBF16}, {DType::kI8, DType::kU8}};
  for (const auto& [from, to] : pairs) {
    cases->push_back({"bitcast", {{from, {43}, 0, 30000, {}}}, {{"dtype", to}}, {}});
  }
}

}  // namespace

std::vector<OpCase> unary_cases(Scale scale) {
  std::vector<OpCase> cases;
  if (scale == Scale::kLarge) {
    for (const char* op : {"neg", "exp", "tanh", "erf"}) {
      for (DType dtype : {DType::kF32, DType::kBF16}) {
        cases.push_back({op, {{dtype, {4096, 2048}, -3, 3, {}}}, {}, {}});
      }
    }
    cases.push_back(
        {"cast", {{DType::kU8, {4096, 2048}, 0, 255, {}}}, {{"dtype", DType::kF32}}, {}});
    return cases;
  }
  add_curves(&cases);
  add_arithmetic(&cases);
  add_checks(&cases);
  add_conversions(&cases);
  return cases;
}

}  // namespace tracefire::test
