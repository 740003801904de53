// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/op_case.h"

namespace tracefire::test {
namespace {

using Ints = std::vector<int64_t>;
const double kNan = NAN, kInf = INFINITY;

struct Axes {
  Ints sizes, axes;
  bool keepdims;
};
const std::vector<Axes> kAxes = {
    {{5, 7}, {1}, false},         {{5, 7}, {0}, true},      {{3, 4, 5}, {0, 2}, false},
    {{3, 4, 5}, {1}, false},      {{60}, {0}, false},       {{4, 3}, {}, false},
    {{130, 257}, {0, 1}, false},  {{130, 257}, {0}, false}, {{130, 257}, {-1}, true},
    {{2, 3, 2, 3}, {1, 3}, true}, {{3, 0}, {1}, false},
};

void add_reductions(std::vector<OpCase>* cases) {
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"}) {
    for (DType dtype : kNumbers) {
      if (!is_floating(dtype) && op == std::string("reduce_mean")) continue;
      for (const Axes& axes : kAxes) {
        const bool product = op == std::string("reduce_prod");
        const double low = product ? 0.8 : is_signed_integer(dtype) || is_floating(dtype) ? -3 : 0;
        OpCase op_case{op,
                       {{dtype, axes.sizes, low, product ? 1.2 : 3.0, {}}},
                       {{"axes", axes.axes}, {"keepdims", axes.keepdims}},
                       {}};
        op_case.whole_scale = !product;
        op_case.slack = product ? 20 : 4;
        cases->push_back(op_case);
      }
    }
  }
  for (const char* op : {"reduce_any", "reduce_all"}) {
    for (const Axes& axes : kAxes) {
      cases->push_back({op,
                        {{DType::kBool, axes.sizes, 0, 1, {}}},
                        {{"axes", axes.axes}, {"keepdims", axes.keepdims}},
                        {}});
    }
  }
}

void add_special(std::vector<OpCase>* cases) {
  const Attrs rows = {{"axes", Ints{1}}};
  for (DType dtype : kFloats) {
    for (const char* op : {"reduce_max", "reduce_min", "reduce_sum"}) {
      cases->push_back({op, {{dtype, {3, 20}, -3, 3, {1, kNan, 2}}}, rows, {}});
      cases->push_back({op, {{dtype, {3, 20}, -3, 3, {1, kInf, 2}}}, rows, {}});
    }
    for (const char* op : {"argmax", "argmin"}) {
      cases->push_back({op, {{dtype, {2, 6}, 1, 1.9, {1, kNan, 2, kNan, 0}}}, {}, {}});
      cases->push_back({op, {{dtype, {2, 6}, 1, 1, {}}}, {}, {}});  // all equal: the first
    }
    cases->push_back(
        {"top_k", {{dtype, {2, 6}, 1, 3, {1, kNan, 1, 5, 5, 0}}}, {{"k", int64_t{4}}}, {}});
  }
  for (DType dtype : {DType::kF64, DType::kF32}) {  // half of a product's operands may be 0
    cases->push_back({"reduce_prod", {{dtype, {4, 3}, 1, 2, {1, 0, 2, 0, 3, 0, 2, 2}}}, rows, {}});
  }
}

void add_searches(std::vector<OpCase>* cases) {
  for (DType dtype : kNumbers) {
    const double low = is_floating(dtype) || is_signed_integer(dtype) ? -50 : 0;
    for (const char* op : {"argmax", "argmin"}) {
      cases->push_back({op, {{dtype, {4, 9}, low, 50, {}}}, {{"axis", int64_t{-1}}}, {}});
      cases->push_back({op,
                        {{dtype, {4, 9, 3}, low, 50, {}}},
                        {{"axis", int64_t{1}}, {"dtype", DType::kI32}, {"keepdims", true}},
                        {}});
      cases->push_back({op, {{dtype, {300}, low, 50, {}}}, {{"axis", int64_t{0}}}, {}});
    }
    cases->push_back({"top_k", {{dtype, {3, 8}, low, 50, {}}}, {{"k", int64_t{3}}}, {}});
    cases->push_back(
        {"top_k", {{dtype, {40}, low, 50, {}}}, {{"k", int64_t{40}}, {"dtype", DType::kI64}}, {}});
    cases->push_back(
        {"unique", {{dtype, {30}, is_floating(dtype) ? 1.0 : 0.0, 7, {2, 2, 1, 3, 3}}}, {}, {}});
    cases->push_back(
        {"unique", {{dtype, {30}, 1, 3, {}}}, {{"size", int64_t{50}}, {"dtype", DType::kI32}}, {}});
  }
  cases->push_back({"unique", {{DType::kF32, {9}, 1, 2, {kNan, 1, kNan, 1}}}, {}, {}});
  cases->push_back({"unique", {{DType::kI64, {40}, 0, 30, {}}}, {{"size", int64_t{3}}}, {}});
  for (DType dtype : kFloats) {
    const InputSpec targets{DType::kI64, {20}, -1, 7, {}};  // some are no class
    cases->push_back({"in_top_k", {{dtype, {20, 7}, 0, 1, {}}, targets}, {{"k", int64_t{3}}}, {}});
    cases->push_back({"in_top_k",
                      {{dtype, {20, 7}, 0, 1, {kNan, 0.5, kInf}}, {DType::kI32, {20}, 0, 6, {}}},
                      {{"k", int64_t{2}}},
                      {}});
  }
}

void add_running(std::vector<OpCase>* cases) {
  for (DType dtype : kNumbers) {
    for (int mode = 0; mode < 4; ++mode) {
      const Attrs attrs = {
          {"axis", int64_t{1}}, {"exclusive", mode % 2 == 1}, {"reverse", mode > 1}};
      OpCase sums{"cumsum", {{dtype, {3, 5, 2}, 0, 3, {}}}, attrs, {}};
      sums.slack = 4;
      sums.whole_scale = true;
      cases->push_back(sums);
      const double low = is_floating(dtype) ? 0.5 : 1;
      OpCase products{"cumprod", {{dtype, {3, 5, 2}, low, 2.5, {}}}, attrs, {}};
      products.slack = 8;
      cases->push_back(products);
      cases->push_back({"cumprod", {{dtype, {300}, low, 1.2, {}}}, {{"axis", int64_t{-1}}}, {}});
      cases->back().slack = 8;
    }
  }
}

void add_sorts(std::vector<OpCase>* cases) {
  for (DType dtype : kNumbers) {
    const double low = is_floating(dtype) || is_signed_integer(dtype) ? -50 : 0;
    for (const bool descending : {false, true}) {
      for (const char* op : {"sort", "argsort"}) {
        const Attrs last = {{"descending", descending}};
        const Attrs middle = {{"axis", int64_t{1}}, {"descending", descending}};
        cases->push_back({op, {{dtype, {4, 9}, low, 50, {}}}, last, {}});
        cases->push_back({op, {{dtype, {2, 7, 3}, low, 50, {}}}, middle, {}});
        cases->push_back({op, {{dtype, {3000}, low, 50, {}}}, last, {}});  // many equal ones
      }
    }
    cases->push_back({"argsort", {{dtype, {5, 20}, low, 50, {}}}, {{"dtype", DType::kI64}}, {}});
  }
  for (DType dtype : kFloats) {
    for (const bool descending : {false, true}) {
      for (const char* op : {"sort", "argsort"}) {
        cases->push_back({op,
                          {{dtype, {2, 7}, 1, 2, {kNan, 0, -0.0, -kInf, kInf, kNan, -1}}},
                          {{"descending", descending}},
                          {}});
      }
    }
  }
  cases->push_back({"sort", {{DType::kBool, {40}, 0, 1, {}}}, {}, {}});
  cases->push_back({"argsort", {{DType::kBool, {2, 9}, 0, 1, {}}}, {{"axis", int64_t{0}}}, {}});
  cases->push_back({"sort", {{DType::kF32, {3, 0}, 0, 1, {}}}, {}, {}});
}

}  // namespace

std::vector<OpCase> reduction_cases(Scale scale) {
  std::vector<OpCase> cases;
  if (scale == Scale::kLarge) {
    const InputSpec x{DType::kF32, {4096, 2048}, -1, 1, {}};
    for (const Ints& axes : {Ints{0}, Ints{1}, Ints{0, 1}}) {
      cases.push_back({"reduce_sum", {x}, {{"axes", axes}}, {}});
    }
    cases.push_back({"argmax", {x}, {}, {}});
    cases.push_back({"sort", {x}, {}, {}});
    return cases;
  }
  add_reductions(&cases);
  add_special(&cases);
  add_searches(&cases);
  add_running(&cases);
  add_sorts(&cases);
  return cases;
}

}  // namespace tracefire::test
