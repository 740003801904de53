// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tools/text/escape.h"
#include "tools/text/redact.h"

namespace tracefire::report {

using text::names_a_secret;
using text::redacted;
using text::redacted_words;

/// Text from outside on its way to a person or into a file; "…" stands for what is over `limit`
/// bytes.
inline std::string printable(std::string_view text, size_t limit = 1024) {
  return text::clean(text, limit);
}
inline std::string html_text(std::string_view text, size_t limit = 1024) {
  return text::escape(text, text::Sink::kHtml, limit);
}

}  // namespace tracefire::report
