// SPDX-License-Identifier: Apache-2.0
#include "lib/nn/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace tracefire::nn {
namespace {

bool terminal_moves() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && (term == nullptr || std::string_view(term) != "dumb");
}

constexpr int64_t kWidth = 30;

}  // namespace

Progress::Progress(int64_t epochs, bool shown)
    : epochs_(epochs), shown_(shown), moves_(shown && terminal_moves()) {}

Progress::~Progress() {
  if (line_open_) std::fputc('\n', stderr);
}

void Progress::finished(int64_t epoch, const std::string& figures, bool last) {
  if (!shown_) return;
  const int64_t done = epoch + 1;
  last = last || done == epochs_;
  char head[64];
  std::snprintf(head, sizeof head, "epoch %3lld/%lld  ", static_cast<long long>(done),
                static_cast<long long>(epochs_));
  const std::string text = head + figures;
  if (moves_) {
    std::fprintf(stderr, "\r%s\x1b[K%s", fitted(text, done).c_str(), last ? "\n" : "");
    std::fflush(stderr);
    line_open_ = !last;
  } else if (last || done % std::max<int64_t>(epochs_ / 10, 1) == 0) {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
}

/// With the bar before it where the terminal is wide enough, else cut to one line of it.
std::string Progress::fitted(const std::string& text, int64_t done) const {
  const auto full = static_cast<size_t>(kWidth * done / epochs_);
  const std::string bar =
      "[" + std::string(full, '#') + std::string(kWidth - full, ' ') + "] " + text;
  winsize size{};
  const size_t columns =
      ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  if (bar.size() < columns) return bar;
  return text.substr(0, columns - 1);
}

}  // namespace tracefire::nn
