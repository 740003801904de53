// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace tracefire::nn {

/// 0 … rows - 1 in an order that depends on seed and epoch alone.
std::vector<int32_t> shuffled_rows(int64_t rows, uint32_t seed, int64_t epoch);

}  // namespace tracefire::nn
