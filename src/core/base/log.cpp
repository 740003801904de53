// SPDX-License-Identifier: Apache-2.0
#include "core/base/log.h"

#include <unistd.h>

#include <cerrno>
#include <memory>
#include <unordered_set>

#include "core/base/mutex.h"

namespace tracefire {
namespace {

using Sink = std::function<void(LogLevel, const std::string&)>;

struct State {
  Mutex mutex;
  std::shared_ptr<const Sink> sink TF_GUARDED_BY(mutex);
  std::unordered_set<std::string> said TF_GUARDED_BY(mutex);
};

State& state() {
  static State* instance = new State;  // never destroyed: lines are written until the end
  return *instance;
}

const char* level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      return "off";
  }
  return "?";
}

void write_all(const std::string& line) {
  size_t done = 0;
  while (done < line.size()) {
    ssize_t n = ::write(STDERR_FILENO, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // stderr is closed: there is nowhere left to say it
    done += static_cast<size_t>(n);
  }
}

}  // namespace

bool log_enabled(LogLevel level) {
  return level != LogLevel::kOff && level >= settings::log_level();
}

void log_line(LogLevel level, std::string_view text) {
  if (!log_enabled(level)) return;
  std::string line = std::string("tracefire: ") + level_name(level) + ": ";
  for (char c : text) {
    if (c == '\n') {
      line += " | ";
    } else if (static_cast<unsigned char>(c) < 0x20 && c != '\r' && c != '\t') {
      constexpr char kDigits[] = "0123456789abcdef";  // what could steer a terminal is shown
      line += {'\\', 'x', kDigits[c >> 4], kDigits[c & 15]};
    } else if (c != '\r') {
      line += c;
    }
  }
  std::shared_ptr<const Sink> sink;
  {
    MutexLock lock(state().mutex);
    sink = state().sink;
  }
  if (sink) return (*sink)(level, line);
  write_all(line + "\n");
}

bool say_once(std::string_view key, std::string_view text, LogLevel level) {
  {
    MutexLock lock(state().mutex);
    if (!state().said.insert(std::string(key)).second) return false;
  }
  log_line(level, text);
  return true;
}

void set_log_sink(Sink sink) {
  std::shared_ptr<const Sink> next;
  if (sink) next = std::make_shared<const Sink>(std::move(sink));
  MutexLock lock(state().mutex);
  state().sink.swap(next);
}

}  // namespace tracefire
