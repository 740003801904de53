// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/live/live.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/monitor/live/terminal.h"
#include "tools/monitor/sample/process_info.h"
#include "tools/monitor/show/format.h"

namespace tracefire::monitor {
namespace {

constexpr int kTickMilliseconds = 100;
constexpr int64_t kMessageTicks = 40;

/// What a confirmation asks about.
struct Pending {
  unsigned pid = 0;
  int64_t started = 0;
  int signal = 0;
};

struct Session {
  const Options& options;
  Sampler& sampler;
  ViewState view;
  std::optional<Pending> pending;
  std::shared_ptr<const Snapshot> shown;
  int64_t message_ticks = 0;
  unsigned selected_pid = 0;
  int selected_gpu = -1;
  bool quit = false;

  void say(const std::string& text, Style style) {
    view.message = text;
    view.message_style = style;
    message_ticks = kMessageTicks;
  }
};

std::vector<ProcessRow> rows_of(const Session& s) {
  if (s.shown == nullptr) return {};
  return sorted_processes(*s.shown, s.view.sort, s.view.reverse);
}

/// The choice stays with its process when the order changes.
void follow_selection(Session* s) {
  const std::vector<ProcessRow> rows = rows_of(*s);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].process->pid == s->selected_pid && rows[i].gpu->index == s->selected_gpu) {
      s->view.selected = i;
      return;
    }
  }
  s->view.selected = rows.empty() ? 0 : std::min(s->view.selected, rows.size() - 1);
}

void select(Session* s, long by) {
  const std::vector<ProcessRow> rows = rows_of(*s);
  if (rows.empty()) return;
  const long last = static_cast<long>(rows.size()) - 1;
  s->view.selected =
      static_cast<size_t>(std::clamp(static_cast<long>(s->view.selected) + by, 0L, last));
  s->selected_pid = rows[s->view.selected].process->pid;
  s->selected_gpu = rows[s->view.selected].gpu->index;
}

void ask_to_end(Session* s, int signal) {
  if (s->options.read_only)
    return s->say("Ending processes is switched off (--read-only).", Style::kWarn);
  const std::vector<ProcessRow> rows = rows_of(*s);
  if (rows.empty()) return s->say("There is no process to end.", Style::kWarn);
  const GpuProcess& p = *rows[std::min(s->view.selected, rows.size() - 1)].process;
  if (p.host.gone) {
    return s->say("That process has ended, or is outside of this container.", Style::kWarn);
  }
  s->pending = Pending{p.pid, p.host.started, signal};
  s->view.message = print("Send %s to %u", signal == SIGKILL ? "SIGKILL" : "SIGTERM", p.pid) +
                    " (" + p.host.name + (p.host.user.empty() ? "" : " of " + p.host.user) +
                    ")? y ends it, any other key does not.";
  s->view.message_style = Style::kBad;
}

void confirm(Session* s, const KeyPress& press) {
  const Pending pending = *s->pending;
  s->pending.reset();
  s->view.message.clear();
  if (press.key != Key::kCharacter || press.character != 'y')
    return s->say("Nothing was sent.", Style::kDim);
  const std::string problem = signal_process(pending.pid, pending.started, pending.signal);
  if (problem.empty()) {
    s->say(print("Sent to %u.", pending.pid), Style::kGood);
  } else {
    s->say(print("%u could not be ended: ", pending.pid) + problem, Style::kBad);
  }
}

void change_interval(Session* s, bool shorter) {
  static constexpr int kSteps[] = {100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000};
  const auto now = static_cast<int>(s->sampler.interval().count());
  int next = now;
  if (shorter) {
    for (const int step : kSteps) {
      if (step < now) next = step;
    }
  } else {
    for (auto it = std::rbegin(kSteps); it != std::rend(kSteps); ++it) {
      if (*it > now) next = *it;
    }
  }
  s->sampler.set_interval(std::chrono::milliseconds(next));
  s->view.interval_seconds = next / 1000.0;
}

void on_character(Session* s, char c) {
  switch (c) {
    case 'q':
      s->quit = true;
      return;
    case 'h':
    case '?':
      s->view.help = !s->view.help;
      return;
    case 's':
      s->view.sort = static_cast<SortKey>((static_cast<int>(s->view.sort) + 1) % 6);
      s->say(std::string("Sorted by ") + sort_name(s->view.sort) + ".", Style::kDim);
      return;
    case 'r':
      s->view.reverse = !s->view.reverse;
      return;
    case 'k':
      return ask_to_end(s, SIGTERM);
    case 'K':
      return ask_to_end(s, SIGKILL);
    case ' ':
      s->view.paused = !s->view.paused;
      return;
    case '+':
    case '=':
      return change_interval(s, true);
    case '-':
      return change_interval(s, false);
    default:
      return;
  }
}

void on_key(Session* s, const KeyPress& press) {
  if (press.key == Key::kNone) return;  // nobody pressed anything: no answer to a question either
  if (press.key == Key::kQuit) {
    s->quit = true;
    return;
  }
  if (s->pending) return confirm(s, press);
  switch (press.key) {
    case Key::kCharacter:
      return on_character(s, press.character);
    case Key::kUp:
      return select(s, -1);
    case Key::kDown:
      return select(s, 1);
    case Key::kPageUp:
      return select(s, -10);
    case Key::kPageDown:
      return select(s, 10);
    case Key::kHome:
      return select(s, -1'000'000);
    case Key::kEnd:
      return select(s, 1'000'000);
    case Key::kEscape:
      s->view.help = false;
      return;
    default:
      return;
  }
}

}  // namespace

std::string signal_process(unsigned pid, int64_t started, int signal) {
  if (pid <= 1) return "it is not a process to end";
  // The descriptor holds on to the process: its number cannot go to another one in between.
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
  if (fd < 0 && errno != ENOSYS) return std::strerror(errno);
  ProcessReader reader("");
  reader.begin_sample();
  const HostProcess now = reader.read(pid);
  std::string problem;
  if (now.gone || now.started != started) {
    problem = "it has ended";
  } else if (fd >= 0 ? syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0) != 0
                     : kill(static_cast<pid_t>(pid), signal) != 0) {
    problem = std::strerror(errno);
  }
  if (fd >= 0) close(fd);
  return problem;
}

int run_live(const Options& options, bool color, Sampler& sampler, History& history,
             const std::function<std::optional<std::vector<AlertEvent>>(const Snapshot&)>& each) {
  Session s{options, sampler, {}, {}, {}, 0, 0, -1, false};
  s.view.interactive = true;
  s.view.read_only = options.read_only;
  s.view.unicode = locale_is_utf8();
  s.view.interval_seconds = static_cast<double>(options.every.count()) / 1000.0;
  const auto begin = std::chrono::steady_clock::now();
  uint64_t samples = 0;
  std::vector<AlertEvent> alerts;
  {
    Terminal terminal(color, s.view.unicode);
    uint64_t sequence = 0;
    while (!s.quit) {
      const std::shared_ptr<const Snapshot> latest = history.latest();
      if (latest != nullptr && latest->sequence != sequence) {
        sequence = latest->sequence;
        ++samples;
        std::optional<std::vector<AlertEvent>> found = each(*latest);
        if (!found) break;
        alerts = std::move(*found);
        if (!s.view.paused) s.shown = latest;
        follow_selection(&s);
      }
      s.view.width = terminal.width();
      s.view.height = terminal.height();
      s.view.stuck_seconds = sampler.stuck_seconds();
      if (!s.pending && s.message_ticks > 0 && --s.message_ticks == 0) s.view.message.clear();
      terminal.show(draw(s.shown.get(), history, alerts, s.view));
      on_key(&s, terminal.wait(kTickMilliseconds));
      if (options.duration && std::chrono::steady_clock::now() - begin >= *options.duration) break;
      if (options.count && samples >= *options.count) break;
    }
  }
  const int signal = Terminal::end_signal();
  return signal == 0 || signal == SIGINT ? 0 : 128 + signal;
}

}  // namespace tracefire::monitor
