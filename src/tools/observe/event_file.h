// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tracefire::summary {

/// CRC32C (Castagnoli), as TFRecord files use it.
uint32_t crc32c(std::string_view data);

/// A PNG file of 8-bit pixels, row by row; `channels` 1 to 4.
std::string png(const uint8_t* pixels, int64_t height, int64_t width, int64_t channels);

}  // namespace tracefire::summary
