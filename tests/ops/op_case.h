// SPDX-License-Identifier: Apache-2.0
// A case of an operation: written once, run in four modes. correct: every kernel of every device
// against the oracle. gradient: the row's gradient against central differences. speed: GB/s and
// TFLOP/s, printed where TRACEFIRE_OPS_SPEED is set. support: which kernel accepts what, as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/ref/oracle.h"
#include "core/ops/op_table.h"

namespace tracefire::test {

using ref::Array;

/// Small cases are compared element by element; large ones are timed.
enum class Scale { kSmall, kLarge };

struct InputSpec {
  DType dtype = DType::kF32;
  std::vector<int64_t> sizes;
  double low = -3, high = 3;    ///< elements lie between, both ends possible for integers
  std::vector<double> special;  ///< the first elements, where the type has them
};

struct OpCase {
  std::string op;
  std::vector<InputSpec> inputs;
  Attrs attrs = {};
  std::vector<GraphPtr> regions = {};
  double slack = 1;          ///< multiplies the row's tolerance
  bool whole_scale = false;  ///< errors count against the largest result, not each one
  bool gradient = true;      ///< false where a difference means nothing (steps, casts)
  std::optional<ErrorCode> fails = std::nullopt;

  std::string label() const;  ///< "add float32(3, 4) float32(4,)"
};

// Families; each has a file.
std::vector<OpCase> unary_cases(Scale scale);
std::vector<OpCase> binary_cases(Scale scale);
std::vector<OpCase> movement_cases(Scale scale);
std::vector<OpCase> indexing_cases(Scale scale);
std::vector<OpCase> reduction_cases(Scale scale);
std::vector<OpCase> product_cases(Scale scale);
std::vector<OpCase> random_cases(Scale scale);
std::vector<OpCase> composite_cases(Scale scale);
std::vector<OpCase> string_cases(Scale scale);
std::vector<OpCase> fused_cases(Scale scale);
std::vector<OpCase> all_cases(Scale scale);

inline const std::vector<DType> kFloats = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16};
inline const std::vector<DType> kIntegers = {DType::kI8, DType::kI16, DType::kI32, DType::kI64,
                                             DType::kU8, DType::kU16, DType::kU32, DType::kU64};
/// 64-bit first, so that gradients are checked where they are exact.
inline const std::vector<DType> kNumbers = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                                            DType::kI8,  DType::kI16, DType::kI32, DType::kI64,
                                            DType::kU8,  DType::kU16, DType::kU32, DType::kU64};

/// Inputs of a case; the same `seed` gives the same arrays.
std::vector<Array> make_inputs(const OpCase& op_case, uint32_t seed);

/// A graph with one node: the case's, with its inputs as parameters.
GraphPtr one_node_graph(const OpCase& op_case);

/// "" where `got` is `expected` within the row's tolerance, else what differs first.
std::string difference(const OpCase& op_case, const Array& got, const Array& expected);

}  // namespace tracefire::test
