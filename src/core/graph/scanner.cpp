// SPDX-License-Identifier: Apache-2.0
#include "core/graph/scanner.h"

#include <charconv>
#include <limits>

namespace tracefire {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void Scanner::skip_blanks() {
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (c == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++at_;
    } else {
      return;
    }
  }
}

bool Scanner::at_end() {
  skip_blanks();
  return at_ == text_.size();
}

char Scanner::peek() { return at_end() ? '\0' : text_[at_]; }

bool Scanner::take(char c) {
  if (at_end() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool Scanner::take_word(std::string_view word) {
  skip_blanks();
  if (text_.substr(at_, word.size()) != word) return false;
  size_t end = at_ + word.size();
  if (end < text_.size() && is_identifier_part(text_[end])) return false;
  at_ = end;
  return true;
}

Status Scanner::expect(char c, const char* expected) {
  if (take(c)) return {};
  return fail(expected ? expected : std::string("'") + c + "'");
}

Status Scanner::expect_word(std::string_view word) {
  if (take_word(word)) return {};
  return fail("'" + std::string(word) + "'");
}

Result<std::string_view> Scanner::identifier(const char* expected) {
  skip_blanks();
  size_t end = at_;
  if (end < text_.size() && is_identifier_start(text_[end])) {
    while (end < text_.size() && is_identifier_part(text_[end])) ++end;
  }
  if (end == at_) return fail(expected);
  std::string_view word = text_.substr(at_, end - at_);
  at_ = end;
  return word;
}

Result<std::string_view> Scanner::value_name() {
  TF_RETURN_IF_ERROR(expect('%', "a value such as %0"));
  size_t end = at_;
  while (end < text_.size() && is_identifier_part(text_[end])) ++end;
  if (end == at_) return fail("the number or name of a value behind '%'");
  std::string_view name = text_.substr(at_, end - at_);
  at_ = end;
  return name;
}

Result<std::string> Scanner::string() {
  TF_RETURN_IF_ERROR(expect('"', "a text in quotes"));
  std::string out;
  while (at_ < text_.size() && text_[at_] != '"') {
    char c = text_[at_++];
    if (c == '\n') return fail("'\"' before the end of the line (write \\n for a line end)");
    if (c != '\\') {
      out += c;
      continue;
    }
    char escape = at_ < text_.size() ? text_[at_++] : '\0';
    if (escape == 'n') {
      out += '\n';
    } else if (escape == '"' || escape == '\\') {
      out += escape;
    } else if (escape == 'x' && at_ + 1 < text_.size() && hex_digit(text_[at_]) >= 0 &&
               hex_digit(text_[at_ + 1]) >= 0) {
      out += static_cast<char>(hex_digit(text_[at_]) * 16 + hex_digit(text_[at_ + 1]));
      at_ += 2;
    } else {
      return fail("one of \\n, \\\", \\\\ and \\x with two hexadecimal digits");
    }
  }
  TF_RETURN_IF_ERROR(expect('"', "'\"' at the end of the text"));
  return out;
}

std::string_view Scanner::number_text() {
  skip_blanks();
  size_t end = at_;
  if (end < text_.size() && text_[end] == '-') ++end;
  while (end < text_.size()) {
    char c = text_[end];
    bool sign = (c == '+' || c == '-') && end > at_ && text_[end - 1] == 'e';
    if (!is_digit(c) && c != '.' && c != 'e' && !sign) break;
    ++end;
  }
  return text_.substr(at_, end - at_);
}

Result<int64_t> Scanner::integer() {
  skip_blanks();
  int64_t value = 0;
  const char* begin = text_.data() + at_;
  auto [stop, failure] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (failure == std::errc::result_out_of_range) return fail("an integer of at most 64 bits");
  if (failure != std::errc()) return fail("an integer");
  at_ += static_cast<size_t>(stop - begin);
  return value;
}

Result<Attr> Scanner::number() {
  skip_blanks();
  if (text_.substr(at_, 4) == "-inf") {
    at_ += 4;
    return Attr(-std::numeric_limits<double>::infinity());
  }
  std::string_view word = number_text();
  if (word.find_first_of(".e") == std::string_view::npos) {
    TF_ASSIGN(int64_t value, integer());
    return Attr(value);
  }
  double value = 0;
  auto [stop, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failure != std::errc() || stop != word.data() + word.size()) return fail("a number");
  at_ += word.size();
  return Attr(value);
}

Result<std::string_view> Scanner::device_text() {
  skip_blanks();
  size_t end = at_;
  while (end < text_.size() &&
         (is_identifier_part(text_[end]) || text_[end] == '/' || text_[end] == ':')) {
    ++end;
  }
  if (end == at_) return fail("a device such as /GPU:0");
  std::string_view word = text_.substr(at_, end - at_);
  at_ = end;
  return word;
}

void Scanner::mark() {
  skip_blanks();
  mark_ = at_;
}

Status Scanner::fail(const std::string& expected) {
  skip_blanks();
  return fail_at(at_, expected);
}

Status Scanner::fail_at(size_t place, const std::string& expected) const {
  size_t line = 1, column = 1;
  for (size_t i = 0; i < place; ++i) {
    if (text_[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  std::string found;
  for (char c : text_.substr(place, 24)) {
    if (c == '\n') break;
    found += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return error(ErrorCode::kBadText, "line ", line, ", column ", column, ": found ",
               place == text_.size() ? "the end of the text" : "'" + found + "'", ". Expected ",
               expected, ".");
}

}  // namespace tracefire
