// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/text.h"

#include <algorithm>

#include "tools/text/escape.h"

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
  std::string plain(text);
  std::replace_if(plain.begin(), plain.end(), space, ' ');
  return text::clean(plain, limit);
}

std::string html_text(std::string_view text) {
  std::string plain(text);
  std::replace_if(plain.begin(), plain.end(), space, ' ');
  return text::escape(plain, text::Sink::kHtml, 20000);
}

}  // namespace tracefire::doctor
