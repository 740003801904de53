// SPDX-License-Identifier: Apache-2.0
#include "tools/report/escape.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace tracefire::report {
namespace {

constexpr char kRedacted[] = "[redacted]";

/// Length of the UTF-8 sequence at the start of `text`, 0 where it is none that may be shown.
size_t sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= ' ' && first != 0x7f ? 1 : 0;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (length == 0 || first > 0xf4 || text.size() < length) return 0;
  uint32_t code = first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  const bool control = code < 0xa0 || (code >= 0x200b && code <= 0x200f) ||
                       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
                       code == 0xfeff;
  return code < kLeast[length] || code > 0x10ffff || surrogate || control ? 0 : length;
}

template <class Append>
std::string escaped(std::string_view text, size_t limit, Append append) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    if (out.size() >= limit) return out + "…";
    const size_t length = sequence(text);
    if (length == 0) {
      const auto byte = static_cast<unsigned char>(text[0]);
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
      text.remove_prefix(1);
    } else {
      append(out, text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return out;
}

bool word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' ||
         c == '/' || c == '+' || c == '=';
}

bool name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

/// Begins as tokens of well-known services do, and goes on long enough.
bool looks_like_token(std::string_view word) {
  static constexpr std::array<std::string_view, 13> kBeginnings = {
      "ghp_", "gho_",  "ghs_",  "github_pat_", "glpat-", "hf_",   "sk-",
      "AKIA", "xoxb-", "xoxp-", "eyJ",         "wandb_", "nvapi-"};
  if (word.size() < 16) return false;
  if (std::any_of(kBeginnings.begin(), kBeginnings.end(),
                  [&](std::string_view b) { return word.substr(0, b.size()) == b; })) {
    return true;
  }
  // A hexadecimal key: 32 digits or more and nothing else.
  return word.size() >= 32 && std::all_of(word.begin(), word.end(), [](char c) {
           return std::isxdigit(static_cast<unsigned char>(c)) != 0;
         });
}

}  // namespace

std::string printable(std::string_view text, size_t limit) {
  return escaped(text, limit, [](std::string& out, std::string_view c) { out += c; });
}

std::string html_text(std::string_view text, size_t limit) {
  return escaped(text, limit, [](std::string& out, std::string_view c) {
    switch (c[0]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  });
}

bool names_a_secret(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  static constexpr std::array<std::string_view, 10> kWords = {
      "token",   "secret", "passw", "credential", "api_key",
      "api-key", "apikey", "auth",  "private",    "access_key"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view w) { return lower.find(w) != std::string::npos; }) ||
         lower == "key" || lower == "pwd" ||
         (lower.size() > 4 && (lower.ends_with("_key") || lower.ends_with("-key")));
}

std::string redacted(std::string_view text) {
  std::string out;
  bool hide_next = false;  // the word after --token
  size_t at = 0;
  while (at < text.size()) {
    if (std::isspace(static_cast<unsigned char>(text[at])) != 0) {
      out += text[at++];
      continue;
    }
    size_t end = at;
    while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end])) == 0) ++end;
    std::string_view word = text.substr(at, end - at);
    at = end;
    if (hide_next && word[0] != '-') {
      out += kRedacted;
      hide_next = false;
      continue;
    }
    hide_next = false;
    const size_t equals = word.find_first_of("=:");
    if (equals != std::string_view::npos && equals > 0 && equals + 1 < word.size() &&
        names_a_secret(word.substr(0, equals)) && word.substr(equals, 3) != "://") {
      out += word.substr(0, equals + 1);
      out += kRedacted;
      continue;
    }
    if (word[0] == '-' && names_a_secret(word)) hide_next = true;
    // scheme://user:password@host
    const size_t scheme = word.find("://");
    if (scheme != std::string_view::npos) {
      const size_t host = word.find('@', scheme);
      if (host != std::string_view::npos && host < word.find('/', scheme + 3)) {
        out += word.substr(0, scheme + 3);
        out += kRedacted;
        word = word.substr(host);
      }
    }
    // Tokens anywhere in the word.
    size_t i = 0;
    while (i < word.size()) {
      if (!name_character(word[i])) {
        out += word[i++];
        continue;
      }
      size_t j = i;
      while (j < word.size() && name_character(word[j])) ++j;
      const std::string_view part = word.substr(i, j - i);
      if (looks_like_token(part)) {
        out += kRedacted;
        while (j < word.size() && word_character(word[j])) ++j;
      } else {
        out += part;
      }
      i = j;
    }
  }
  return out;
}

std::vector<std::string> redacted_words(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  bool hide = false;
  for (const std::string& word : words) {
    const bool option = !word.empty() && word[0] == '-';
    out.push_back(hide && !option ? kRedacted : redacted(word));
    hide = option && word.find('=') == std::string::npos && names_a_secret(word);
  }
  return out;
}

}  // namespace tracefire::report
