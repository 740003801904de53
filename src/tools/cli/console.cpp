// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/console.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/base/status.h"

namespace tracefire::cli {
namespace {

constexpr int kProseWidth = 80, kWidestProse = 100;

bool set_and_not_empty(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

/// A stream that was closed by whoever started us must not become the next file that is opened:
/// what is printed would be written into that file.
void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    // Reading where one should write, and the other way round: each use fails with EBADF.
    const int mode = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    [[maybe_unused]] const int file = ::open("/dev/null", mode);
  }
}

int terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int given = columns == nullptr ? 0 : std::atoi(columns);
  return given > 0 ? given : kProseWidth;
}

std::string with_style(Style style, std::string_view text, bool color) {
  const char* code = "";
  switch (style) {
    case Style::kPlain:
      break;
    case Style::kBold:
      code = "1";
      break;
    case Style::kDim:
      code = "2";
      break;
    case Style::kGood:
      code = "32";
      break;
    case Style::kBad:
      code = "1;31";
      break;
  }
  if (!color || *code == '\0' || text.empty()) return std::string(text);
  return std::string("\x1b[") + code + "m" + std::string(text) + "\x1b[0m";
}

/// Bytes of the UTF-8 sequence that `text` begins with, 0 where it is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, beyond U+10FFFF; U+0080 … U+009F steer terminals.
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) > 0x9F) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) > 0x8F) return 0;
  if (first == 0xC2 && byte(1) < 0xA0) return 0;
  return length;
}

/// Text with control characters and invalid bytes as \xNN.
std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const unsigned char first = static_cast<unsigned char>(text[0]);
    size_t length = utf8_length(text);
    if (length == 0 || first < 0x20 || first == 0x7F) {
      constexpr char kHex[] = "0123456789abcdef";
      out += {'\\', 'x', kHex[first >> 4], kHex[first & 15]};
      length = 1;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

/// The longest prefix of at most `columns` code points.
std::string_view prefix_of(std::string_view text, size_t columns) {
  size_t end = 0;
  while (end < text.size() && columns > 0) {
    end += std::max<size_t>(1, utf8_length(text.substr(end)));
    --columns;
  }
  return text.substr(0, end);
}

/// 0, or why it could not be written.
int write_all(int stream, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(stream, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

}  // namespace

std::string printable(std::string_view text, size_t limit) {
  if (text.size() <= limit) return escaped(text);
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return escaped(text.substr(0, end > 0 ? end : limit)) + "...";
}

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::vector<std::string> wrapped(std::string_view text, int width) {
  const size_t most = static_cast<size_t>(std::max(width, 1));
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const size_t space = text.find(' ');
    std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (word.empty()) continue;
    const size_t used = columns_of(lines.back());
    if (used > 0 && used + 1 + columns_of(word) > most) {
      lines.emplace_back();
    } else if (used > 0) {
      lines.back() += ' ';
    }
    while (columns_of(word) > most) {
      const std::string_view part = prefix_of(word, most);
      lines.back() += part;
      lines.emplace_back();
      word.remove_prefix(part.size());
    }
    lines.back() += word;
  }
  return lines;
}

Console::Console() {
  occupy_closed_streams();
  terminal_[0] = ::isatty(STDOUT_FILENO) == 1;
  terminal_[1] = ::isatty(STDERR_FILENO) == 1;
  if (terminal_[0]) width_ = terminal_width();
  choose_color("auto");
}

void Console::choose_color(std::string_view when) {
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::strcmp(terminal, "dumb") == 0;
  for (int i = 0; i < 2; ++i) {
    color_[i] = when == "always" ||
                (when == "auto" && terminal_[i] && !dumb && !set_and_not_empty("NO_COLOR"));
  }
}

int Console::prose_width() const {
  return width_ == 0 ? kProseWidth : std::clamp(width_, 20, kWidestProse);
}

std::string Console::styled(Style style, std::string_view text) const {
  return with_style(style, text, color_[0]);
}

void Console::flush() {
  const std::string text = std::move(pending_);
  pending_.clear();
  const int problem = write_all(STDOUT_FILENO, text);
  if (problem == EPIPE) throw BrokenPipe{};
  if (problem == 0) return;
  error(ErrorCode::kCannotWrite, "standard output cannot be written: ", std::strerror(problem),
        ". An open file, pipe or terminal with room was expected. Send the output elsewhere.")
      .throw_if_error();
}

void Console::say(std::string_view text, std::string_view head, Style style) const {
  write_all(STDERR_FILENO, with_style(style, head, color_[1]) + escaped(text) + "\n");
  // Where stderr is closed there is nowhere left to say it.
}

void Table::row(std::vector<std::string> cells, Style first) {
  for (std::string& cell : cells) cell = printable(cell, 4096);
  rows_.push_back({std::move(cells), first});
}

std::string Table::text(const Console& console, int indent) const {
  constexpr size_t kGap = 2, kNarrowest = 8;
  size_t count = headings_.size();
  for (const Row& row : rows_) count = std::max(count, row.cells.size());
  std::vector<size_t> widths(count, 0);
  const auto measure = [&](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], columns_of(cells[i]));
  };
  measure(headings_);
  for (const Row& row : rows_) measure(row.cells);
  const size_t frame = static_cast<size_t>(indent) + kGap * (count > 0 ? count - 1 : 0);
  size_t total = frame;
  for (const size_t width : widths) total += width;
  const size_t room = static_cast<size_t>(console.width());
  while (room > 0 && total > room) {
    size_t& widest = *std::max_element(widths.begin(), widths.end());
    if (widest <= kNarrowest) break;
    --widest;
    --total;
  }
  std::string out;
  const auto write_row = [&](const std::vector<std::string>& cells, Style first, Style others) {
    std::vector<std::vector<std::string>> lines;
    size_t height = 1;
    for (size_t i = 0; i < cells.size(); ++i) {
      lines.push_back(wrapped(cells[i], static_cast<int>(std::max<size_t>(widths[i], 1))));
      height = std::max(height, lines.back().size());
    }
    for (size_t y = 0; y < height; ++y) {
      std::string line(static_cast<size_t>(indent), ' ');
      size_t blanks = 0;
      for (size_t i = 0; i < cells.size(); ++i) {
        const std::string cell = y < lines[i].size() ? lines[i][y] : "";
        if (!cell.empty()) {
          line.append(blanks, ' ');
          line += console.styled(i == 0 ? first : others, cell);
          blanks = 0;
        }
        blanks += widths[i] - columns_of(cell) + kGap;
      }
      out += line + "\n";
    }
  };
  if (!headings_.empty()) write_row(headings_, Style::kBold, Style::kBold);
  for (const Row& row : rows_) write_row(row.cells, row.first, Style::kPlain);
  return out;
}

}  // namespace tracefire::cli
