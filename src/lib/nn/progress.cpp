// SPDX-License-Identifier: Apache-2.0
#include "lib/nn/progress.h"

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

void Progress::finished(int64_t epoch, const std::string& figures) {
  if (!shown_) return;
  const int64_t done = epoch + 1;
  char head[64];
  std::snprintf(head, sizeof head, "epoch %3lld/%lld", static_cast<long long>(done),
                static_cast<long long>(epochs_));
  if (moves_) {
    const std::string bar(static_cast<size_t>(kWidth * done / epochs_), '#');
    std::fprintf(stderr, "\r[%-30s] %s  %s\x1b[K", bar.c_str(), head, figures.c_str());
    line_open_ = done < epochs_;
    if (!line_open_) std::fputc('\n', stderr);
    std::fflush(stderr);
  } else if (done % std::max<int64_t>(epochs_ / 10, 1) == 0) {
    std::fprintf(stderr, "%s  %s\n", head, figures.c_str());
  }
}

}  // namespace tracefire::nn
