// SPDX-License-Identifier: Apache-2.0
#include "tracefire/dtype.h"

#include <string>

namespace tracefire {
namespace {

enum class Family : uint8_t { kNone, kBool, kSigned, kUnsigned, kFloat, kComplex };

struct DTypeRow {
  DType dtype;
  std::string_view name;
  size_t size;
  Family family;
};

// In the order of the enum: the number is the index.
constexpr DTypeRow kRows[] = {
    {DType::kInvalid, "invalid", 0, Family::kNone},
    {DType::kBool, "bool", 1, Family::kBool},
    {DType::kI4, "int4", 1, Family::kSigned},
    {DType::kI8, "int8", 1, Family::kSigned},
    {DType::kI16, "int16", 2, Family::kSigned},
    {DType::kI32, "int32", 4, Family::kSigned},
    {DType::kI64, "int64", 8, Family::kSigned},
    {DType::kU4, "uint4", 1, Family::kUnsigned},
    {DType::kU8, "uint8", 1, Family::kUnsigned},
    {DType::kU16, "uint16", 2, Family::kUnsigned},
    {DType::kU32, "uint32", 4, Family::kUnsigned},
    {DType::kU64, "uint64", 8, Family::kUnsigned},
    {DType::kF8E4M3, "float8_e4m3fn", 1, Family::kFloat},
    {DType::kF8E5M2, "float8_e5m2", 1, Family::kFloat},
    {DType::kF16, "float16", 2, Family::kFloat},
    {DType::kBF16, "bfloat16", 2, Family::kFloat},
    {DType::kF32, "float32", 4, Family::kFloat},
    {DType::kF64, "float64", 8, Family::kFloat},
    {DType::kC64, "complex64", 8, Family::kComplex},
    {DType::kC128, "complex128", 16, Family::kComplex},
    {DType::kString, "string", sizeof(std::string), Family::kNone},
    {DType::kToken, "token", 0, Family::kNone},
};
constexpr size_t kCount = sizeof(kRows) / sizeof(kRows[0]);

constexpr bool rows_in_order() {
  for (size_t i = 0; i < kCount; ++i) {
    if (static_cast<size_t>(kRows[i].dtype) != i) return false;
  }
  return true;
}
static_assert(rows_in_order());

const DTypeRow& row(DType dtype) {
  size_t index = static_cast<size_t>(dtype);
  return kRows[index < kCount ? index : 0];
}

}  // namespace

size_t dtype_size(DType dtype) { return row(dtype).size; }

std::string_view dtype_name(DType dtype) { return row(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeRow& r : kRows) {
    if (r.dtype != DType::kInvalid && r.name == name) return r.dtype;
  }
  return std::nullopt;
}

bool is_floating(DType dtype) { return row(dtype).family == Family::kFloat; }

bool is_integer(DType dtype) {
  Family family = row(dtype).family;
  return family == Family::kSigned || family == Family::kUnsigned;
}

bool is_signed_integer(DType dtype) { return row(dtype).family == Family::kSigned; }

bool is_complex(DType dtype) { return row(dtype).family == Family::kComplex; }

bool is_numeric(DType dtype) {
  return is_floating(dtype) || is_integer(dtype) || is_complex(dtype);
}

}  // namespace tracefire
