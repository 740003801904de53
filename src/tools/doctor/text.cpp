// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/text.h"

namespace tracefire::doctor {

namespace {

bool space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}
bool digit(char c) { return c >= '0' && c <= '9'; }
bool word_char(char c) {
  return digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
         c == '.';
}

/// Length of the valid UTF-8 sequence at the front, 0 where there is none.
size_t sequence(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  size_t length = first < 0x80                    ? 1
                  : first >= 0xC2 && first < 0xE0 ? 2
                  : (first & 0xF0) == 0xE0        ? 3
                  : first >= 0xF0 && first < 0xF5 ? 4
                                                  : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (length == 3 && ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0)))
    return 0;
  if (length == 4 && ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) >= 0x90)))
    return 0;
  return length;
}

/// Code points that change how the text around them is shown.
bool deceptive(std::string_view sequence) {
  if (sequence.size() == 2)
    return sequence[0] == '\xC2' && static_cast<unsigned char>(sequence[1]) < 0xA0;
  if (sequence.size() != 3) return false;
  int code = ((sequence[0] & 0x0F) << 12) | ((sequence[1] & 0x3F) << 6) | (sequence[2] & 0x3F);
  return (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

}  // namespace

std::string_view trim(std::string_view text) {
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  for (size_t at; (at = text.find(separator, begin)) != text.npos; begin = at + 1)
    parts.push_back(text.substr(begin, at - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

std::vector<std::string_view> lines_of(std::string_view text, size_t limit) {
  std::vector<std::string_view> lines;
  while (!text.empty() && lines.size() < limit) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return out;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool contains_word(std::string_view text, std::string_view part) {
  return contains(lower(text), lower(part));
}

std::string between(std::string_view text, std::string_view before, std::string_view ends) {
  size_t at = text.find(before);
  if (at == text.npos) return "";
  text.remove_prefix(at + before.size());
  return std::string(trim(text.substr(0, text.find_first_of(ends))));
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += separator;
    out += part;
  }
  return out;
}

bool is_version(std::string_view text) {
  if (text.empty() || !digit(text.front())) return false;
  return text.find_first_not_of("0123456789.") == text.npos;
}

std::string find_version(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (!digit(text[i]) || (i > 0 && (word_char(text[i - 1])))) continue;
    size_t end = i;
    while (end < text.size() && (digit(text[end]) || text[end] == '.')) ++end;
    std::string_view found = text.substr(i, end - i);
    while (!found.empty() && found.back() == '.') found.remove_suffix(1);
    if (contains(found, ".")) return std::string(found);
    i = end;
  }
  return "";
}

std::string parent_of(std::string_view path) {
  size_t at = path.rfind('/');
  return at == path.npos || at == 0 ? "/" : std::string(path.substr(0, at));
}

std::string name_of(std::string_view path) {
  size_t at = path.rfind('/');
  return std::string(at == path.npos ? path : path.substr(at + 1));
}

std::string normal_path(std::string_view path) {
  std::vector<std::string_view> kept;
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (!kept.empty()) kept.pop_back();
    } else {
      kept.push_back(part);
    }
  }
  std::string out;
  for (std::string_view part : kept) out.append("/").append(part);
  return out.empty() ? "/" : out;
}

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  while (!text.empty()) {
    if (out.size() >= limit) return out + "…";
    size_t length = sequence(text);
    if (length == 0) {
      out += "\uFFFD";
      text.remove_prefix(1);
      continue;
    }
    std::string_view one = text.substr(0, length);
    unsigned char first = static_cast<unsigned char>(one[0]);
    if (length == 1 && (first < 0x20 || first == 0x7F)) {
      out += ' ';
    } else if (deceptive(one)) {
      out += "\uFFFD";
    } else {
      out += one;
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string html_text(std::string_view text) {
  std::string out;
  for (char c : printable(text, 20000)) {
    switch (c) {
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
  }
  return out;
}

std::string csv_field(std::string_view text) {
  std::string out = replace_all(printable(text), "\"", "\"\"");
  if (!out.empty() && std::string_view("=+-@\t").find(out[0]) != std::string_view::npos)
    out = "'" + out;
  return "\"" + out + "\"";
}

std::string redact(std::string text) {
  static constexpr std::string_view kTokens[] = {"ghp_",   "gho_",  "ghs_",   "github_pat_",
                                                 "hf_",    "sk-",   "xoxb-",  "AKIA",
                                                 "glpat-", "pypi-", "nvapi-", "eyJ"};
  for (std::string_view token : kTokens) {
    for (size_t at = 0; (at = text.find(token, at)) != text.npos;) {
      size_t end = at + token.size();
      while (end < text.size() && word_char(text[end])) ++end;
      bool begins = at == 0 || !word_char(text[at - 1]);
      if (begins && end - at >= token.size() + 8) {
        text.replace(at, end - at, "[redacted]");
        at += 10;
      } else {
        at += token.size();
      }
    }
  }
  static constexpr std::string_view kNames[] = {"token",  "password",      "passwd",   "secret",
                                                "apikey", "api_key",       "api-key",  "access_key",
                                                "bearer", "authorization", "signature"};
  std::string low = lower(text);
  for (std::string_view name : kNames) {
    for (size_t at = 0; (at = low.find(name, at)) != low.npos;) {
      size_t begin = at + name.size();
      at = begin;
      if (begin >= text.size() || (text[begin] != '=' && text[begin] != ':' && text[begin] != ' '))
        continue;
      if (text[begin] == ' ' && name != "bearer") continue;
      ++begin;
      while (begin < text.size() && text[begin] == ' ') ++begin;
      size_t end = begin;
      while (end < text.size() && !space(text[end]) && text[end] != '&' && text[end] != '"' &&
             text[end] != '\'')
        ++end;
      if (end == begin) continue;
      text.replace(begin, end - begin, "[redacted]");
      low = lower(text);
      at = begin;
    }
  }
  for (size_t at = 0; (at = text.find("://", at)) != text.npos;) {
    at += 3;
    size_t end = text.find_first_of("/ \"'", at);
    size_t sign = text.find('@', at);
    if (sign != text.npos && (end == text.npos || sign < end))
      text.replace(at, sign - at, "[redacted]");
  }
  return text;
}

}  // namespace tracefire::doctor
