// SPDX-License-Identifier: Apache-2.0
#include "tools/text/layout.h"

#include <algorithm>

#include "tools/text/escape.h"

namespace tracefire::text {

Style style_of(std::string_view word) {
  if (word == "gpu-ok" || word == "on-gpu") return Style::kGood;
  if (word == "gpu-broken" || word == "on-cpu" || word == "error") return Style::kBad;
  if (word == "gpu-degraded" || word == "partly-on-gpu" || word == "cpu-only" ||
      word == "warning") {
    return Style::kWarn;
  }
  return Style::kBold;
}

const char* sequence(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kBold:
      return "\033[1m";
    case Style::kDim:
      return "\033[2m";
    case Style::kGood:
      return "\033[32m";
    case Style::kWarn:
      return "\033[33m";
    case Style::kBad:
      return "\033[1;31m";
    case Style::kAccent:
      return "\033[36m";
    case Style::kSelected:
      return "\033[7m";
  }
  return "";
}

std::string styled(Style style, std::string_view text, bool color) {
  const std::string begin = color && !text.empty() ? sequence(style) : "";
  return begin + std::string(text) + (begin.empty() ? "" : "\033[0m");
}

std::vector<std::string> wrapped(std::string_view text, int width, bool cut_words) {
  const size_t most = static_cast<size_t>(std::max(width, 1));
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const size_t space = text.find(' ');
    std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (word.empty()) continue;
    const size_t used = display_width(lines.back());
    if (used > 0 && used + 1 + display_width(word) > most) {
      lines.emplace_back();
    } else if (used > 0) {
      lines.back() += ' ';
    }
    while (cut_words && display_width(word) > most) {
      const size_t part = prefix_of_width(word, most);
      lines.back() += word.substr(0, part);
      lines.emplace_back();
      word.remove_prefix(part);
    }
    lines.back() += word;
  }
  return lines;
}

std::string paragraph(std::string_view text, int width, std::string_view before, size_t hang) {
  if (width <= 0) return std::string(before) + std::string(text) + "\n";
  const size_t indent = display_width(before) + hang;
  std::string begin(before), out;
  for (const std::string& line :
       wrapped(text, std::max(width - static_cast<int>(indent), 16), false)) {
    out += begin + line + "\n";
    begin.assign(indent, ' ');
  }
  return out;
}

}  // namespace tracefire::text
