// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace tracefire {

/// A line of the user's program. `file` is interned and lives as long as the process.
struct Location {
  const char* file = nullptr;
  int32_t line = 0;
  /// "train.py:12", or "" where unknown.
  std::string str() const;
};

/// Interns `file`, so that locations stay cheap to copy.
Location make_location(const std::string& file, int32_t line);

}  // namespace tracefire
