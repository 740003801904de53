// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// The one escaper of all tools. Names of processes, users, files, kernels and GPUs come from
// outside: a process may call itself "\033[2J<script>". All of it passes through here on its way to
// a reader.

namespace tracefire::text {

enum class Sink {
  kTerminal,
  kHtml,
  kCsv,
  kLog,
  kPrometheus,  ///< the value of a label, without its quotes
};

/// Well-formed UTF-8 without characters that act instead of being shown: control characters,
/// direction overrides, line separators are written as \xNN or \u{NNNN}, broken bytes as U+FFFD.
/// A result of more than `limit` bytes is cut and ends in "…".
std::string clean(std::string_view text, size_t limit = std::string::npos);

/// clean(), then what the sink itself needs escaped.
std::string escape(std::string_view text, Sink sink, size_t limit = std::string::npos);

/// Columns that a cleaned text takes on a terminal.
size_t display_width(std::string_view text);
/// The first `columns` columns of a cleaned text; "…" stands for what was cut.
std::string cut_to_width(std::string_view text, size_t columns);
/// Bytes of the longest beginning of at most `columns` columns; at least one character of a text
/// that is not empty.
size_t prefix_of_width(std::string_view text, size_t columns);
/// For terminals without UTF-8: "…" becomes "~", every other character beyond ASCII "?".
std::string ascii_only(std::string_view text);

}  // namespace tracefire::text
