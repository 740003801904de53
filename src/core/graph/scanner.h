// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/graph/attrs.h"
#include "core/graph/text_limits.h"

namespace tracefire {

/// Reads the words of a graph's text from left to right. Blanks and comments (# to the end of the
/// line) stand between any two. Views that it returns point into the text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  size_t size() const { return text_.size(); }
  bool at_end();
  /// The next character that is no blank; 0 at the end.
  char peek();
  bool take(char c);
  /// Takes `word` where it stands next, as a whole identifier.
  bool take_word(std::string_view word);
  Status expect(char c, const char* expected = nullptr);
  Status expect_word(std::string_view word);

  Result<std::string_view> identifier(const char* expected);
  /// The name behind '%'.
  Result<std::string_view> value_name();
  /// A text in quotes, with its escapes replaced.
  Result<std::string> string();
  Result<int64_t> integer();
  /// An integer, or a real number where it has a point or an exponent, or is -inf.
  Result<Attr> number();
  /// Letters, digits, '/', ':' and '_'.
  Result<std::string_view> device_text();

  /// kBadText with line and column of what stands next: "line 3, column 7: X was expected …".
  Status fail(const std::string& expected);
  /// Remembers the place of what stands next, for fail_at_mark().
  void mark();
  Status fail_at_mark(const std::string& expected) const { return fail_at(mark_, expected); }

 private:
  void skip_blanks();
  std::string_view number_text();
  Status fail_at(size_t place, const std::string& expected) const;

  std::string_view text_;
  size_t at_ = 0;
  size_t mark_ = 0;
};

}  // namespace tracefire
