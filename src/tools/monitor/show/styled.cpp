// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/show/styled.h"

#include <algorithm>

namespace tracefire::monitor {
Line& Line::add(std::string_view text, Style style) {
  spans_.push_back({style, escape(text, Sink::kTerminal)});
  width_ += display_width(spans_.back().text);
  return *this;
}

Line& Line::add(const Line& other) {
  spans_.insert(spans_.end(), other.spans_.begin(), other.spans_.end());
  width_ += other.width_;
  return *this;
}

Line& Line::cell(std::string_view text, size_t width, Style style, bool right) {
  const std::string shown = cut_to_width(escape(text, Sink::kTerminal), width);
  const std::string blanks(width - std::min(width, display_width(shown)), ' ');
  spans_.push_back({style, right ? blanks + shown : shown + blanks});
  width_ += width;
  return *this;
}

Line& Line::fill_to(size_t column) {
  if (width_ < column) add(std::string(column - width_, ' '));
  return *this;
}

void Line::restyle(Style style) {
  for (Span& span : spans_) span.style = style;
}

std::string Line::text(size_t columns, bool color, bool unicode) const {
  std::string out;
  size_t left = columns;
  for (const Span& span : spans_) {
    if (left == 0) break;
    std::string piece = cut_to_width(span.text, left);
    left -= std::min(left, display_width(piece));
    if (!unicode) piece = ascii_only(piece);
    out += text::styled(span.style, piece, color);
  }
  if (!color) {
    while (!out.empty() && out.back() == ' ') out.pop_back();
  }
  return out;
}

}  // namespace tracefire::monitor
