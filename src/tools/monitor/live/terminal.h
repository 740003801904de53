// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/monitor/show/styled.h"

namespace tracefire::monitor {

enum class Key { kNone, kCharacter, kUp, kDown, kPageUp, kPageDown, kHome, kEnd, kEscape, kQuit };
struct KeyPress {
  Key key = Key::kNone;
  char character = 0;
};

/// The terminal as a screen of lines. While it lives, the alternate screen is shown and keys come
/// one by one; the terminal is put back when it dies, on every signal that ends the process, and
/// while the process is stopped (Ctrl-Z). At most one at a time.
class Terminal {
 public:
  /// stdin and stdout are terminals, and TERM is not "dumb".
  static bool usable();

  Terminal(bool color, bool unicode);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  size_t width() const { return width_; }
  size_t height() const { return height_; }
  /// Writes the lines that differ from what is shown.
  void show(const std::vector<Line>& lines);
  /// Waits for a key, a resize or a signal, at most this long. kQuit: the process is to end.
  KeyPress wait(int milliseconds);
  /// The signal that asked to end, 0 for none.
  static int end_signal();

 private:
  void measure();
  KeyPress decode();

  const bool color_, unicode_;
  size_t width_ = 80, height_ = 24;
  bool redraw_ = true;
  std::vector<std::string> shown_;
  std::string input_;
};

/// LC_ALL, LC_CTYPE or LANG names UTF-8.
bool locale_is_utf8();

}  // namespace tracefire::monitor
