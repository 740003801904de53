// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/console.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "core/base/status.h"
#include "tools/text/escape.h"

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

int terminal_width(int stream) {
  winsize size{};
  if (::ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int given = columns == nullptr ? 0 : std::atoi(columns);
  return given > 0 ? given : kProseWidth;
}

int prose_of(int columns) { return std::clamp(columns, 20, kWidestProse); }

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

std::string printable(std::string_view text, size_t limit) { return text::clean(text, limit); }

Console::Console() {
  occupy_closed_streams();
  terminal_[0] = ::isatty(STDOUT_FILENO) == 1;
  terminal_[1] = ::isatty(STDERR_FILENO) == 1;
  if (terminal_[0]) width_ = terminal_width(STDOUT_FILENO);
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

int Console::prose_width() const { return width_ == 0 ? kProseWidth : prose_of(width_); }

text::Look Console::talk_look() const {
  return {color_[1], terminal_[1] ? prose_of(terminal_width(STDERR_FILENO)) : 0};
}

std::string Console::styled(Style style, std::string_view text) const {
  return text::styled(style, text, color_[0]);
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

void Console::keep_status(int status) {
  kept_status_ = status;
  ::signal(SIGPIPE, SIG_IGN);  // a reader that went away is seen by write()
}

void Console::say(std::string_view text, std::string_view head, Style style) const {
  write_all(STDERR_FILENO, text::styled(style, head, color_[1]) + text::clean(text) + "\n");
  // Where stderr is closed there is nowhere left to say it.
}

void Console::print_talk(std::string_view page) const { write_all(STDERR_FILENO, page); }

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
    for (size_t i = 0; i < cells.size(); ++i)
      widths[i] = std::max(widths[i], text::display_width(cells[i]));
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
        blanks += widths[i] - text::display_width(cell) + kGap;
      }
      out += line + "\n";
    }
  };
  if (!headings_.empty()) write_row(headings_, Style::kBold, Style::kBold);
  for (const Row& row : rows_) write_row(row.cells, row.first, Style::kPlain);
  return out;
}

}  // namespace tracefire::cli
