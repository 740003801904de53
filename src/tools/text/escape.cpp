// SPDX-License-Identifier: Apache-2.0
#include "tools/text/escape.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace tracefire::text {
namespace {

constexpr uint32_t kBroken = 0xFFFD;

/// Decodes one character and moves `at` behind it; kBroken (and one byte) for what is not UTF-8.
uint32_t next_character(std::string_view text, size_t* at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(*at);
  int more = 0;
  uint32_t value = 0;
  if (first < 0x80) {
    ++*at;
    return first;
  }
  if (first >= 0xC2 && first <= 0xDF) {
    more = 1;
    value = first & 0x1F;
  } else if (first >= 0xE0 && first <= 0xEF) {
    more = 2;
    value = first & 0x0F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    more = 3;
    value = first & 0x07;
  } else {
    ++*at;
    return kBroken;
  }
  if (*at + static_cast<size_t>(more) >= text.size()) {
    ++*at;
    return kBroken;
  }
  for (int i = 1; i <= more; ++i) {
    const unsigned char b = byte(*at + static_cast<size_t>(i));
    if ((b & 0xC0) != 0x80) {
      ++*at;
      return kBroken;
    }
    value = value << 6 | (b & 0x3F);
  }
  const bool overlong = (more == 2 && value < 0x800) || (more == 3 && value < 0x10000);
  if (overlong || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
    ++*at;
    return kBroken;
  }
  *at += static_cast<size_t>(more) + 1;
  return value;
}

bool acts(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0xAD || c == 0x061C ||
         (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFB) ||
         (c >= 0xE0000 && c <= 0xE0FFF);
}

size_t width_of(uint32_t c) {
  if ((c >= 0x0300 && c <= 0x036F) || (c >= 0xFE00 && c <= 0xFE0F) ||
      (c >= 0x1AB0 && c <= 0x1AFF) || (c >= 0x20D0 && c <= 0x20FF)) {
    return 0;
  }
  const bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
                    (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
                    (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
                    (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) ||
                    (c >= 0x20000 && c <= 0x3FFFD);
  return wide ? 2 : 1;
}

std::string html(std::string_view text) {
  std::string out;
  for (const char c : text) {
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

std::string csv(std::string text) {
  // A spreadsheet runs a cell that begins like a formula.
  if (!text.empty() && std::string_view("=+-@").find(text[0]) != std::string_view::npos) {
    text.insert(0, "'");
  }
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string prometheus(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string clean(std::string_view text, size_t limit) {
  std::string out;
  out.reserve(std::min(text.size(), limit));
  for (size_t at = 0; at < text.size();) {
    if (out.size() >= limit) return out + "\xE2\x80\xA6";
    const size_t begin = at;
    const uint32_t c = next_character(text, &at);
    if (c == kBroken) {
      out += "\xEF\xBF\xBD";
    } else if (acts(c)) {
      char code[16];
      std::snprintf(code, sizeof code, c < 0x100 ? "\\x%02x" : "\\u{%x}", c);
      out += code;
    } else {
      out.append(text.substr(begin, at - begin));
    }
  }
  return out;
}

std::string escape(std::string_view text, Sink sink, size_t limit) {
  std::string cleaned = clean(text, limit);
  switch (sink) {
    case Sink::kHtml:
      return html(cleaned);
    case Sink::kCsv:
      return csv(std::move(cleaned));
    case Sink::kPrometheus:
      return prometheus(cleaned);
    case Sink::kTerminal:
    case Sink::kLog:
      break;
  }
  return cleaned;
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  for (size_t at = 0; at < text.size();) width += width_of(next_character(text, &at));
  return width;
}

std::string cut_to_width(std::string_view text, size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  std::string out;
  size_t width = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const size_t w = width_of(next_character(text, &at));
    if (width + w > columns - 1) break;
    width += w;
    out.append(text.substr(begin, at - begin));
  }
  return out + "\xE2\x80\xA6";
}

size_t prefix_of_width(std::string_view text, size_t columns) {
  size_t end = 0, width = 0;
  for (size_t at = 0; at < text.size(); end = at) {
    width += width_of(next_character(text, &at));
    if (width > columns && end > 0) break;
  }
  return end;
}

std::string ascii_only(std::string_view text) {
  constexpr uint32_t kEllipsis = 0x2026;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const uint32_t c = next_character(text, &at);
    out += c < 0x80 ? static_cast<char>(c) : c == kEllipsis ? '~' : '?';
  }
  return out;
}

}  // namespace tracefire::text
