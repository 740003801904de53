// SPDX-License-Identifier: Apache-2.0
#include "tools/text/layout.h"

#include <doctest/doctest.h>

#include "tools/text/escape.h"

namespace tracefire::text {

TEST_CASE("text: lines are broken between words and count columns") {
  using Lines = std::vector<std::string>;
  CHECK(wrapped("one two three", 7) == Lines{"one two", "three"});
  CHECK(wrapped("", 7) == Lines{""});
  CHECK(wrapped("abcdefgh", 3) == Lines{"abc", "def", "gh"});
  CHECK(wrapped("\u4e2d\u6587\u5b57", 4) == Lines{"\u4e2d\u6587", "\u5b57"});  // two columns each
  CHECK(wrapped("\u4e2d\u6587", 1) == Lines{"\u4e2d", "\u6587"});  // as narrow as it can be
  CHECK(wrapped("e\u0301e\u0301e\u0301", 2) == Lines{"e\u0301e\u0301", "e\u0301"});
  CHECK(wrapped("a abcdefgh b", 3, false) == Lines{"a", "abcdefgh", "b"});
  CHECK(prefix_of_width("", 3) == 0);
  CHECK(prefix_of_width("abc", 0) == 1);
}

TEST_CASE("text: a paragraph keeps its indent, and is one line without a width") {
  CHECK(paragraph("one two three four five", 20, "- ") == "- one two three four\n  five\n");
  CHECK(paragraph("one two three four five", 0, "  ") == "  one two three four five\n");
  CHECK(paragraph("one two three four five six", 20, "  ", 2) ==
        "  one two three\n    four five six\n");
  CHECK(paragraph("", 20, "  ") == "  \n");
}

TEST_CASE("text: styles are for who shows them") {
  CHECK(styled(Style::kBad, "no", false) == "no");
  CHECK(styled(Style::kBad, "no", true) == "\033[1;31mno\033[0m");
  CHECK(styled(Style::kPlain, "no", true) == "no");
  CHECK(styled(Style::kBold, "", true).empty());
  CHECK(style_of("gpu-ok") == Style::kGood);
  CHECK(style_of("cpu-only") == Style::kWarn);
  CHECK(style_of("gpu-broken") == Style::kBad);
  CHECK(style_of("unknown") == Style::kBold);
}

}  // namespace tracefire::text
