// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tracefire {

/// A line of the user's program. `file` is interned and lives as long as the process.
struct Location {
  const char* file = nullptr;
  int32_t line = 0;
  int32_t file_bytes = -1;  ///< of `file`, which may hold any byte; -1: up to its zero
  /// The name of the file, "" where unknown.
  std::string_view file_name() const;
  /// "train.py:12", or "" where unknown.
  std::string str() const;
};

/// Interns `file`, so that locations stay cheap to copy.
Location make_location(const std::string& file, int32_t line);

}  // namespace tracefire
