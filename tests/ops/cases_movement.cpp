// SPDX-License-Identifier: Apache-2.0
#include "ops/op_case.h"

namespace tracefire::test {
namespace {

using Ints = std::vector<int64_t>;

const std::vector<DType> kSome = {DType::kF64, DType::kF32,  DType::kF16,   DType::kI8,
                                  DType::kI64, DType::kBool, DType::kString};

InputSpec input(DType dtype, Ints sizes) {
  return {dtype, std::move(sizes), 0, dtype == DType::kBool ? 1.0 : 100.0, {}};
}

OpCase one(const char* op, DType dtype, Ints sizes, Attrs attrs) {
  return {op, {input(dtype, std::move(sizes))}, std::move(attrs), {}};
}

void add_sources(std::vector<OpCase>* cases) {
  for (DType dtype : kNumbers) {
    cases->push_back(
        {"iota", {}, {{"dtype", dtype}, {"shape", Shape{3, 7, 2}}, {"axis", int64_t{1}}}, {}});
    const std::string bytes(dtype_size(dtype), '\x21');
    cases->push_back(
        {"constant", {}, {{"dtype", dtype}, {"shape", Shape{5, 30}}, {"bytes", bytes}}, {}});
    cases->push_back({"extent", {}, {{"dtype", dtype}, {"shape", Shape{4, 5, 3}}}, {}});
  }
  cases->push_back(
      {"constant",
       {},
       {{"dtype", DType::kI32}, {"shape", Shape{2, 2}}, {"bytes", std::string("0123456789abcdef")}},
       {}});
  cases->push_back({"constant",
                    {},
                    {{"dtype", DType::kBool}, {"shape", Shape{}}, {"bytes", std::string("\1")}},
                    {}});
  cases->push_back(
      {"constant",
       {},
       {{"dtype", DType::kString}, {"shape", Shape{3}}, {"bytes", std::string("text")}},
       {}});
  cases->push_back({"iota", {}, {{"dtype", DType::kI64}, {"shape", Shape{1000}}}, {}});
}

void add_orders(std::vector<OpCase>* cases, DType dtype) {
  cases->push_back(one("reshape", dtype, {3, 4}, {{"shape", Shape{2, -1, 3}}}));
  cases->push_back(one("reshape", dtype, {1}, {{"shape", Shape{}}}));
  cases->push_back(one("transpose", dtype, {3, 4}, {{"perm", Ints{1, 0}}}));
  cases->push_back(one("transpose", dtype, {70, 65}, {{"perm", Ints{1, 0}}}));
  cases->push_back(one("transpose", dtype, {2, 3, 4}, {{"perm", Ints{2, 0, 1}}}));
  cases->push_back(one("transpose", dtype, {2, 3, 4, 5}, {{"perm", Ints{0, 2, 1, 3}}}));
  cases->push_back(one("reverse", dtype, {3, 5}, {{"axes", Ints{1}}}));
  cases->push_back(one("reverse", dtype, {2, 3, 4}, {{"axes", Ints{0, -1}}}));
  cases->push_back(one("broadcast_to", dtype, {3, 1}, {{"shape", Shape{2, 3, 4}}}));
  cases->push_back(one("broadcast_to", dtype, {}, {{"shape", Shape{40, 3}}}));
  cases->push_back(one("copy", dtype, {5, 3}, {}));
}

void add_parts(std::vector<OpCase>* cases, DType dtype) {
  cases->push_back(one("slice", dtype, {5, 4}, {{"starts", Shape{1, 0}}, {"limits", Shape{4, 3}}}));
  cases->push_back(
      one("slice", dtype, {7, 6},
          {{"starts", Shape{1, 2}}, {"limits", Shape{9, 6}}, {"strides", Ints{2, 3}}}));
  cases->push_back(one("slice", dtype, {4}, {{"starts", Shape{4}}, {"limits", Shape{4}}}));
  cases->push_back({"concat",
                    {input(dtype, {2, 3}), input(dtype, {2, 1}), input(dtype, {2, 4})},
                    {{"axis", int64_t{1}}},
                    {}});
  cases->push_back({"concat",
                    {input(dtype, {2, 3}), input(dtype, {0, 3}), input(dtype, {1, 3})},
                    {{"axis", int64_t{0}}},
                    {}});
  if (dtype == DType::kString) return;
  cases->push_back({"pad",
                    {input(dtype, {3, 4}), input(dtype, {})},
                    {{"low", Shape{1, 0}}, {"high", Shape{2, 3}}},
                    {}});
  cases->push_back({"pad",
                    {input(dtype, {3, 4}), input(dtype, {})},
                    {{"low", Shape{-1, 2}}, {"high", Shape{0, -2}}, {"interior", Ints{0, 2}}},
                    {}});
}

}  // namespace

std::vector<OpCase> movement_cases(Scale scale) {
  std::vector<OpCase> cases;
  if (scale == Scale::kLarge) {
    cases.push_back(one("transpose", DType::kF32, {4096, 2048}, {{"perm", Ints{1, 0}}}));
    cases.push_back(one("broadcast_to", DType::kF32, {2048}, {{"shape", Shape{4096, 2048}}}));
    cases.push_back(one("copy", DType::kF32, {4096, 2048}, {}));
    return cases;
  }
  add_sources(&cases);
  for (DType dtype : kSome) {
    add_orders(&cases, dtype);
    add_parts(&cases, dtype);
  }
  return cases;
}

}  // namespace tracefire::test
