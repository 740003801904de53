// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/live/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace tracefire::monitor {
namespace {

// Alternate screen, no cursor, no line wrap; and back, with colours reset.
constexpr char kEnter[] = "\033[?1049h\033[?25l\033[?7l\033[2J";
constexpr char kLeave[] = "\033[0m\033[?7h\033[?25h\033[?1049l";

// What the signal handlers touch: set before they are installed.
termios saved_mode;
std::atomic<bool> active{false};
std::atomic<int> ended_by{0};
std::atomic<bool> resized{false};
int wake[2] = {-1, -1};

void put(const char* text, size_t size) {
  while (size > 0) {
    const ssize_t n = write(STDOUT_FILENO, text, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd p{STDOUT_FILENO, POLLOUT, 0};
      if (poll(&p, 1, 1000) <= 0) return;  // a terminal that takes nothing must not hold us
      continue;
    }
    if (n <= 0) return;
    text += n;
    size -= static_cast<size_t>(n);
  }
}

/// Async-signal-safe.
void leave() {
  if (!active.exchange(false)) return;
  put(kLeave, sizeof kLeave - 1);
  tcsetattr(STDIN_FILENO, TCSANOW, &saved_mode);
}

void enter() {
  termios raw = saved_mode;
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL);
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  active = true;
  put(kEnter, sizeof kEnter - 1);
}

void wake_up() {
  const char byte = 0;
  const int saved = errno;
  if (write(wake[1], &byte, 1) < 0) {
    // The pipe is full: whoever reads it wakes up anyway.
  }
  errno = saved;
}

void on_end(int signal) {
  ended_by = signal;
  wake_up();
}

/// A crash: put the terminal back first, then die of the same signal.
void on_crash(int signal) {
  leave();
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void on_resize(int) {
  resized = true;
  wake_up();
}

void on_stop(int) {
  const int saved = errno;
  leave();
  ::signal(SIGTSTP, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTSTP);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);  // stops here
  struct sigaction action {};
  action.sa_handler = on_stop;
  sigaction(SIGTSTP, &action, nullptr);
  enter();
  resized = true;
  wake_up();
  errno = saved;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction old {};
  // What the parent told us to ignore (nohup) stays ignored.
  if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

constexpr int kEndSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr int kCrashSignals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};

}  // namespace

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    return strcasestr(value, "utf-8") != nullptr || strcasestr(value, "utf8") != nullptr;
  }
  return false;
}

bool Terminal::usable() {
  const char* term = std::getenv("TERM");
  return isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0 && term != nullptr &&
         *term != '\0' && std::strcmp(term, "dumb") != 0;
}

int Terminal::end_signal() { return ended_by.load(); }

Terminal::Terminal(bool color, bool unicode) : color_(color), unicode_(unicode) {
  tcgetattr(STDIN_FILENO, &saved_mode);
  if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) wake[0] = wake[1] = -1;
  for (const int signal : kEndSignals) handle(signal, on_end);
  for (const int signal : kCrashSignals) handle(signal, on_crash);
  handle(SIGWINCH, on_resize);
  handle(SIGTSTP, on_stop);
  ::signal(SIGTTOU, SIG_IGN);
  enter();
  measure();
}

Terminal::~Terminal() {
  leave();
  for (const int signal : kEndSignals) handle(signal, SIG_DFL);
  for (const int signal : kCrashSignals) handle(signal, SIG_DFL);
  handle(SIGWINCH, SIG_DFL);
  handle(SIGTSTP, SIG_DFL);
  for (int& fd : wake) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
}

void Terminal::measure() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    width_ = std::min<size_t>(size.ws_col, 500);
    height_ = std::min<size_t>(size.ws_row, 300);
  }
}

void Terminal::show(const std::vector<Line>& lines) {
  if (resized.exchange(false)) {
    measure();
    redraw_ = true;
  }
  std::string out;
  if (redraw_) {
    out += "\033[0m\033[2J";
    shown_.assign(height_, "");
    redraw_ = false;
  }
  shown_.resize(height_);
  for (size_t i = 0; i < height_; ++i) {
    std::string text = i < lines.size() ? lines[i].text(width_, color_, unicode_) : "";
    if (text == shown_[i]) continue;
    out += "\033[" + std::to_string(i + 1) + ";1H" + text + "\033[0m";
    // After a full line the cursor stands on its last character, which this would erase.
    if (i >= lines.size() || lines[i].width() < width_) out += "\033[K";
    shown_[i] = std::move(text);
  }
  if (!out.empty()) put(out.data(), out.size());
}

KeyPress Terminal::decode() {
  KeyPress press;
  if (input_.empty()) return press;
  const auto take = [&](size_t n) { input_.erase(0, n); };
  if (input_[0] != '\033') {
    press.key = Key::kCharacter;
    press.character = input_[0];
    take(1);
    return press;
  }
  static constexpr struct {
    const char* text;
    Key key;
  } kSequences[] = {
      {"\033[A", Key::kUp},   {"\033OA", Key::kUp},      {"\033[B", Key::kDown},
      {"\033OB", Key::kDown}, {"\033[5~", Key::kPageUp}, {"\033[6~", Key::kPageDown},
      {"\033[H", Key::kHome}, {"\033[F", Key::kEnd},     {"\033[1~", Key::kHome},
      {"\033[4~", Key::kEnd},
  };
  for (const auto& sequence : kSequences) {
    if (input_.rfind(sequence.text, 0) == 0) {
      press.key = sequence.key;
      take(std::strlen(sequence.text));
      return press;
    }
  }
  // A key that is not known: swallow its whole sequence.
  size_t end = 1;
  if (input_.size() > 1 && (input_[1] == '[' || input_[1] == 'O')) {
    end = 2;
    while (end < input_.size() && (input_[end] < '@' || input_[end] > '~')) ++end;
    end = std::min(end + 1, input_.size());
  } else {
    press.key = Key::kEscape;
  }
  take(end);
  return press;
}

KeyPress Terminal::wait(int milliseconds) {
  if (const KeyPress press = decode(); press.key != Key::kNone) return press;
  pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {wake[0], POLLIN, 0}};
  poll(fds, 2, milliseconds);
  char buffer[64];
  while (wake[0] >= 0 && read(wake[0], buffer, sizeof buffer) > 0) {
  }
  if (ended_by != 0) return {Key::kQuit, 0};
  if ((fds[0].revents & POLLIN) != 0) {
    const ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
    if (n == 0) return {Key::kQuit, 0};  // the terminal is gone
    if (n > 0) input_.append(buffer, static_cast<size_t>(n));
  } else if ((fds[0].revents & (POLLHUP | POLLERR)) != 0) {
    return {Key::kQuit, 0};
  }
  return decode();
}

}  // namespace tracefire::monitor
