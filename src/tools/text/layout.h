// SPDX-License-Identifier: Apache-2.0
// How cleaned text (escape.h) is laid out on a terminal: styles, and lines that fit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tracefire::text {

enum class Style { kPlain, kBold, kDim, kGood, kWarn, kBad, kAccent, kSelected };

/// What a stream shows: plain lines as long as they are, unless it is a terminal.
struct Look {
  bool color = false;
  int width = 0;  ///< columns that lines are broken at; 0: they are not
};

/// The style of a verdict or severity: good for what is as it should be, bad for what is broken,
/// a warning for what is in between.
Style style_of(std::string_view word);

/// The sequence that begins a style on a terminal; "" for kPlain.
const char* sequence(Style style);
/// The text between the sequences of its style, where `color`; otherwise as it is.
std::string styled(Style style, std::string_view text, bool color);

/// The text in lines of at most `width` columns, broken between words; a longer word is cut, or
/// has a line of its own. At least one line, which is empty where the text is.
std::vector<std::string> wrapped(std::string_view text, int width, bool cut_words = true);

/// wrapped(), each line with its end: the first begins with `before`, the others with as many
/// blanks and `hang` more. Words, such as paths, stay whole. With a width of 0 it is one line. At
/// least 16 columns are kept for the text.
std::string paragraph(std::string_view text, int width, std::string_view before = "",
                      size_t hang = 0);

}  // namespace tracefire::text
