// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tracefire::data {

/// data/digits.csv.gz as it lies in the tree, embedded by scripts/generate/digits.py: rows of 64
/// pixels, 0 to 16, and the digit.
std::string_view digits_bytes();

}  // namespace tracefire::data
