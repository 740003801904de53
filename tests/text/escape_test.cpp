// SPDX-License-Identifier: Apache-2.0
#include "tools/text/escape.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

namespace tracefire::text {

TEST_CASE("text: text that acts is shown instead") {
  CHECK(clean("plain caf\u00e9 \u4e2d") == "plain caf\u00e9 \u4e2d");
  CHECK(clean("\033[2J\a\n\t\x7f") == "\\x1b[2J\\x07\\x0a\\x09\\x7f");
  CHECK(clean("\xc2\x9b"
              "5n") == "\\x9b5n");  // C1, a control sequence of its own
  CHECK(clean("a\u202e"
              "b\u2066") == "a\\u{202e}b\\u{2066}");  // direction overrides
  CHECK(clean("\u2028\ufeff\u200b") == "\\u{2028}\\u{feff}\\u{200b}");
  CHECK(clean(std::string_view("a\0b", 3)) == "a\\x00b");
  // Broken UTF-8: alone, cut off, overlong, a surrogate, beyond the last code point.
  const std::string broken = "\xEF\xBF\xBD";
  CHECK(clean("\xff") == broken);
  CHECK(clean("\xe4\xb8") == broken + broken);
  CHECK(clean("\xc0\xaf") == broken + broken);
  CHECK(clean("\xed\xa0\x80") == broken + broken + broken);
  CHECK(clean("\xf4\x90\x80\x80").find('\xf4') == std::string::npos);
  CHECK(clean(clean("\033\xff")) == clean("\033\xff"));
  CHECK(clean(std::string(100, 'x'), 10) == "xxxxxxxxxx\u2026");
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += static_cast<char>(random() & 0xff);
    const std::string out = clean(text);
    for (const char c : out) REQUIRE(static_cast<unsigned char>(c) >= ' ');
    CHECK(clean(out) == out);
  }
}

TEST_CASE("text: each sink has its own escapes") {
  CHECK(escape("<b a=\"1\">'&", Sink::kHtml) == "&lt;b a=&quot;1&quot;&gt;&#39;&amp;");
  CHECK(escape("a,b", Sink::kCsv) == "\"a,b\"");
  CHECK(escape("say \"x\"", Sink::kCsv) == "\"say \"\"x\"\"\"");
  CHECK(escape("=1+2", Sink::kCsv) == "'=1+2");
  CHECK(escape("@x,y", Sink::kCsv) == "\"'@x,y\"");
  CHECK(escape("plain", Sink::kCsv) == "plain");
  CHECK(escape("a\"b\\c\nd", Sink::kPrometheus) == "a\\\"b\\\\c\\\\x0ad");
  CHECK(escape("a\nb", Sink::kLog) == "a\\x0ab");
}

TEST_CASE("text: columns of a terminal") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("caf\u00e9") == 4);
  CHECK(display_width("\u4e2d\u6587") == 4);
  CHECK(display_width("e\u0301") == 1);
  CHECK(cut_to_width("abcdef", 6) == "abcdef");
  CHECK(cut_to_width("abcdef", 4) == "abc\u2026");
  CHECK(cut_to_width("\u4e2d\u6587\u5b57", 4) == "\u4e2d\u2026");
  CHECK(cut_to_width("abc", 0) == "");
  CHECK(ascii_only("a\u2026\u00e9z") == "a~?z");
}

}  // namespace tracefire::text
