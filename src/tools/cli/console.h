// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/text/layout.h"

namespace tracefire::cli {

/// The reader of stdout has gone away: the program ends quietly, with kBrokenPipe.
struct BrokenPipe {};

using text::Style;
using text::wrapped;

/// The two streams of a command: data goes to stdout, talk to stderr. Data is kept until flush(),
/// so that a command that fails has printed nothing, or everything up to its last flush().
class Console {
 public:
  /// Looks at the streams, TERM, NO_COLOR and COLUMNS.
  Console();

  /// `when` is auto (a terminal that is not dumb, and no NO_COLOR), always or never.
  void choose_color(std::string_view when);
  /// Columns of the terminal that stdout is; 0 where it is none, so that nothing is shortened.
  int width() const { return width_; }
  /// Colours and width of stdout; on a terminal prose is broken at prose_width().
  text::Look look() const { return {color_[0], terminal_[0] ? prose_width() : 0}; }
  /// Those of stderr.
  text::Look talk_look() const;
  /// Columns to wrap prose at: the terminal's, at most 100; 80 where stdout is none.
  int prose_width() const;

  /// The text as it is to look on stdout.
  std::string styled(Style style, std::string_view text) const;

  void print(std::string_view text) { pending_ += text; }
  /// Writes what was printed. Throws BrokenPipe, or Error (kCannotWrite) with the system's words.
  void flush();
  /// A program that this command was to run has ended: its status is not lost, whatever becomes of
  /// what is still to be printed.
  void keep_status(int status);
  /// The kept status where that is a failure, else `otherwise`: what the command ends with.
  int status_or(int otherwise) const { return kept_status_ != 0 ? kept_status_ : otherwise; }
  /// One line on stderr, at once: `head` in a style, then the text. What could steer a
  /// terminal is shown as text::clean() does.
  void say(std::string_view text, std::string_view head = "", Style style = Style::kPlain) const;
  /// A page on stderr, at once. Its parts from outside have been cleaned: it has styles.
  void print_talk(std::string_view page) const;

 private:
  std::string pending_;
  int kept_status_ = 0;
  int width_ = 0;
  bool terminal_[2] = {false, false};  // stdout, stderr
  bool color_[2] = {false, false};
};

/// text::clean() of at most `limit` bytes.
std::string printable(std::string_view text, size_t limit = 200);

/// Rows under headings, aligned in columns two blanks apart. Cells that do not fit into the
/// console's width are wrapped inside their column, the widest columns first.
class Table {
 public:
  explicit Table(std::vector<std::string> headings) : headings_(std::move(headings)) {}
  void row(std::vector<std::string> cells, Style first = Style::kPlain);
  size_t rows() const { return rows_.size(); }
  /// Ends with a line end. Without headings the first line is the first row.
  std::string text(const Console& console, int indent = 0) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    Style first;
  };
  std::vector<std::string> headings_;
  std::vector<Row> rows_;
};

}  // namespace tracefire::cli
