// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tracefire::text_limits {

// What a graph's text may hold. Far above any program, low enough that a hostile text is refused
// before it costs much.
inline constexpr size_t kBytes = size_t{1} << 30;
inline constexpr size_t kNodes = 1000000;  // of all regions together
inline constexpr size_t kValues = 4000000;
inline constexpr size_t kListItems = 1000000;  // of one list of integers, operands, parameters
inline constexpr size_t kRank = 64;
inline constexpr int kNesting = 32;       // regions in regions, parentheses in sizes
inline constexpr size_t kSymbols = 4096;  // they and the sizes made of them are never freed
inline constexpr size_t kSizeOperators = 100000;
inline constexpr int64_t kSize = int64_t{1} << 60;

}  // namespace tracefire::text_limits

namespace tracefire {

/// Letter or underscore, then letters, digits and underscores.
inline bool is_identifier_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
inline bool is_identifier_part(char c) { return is_identifier_start(c) || (c >= '0' && c <= '9'); }
inline bool is_identifier(std::string_view text) {
  if (text.empty() || !is_identifier_start(text[0])) return false;
  for (char c : text) {
    if (!is_identifier_part(c)) return false;
  }
  return true;
}

}  // namespace tracefire
