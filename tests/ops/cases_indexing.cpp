// SPDX-License-Identifier: Apache-2.0
#include "ops/op_case.h"

namespace tracefire::test {
namespace {

using Ints = std::vector<int64_t>;

InputSpec values(DType dtype, Ints sizes) {
  return {dtype, std::move(sizes), 0, dtype == DType::kBool ? 1.0 : 100.0, {}};
}
InputSpec places(DType dtype, Ints sizes, double size) {
  return {dtype, std::move(sizes), 0, size - 1, {}};
}

OpCase failing(OpCase op_case, size_t input, double bad) {
  op_case.inputs[input].special = {bad};
  op_case.fails = ErrorCode::kIndexOutOfRange;
  return op_case;
}

void add_gathers(std::vector<OpCase>* cases) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kBF16, DType::kI8, DType::kI64}) {
    for (DType index : {DType::kI32, DType::kI64}) {
      cases->push_back({"gather", {values(dtype, {7, 3}), places(index, {5}, 7)}, {}, {}});
      cases->push_back({"gather",
                        {values(dtype, {2, 6, 3}), places(index, {2, 2}, 6)},
                        {{"axis", int64_t{1}}},
                        {}});
      cases->push_back({"gather", {values(dtype, {9}), places(index, {}, 9)}, {}, {}});
      cases->push_back({"gather_along",
                        {values(dtype, {4, 5}), places(index, {4, 3}, 5)},
                        {{"axis", int64_t{-1}}},
                        {}});
      cases->push_back({"gather_along",
                        {values(dtype, {4, 5}), places(index, {6, 5}, 4)},
                        {{"axis", int64_t{0}}},
                        {}});
      cases->push_back({"scatter_add",
                        {values(dtype, {6, 3}), places(index, {6}, 4)},
                        {{"shape", Shape{4, 3}}},
                        {}});
      cases->push_back({"scatter_add",
                        {values(dtype, {2, 3, 2, 2}), places(index, {3, 2}, 5)},
                        {{"shape", Shape{2, 5, 2}}, {"axis", int64_t{1}}},
                        {}});
    }
  }
  cases->push_back(
      {"gather", {values(DType::kF32, {50, 20}), places(DType::kU8, {300}, 50)}, {}, {}});
  cases->push_back({"gather", {values(DType::kString, {7}), places(DType::kI64, {4}, 7)}, {}, {}});
  const std::vector<OpCase> good = *cases;
  for (const OpCase& op_case : good) {
    if (op_case.inputs[0].dtype != DType::kF32 || op_case.inputs[1].dtype != DType::kI64) continue;
    cases->push_back(failing(op_case, 1, -1));
    cases->push_back(failing(op_case, 1, 1000));
  }
}

void add_scatters(std::vector<OpCase>* cases) {
  for (const char* reduction : {"update", "add", "mul", "max", "min"}) {
    const Attrs attrs = {{"reduction", std::string(reduction)}};
    for (DType dtype : {DType::kF64, DType::kF32, DType::kBF16, DType::kI8, DType::kU64}) {
      const auto numbers = [dtype](Ints sizes) { return InputSpec{dtype, sizes, 1, 3, {}}; };
      const DType index = dtype == DType::kF32 ? DType::kI64 : DType::kI32;
      // Rows, elements of two axes, whole planes, the whole tensor; most places are hit twice.
      const OpCase rows{
          "scatter", {numbers({4, 3}), places(index, {6, 1}, 4), numbers({6, 3})}, attrs};
      const OpCase elements{
          "scatter", {numbers({3, 4}), places(index, {2, 5, 2}, 3), numbers({2, 5})}, attrs};
      const OpCase planes{
          "scatter", {numbers({5, 2, 2}), places(index, {3, 1}, 5), numbers({3, 2, 2})}, attrs};
      const OpCase one{"scatter", {numbers({6}), places(index, {1}, 6), numbers({})}, attrs};
      const OpCase all{
          "scatter", {numbers({2, 3}), places(index, {2, 0}, 1), numbers({2, 2, 3})}, attrs};
      for (OpCase op_case : {rows, elements, planes, one, all}) {
        op_case.slack = 8;
        cases->push_back(op_case);
      }
      if (dtype != DType::kF32) continue;
      cases->push_back(failing(rows, 1, 4));
      cases->push_back(failing(elements, 1, -1));
    }
    // Factors of 0, alone and twice in one place.
    OpCase zeros{"scatter",
                 {{DType::kF64, {3}, 1, 2, {0, 2, 3}},
                  places(DType::kI64, {4, 1}, 3),
                  {DType::kF64, {4}, 1, 2, {0, 0, 1.5}}},
                 attrs};
    zeros.gradient = false;
    cases->push_back(zeros);
  }
  const Attrs largest = {{"reduction", std::string("max")}};
  cases->push_back({"scatter",
                    {{DType::kF32, {3}, 1, 2, {NAN, 1, 1}},
                     {DType::kI32, {3, 1}, 0, 0, {0, 1, 1}},
                     {DType::kF32, {3}, 1, 2, {5, NAN, 5}}},
                    largest});
  const InputSpec x{DType::kBool, {5}, 0, 1, {}}, updates{DType::kBool, {3}, 0, 1, {}};
  cases->push_back({"scatter", {x, places(DType::kI32, {3, 1}, 5), updates}, {}});
}

void add_slices(std::vector<OpCase>* cases) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kU8, DType::kI64}) {
    const InputSpec start{DType::kI64, {}, 1, 3, {}};
    const OpCase rows{"dynamic_slice", {values(dtype, {7, 4}), start}, {{"size", Shape{3}}}, {}};
    const OpCase columns{"dynamic_slice",
                         {values(dtype, {3, 6}), start},
                         {{"size", Shape{2}}, {"axis", int64_t{1}}},
                         {}};
    const OpCase put{"dynamic_update_slice",
                     {values(dtype, {7, 2}), values(dtype, {3, 2}), {DType::kI32, {}, 0, 4, {}}},
                     {},
                     {}};
    cases->insert(cases->end(), {rows, columns, put});
    cases->push_back({"dynamic_update_slice",
                      {values(dtype, {3, 6}), values(dtype, {3, 2}), start},
                      {{"axis", int64_t{-1}}},
                      {}});
    if (dtype != DType::kF32) continue;
    cases->insert(cases->end(), {failing(rows, 1, 5), failing(rows, 1, -1), failing(put, 2, 5)});
  }
}

}  // namespace

std::vector<OpCase> indexing_cases(Scale scale) {
  std::vector<OpCase> cases;
  if (scale == Scale::kLarge) {
    cases.push_back({"gather",
                     {values(DType::kF32, {60000, 784}), places(DType::kI64, {4096}, 60000)},
                     {},
                     {}});
    cases.push_back({"scatter_add",
                     {values(DType::kF32, {65536, 64}), places(DType::kI64, {65536}, 1000)},
                     {{"shape", Shape{1000, 64}}},
                     {}});
    return cases;
  }
  add_gathers(&cases);
  add_scatters(&cases);
  add_slices(&cases);
  for (DType dtype : {DType::kU8, DType::kI32, DType::kI64}) {
    const InputSpec labels{dtype, {17}, 0, 12, {}};  // some beyond the depth
    cases.push_back({"one_hot", {labels}, {{"depth", int64_t{10}}}, {}});
    cases.push_back({"one_hot", {labels}, {{"depth", int64_t{300}}, {"dtype", DType::kBool}}, {}});
    cases.push_back({"one_hot",
                     {{dtype, {3, 5}, 0, 4, {}}},
                     {{"depth", int64_t{4}}, {"axis", int64_t{1}}, {"dtype", DType::kI64}},
                     {}});
    const OpCase check{"check_range", {{dtype, {40}, 0, 9, {}}}, {{"limit", Shape{10}}}, {}};
    cases.push_back(check);
    cases.push_back(failing(check, 0, 10));
  }
  cases.push_back({"one_hot", {{DType::kI64, {4}, 0, 3, {-1}}}, {{"depth", int64_t{3}}}, {}});
  return cases;
}

}  // namespace tracefire::test
