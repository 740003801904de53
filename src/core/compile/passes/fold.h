// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "core/compile/constants.h"

namespace tracefire {

/// The result of an element-wise `op` (by loop operation or cast) on numbers that are known, where
/// IEEE 754 or integer arithmetic leaves exactly one answer: functions such as exp are never
/// folded, because kernels differ in the last bit. `to` is the element type of the result.
std::optional<Scalar> fold(OpId op, const std::vector<Scalar>& inputs, DType to);

}  // namespace tracefire
