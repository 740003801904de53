// SPDX-License-Identifier: Apache-2.0
#include "tools/text/redact.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace tracefire::text {
namespace {

constexpr std::string_view kRedacted = "[redacted]";

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}
/// Tokens in base 64 go on over these.
bool is_token(char c) { return is_name(c) || c == '.' || c == '/' || c == '+' || c == '='; }
bool ends_value(char c) { return c == '&' || c == '"' || c == '\'' || c == ';' || c == ','; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

template <size_t N>
bool is_one_of(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// Begins as tokens of well-known services do and goes on long enough, or is a hexadecimal key.
bool looks_like_token(std::string_view word) {
  static constexpr std::array<std::string_view, 14> kBeginnings = {
      "ghp_",  "gho_",  "ghs_", "github_pat_", "glpat-", "hf_",    "sk-",
      "xoxb-", "xoxp-", "AKIA", "eyJ",         "wandb_", "nvapi-", "pypi-"};
  if (word.size() < 16) return false;
  if (std::any_of(kBeginnings.begin(), kBeginnings.end(),
                  [&](std::string_view begin) { return word.starts_with(begin); })) {
    return true;
  }
  return word.size() >= 32 && std::all_of(word.begin(), word.end(), [](char c) {
           return std::isxdigit(static_cast<unsigned char>(c)) != 0;
         });
}

/// Appends the word with every token in it hidden.
void append_without_tokens(std::string_view word, std::string* out) {
  for (size_t i = 0; i < word.size();) {
    size_t end = i;
    while (end < word.size() && is_name(word[end])) ++end;
    if (end == i) {
      *out += word[i++];
      continue;
    }
    if (looks_like_token(word.substr(i, end - i))) {
      *out += kRedacted;
      while (end < word.size() && is_token(word[end])) ++end;
    } else {
      *out += word.substr(i, end - i);
    }
    i = end;
  }
}

/// "scheme://user:password@host": appends scheme and "[redacted]" and returns the rest.
std::string_view append_address(std::string_view word, std::string* out) {
  const size_t scheme = word.find("://");
  if (scheme == word.npos) return word;
  const size_t host = word.find('@', scheme);
  if (host == word.npos || host > word.find('/', scheme + 3)) return word;
  *out += word.substr(0, scheme + 3);
  *out += kRedacted;
  return word.substr(host);
}

/// Where the name begins that stands before `end` in the word; quotes around it are passed over.
std::string_view name_before(std::string_view word, size_t end) {
  while (end > 0 && (word[end - 1] == '"' || word[end - 1] == '\'')) --end;
  size_t begin = end;
  while (begin > 0 && is_name(word[begin - 1])) --begin;
  return word.substr(begin, end - begin);
}

/// Means a secret in "key=x", but hardly in "key: x", which may be prose.
bool is_common_word(std::string_view name) {
  return name == "key" || name == "pass" || name == "signature";
}

/// Appends the word; true where the value it names is the next word.
bool append_word(std::string_view word, std::string* out) {
  word = append_address(word, out);
  size_t done = 0;
  for (size_t at = 0; (at = word.find_first_of("=:", at)) != word.npos;) {
    const std::string_view name = name_before(word, at);
    if (word.substr(at, 3) == "://" || !names_a_secret(name)) {
      ++at;
      continue;
    }
    append_without_tokens(word.substr(done, at + 1 - done), out);
    done = ++at;
    if (at == word.size()) return !is_common_word(lower(name));
    if (word[at] == '"' || word[at] == '\'') *out += word[done++], ++at;
    while (at < word.size() && !ends_value(word[at])) ++at;
    if (at > done) *out += kRedacted;
    done = at;
  }
  append_without_tokens(word.substr(done), out);
  return word.starts_with('-') && word.find('=') == word.npos && names_a_secret(word);
}

bool names_a_scheme(std::string_view word) {
  const std::string name = lower(word);
  return name == "bearer" || name == "basic";
}

}  // namespace

bool names_a_secret(std::string_view name) {
  static constexpr std::array<std::string_view, 16> kParts = {
      "token", "secret",     "secrets", "password",    "passwd", "passphrase",
      "pass",  "pwd",        "apikey",  "credentials", "auth",   "authorization",
      "oauth", "credential", "cookie",  "signature"};
  static constexpr std::array<std::string_view, 5> kEnds = {"token", "secret", "password", "passwd",
                                                            "apikey"};
  const std::string whole = lower(name);
  std::string_view rest = whole;
  bool several = false;
  while (true) {
    const size_t end = rest.find_first_of("_-.");
    const std::string_view part = rest.substr(0, end);
    if (is_one_of(kParts, part)) return true;
    if (end == rest.npos) {
      if (part == "key") return several || whole == "key";
      return std::any_of(kEnds.begin(), kEnds.end(),
                         [&](std::string_view word) { return part.ends_with(word); });
    }
    several = several || !part.empty();
    rest.remove_prefix(end + 1);
  }
}

std::string redacted(std::string_view text) {
  std::string out;
  bool hide = false;  // the next word is a value
  for (size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      out += text[at++];
      continue;
    }
    size_t end = at;
    while (end < text.size() && !is_space(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    at = end;
    if (hide && word[0] != '-') {
      out += kRedacted;
      hide = names_a_scheme(word);
    } else if (lower(word) == "bearer") {
      out += word;
      hide = true;
    } else {
      hide = append_word(word, &out);
    }
  }
  return out;
}

std::vector<std::string> redacted_words(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  bool hide = false;
  for (const std::string& word : words) {
    const bool option = word.starts_with('-');
    out.push_back(hide && !option ? std::string(kRedacted) : redacted(word));
    hide = option && word.find('=') == word.npos && names_a_secret(word);
  }
  return out;
}

}  // namespace tracefire::text
