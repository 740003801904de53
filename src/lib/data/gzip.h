// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace tracefire::data {

/// True for data that begins as gzip does.
bool is_gzip(std::string_view data);

/// Decompresses all members of a gzip file (RFC 1952), checking lengths and sums. `source` names it
/// in errors. Room for the text grows as the text needs it, whatever length the file declares: it
/// is at most twice `data` (or 64 KiB) or twice the text, and never more than `max_bytes`.
/// Errors: kBadFile with the member that is damaged or passes the limit; kOutOfMemory.
Result<std::string> gunzip(std::string_view data, uint64_t max_bytes, const std::string& source);

}  // namespace tracefire::data
