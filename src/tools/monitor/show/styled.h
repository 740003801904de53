// SPDX-License-Identifier: Apache-2.0
// Lines of text with styles, before it is known whether a terminal shows them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/monitor/show/escape.h"
#include "tools/text/layout.h"

namespace tracefire::monitor {

using text::Style;

struct Span {
  Style style;
  std::string text;  ///< cleaned
};

/// A line; pieces are cleaned as they are added.
class Line {
 public:
  Line& add(std::string_view text, Style style = Style::kPlain);
  Line& add(const Line& other);
  /// Exactly `width` columns: cut, or filled with blanks on the right or on the left.
  Line& cell(std::string_view text, size_t width, Style style = Style::kPlain, bool right = false);
  Line& fill_to(size_t column);
  size_t width() const { return width_; }
  /// Every style becomes `style`.
  void restyle(Style style);
  /// At most `columns` columns; with escape sequences where `color`, in ASCII where not `unicode`.
  std::string text(size_t columns, bool color, bool unicode) const;

 private:
  std::vector<Span> spans_;
  size_t width_ = 0;
};

}  // namespace tracefire::monitor
