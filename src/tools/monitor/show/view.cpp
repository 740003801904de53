// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/show/view.h"

#include <algorithm>
#include <cmath>

#include "tools/monitor/show/format.h"
#include "tools/monitor/show/view_parts.h"

namespace tracefire::monitor {
namespace {

constexpr size_t kLeastProcessRows = 3;

Line header(const Snapshot* snapshot, const ViewState& state) {
  Line line;
  line.add("tracefire monitor", Style::kBold);
  if (snapshot == nullptr) return line;
  const std::string dot = state.unicode ? " \u00b7 " : " | ";
  std::string right = clock_text(snapshot->unix_us) + " UTC";
  if (state.interactive) {
    right += dot + (state.paused ? "paused" : print("every %g s", state.interval_seconds));
  }
  // The time comes first, then as much about the machine as there is room for.
  const size_t room = state.width - std::min(state.width, display_width(right) + 2);
  const std::string cuda =
      snapshot->cuda == 0 ? ""
                          : print("CUDA %d.%d", snapshot->cuda / 1000, snapshot->cuda % 1000 / 10);
  const std::string driver = snapshot->driver.empty() ? "" : "driver " + snapshot->driver;
  bool first = true;
  for (const std::string& piece : {clean(snapshot->host), clean(driver), cuda}) {
    const std::string text = (first ? "  " : dot) + piece;
    if (piece.empty() || line.width() + display_width(text) > room) continue;
    line.add(text, first ? Style::kPlain : Style::kDim);
    first = false;
  }
  if (line.width() <= room) {
    line.fill_to(state.width - display_width(right));
    line.add(right, state.paused ? Style::kWarn : Style::kDim);
  }
  return line;
}

std::vector<Line> help_lines() {
  const char* const rows[][2] = {
      {"up, down", "choose a process"},
      {"s", "sort processes by the next column: gpu, memory, sm, cpu, pid, user"},
      {"r", "reverse the order"},
      {"k", "end the chosen process (SIGTERM), after a confirmation"},
      {"K", "kill it (SIGKILL), after a confirmation"},
      {"+, -", "look more or less often"},
      {"space", "pause, go on"},
      {"h, ?", "this help"},
      {"q, Ctrl-C", "quit"},
  };
  std::vector<Line> lines(1);
  lines.emplace_back().add("Keys", Style::kBold);
  for (const auto& row : rows) {
    lines.emplace_back().add("  ").cell(row[0], 12, Style::kAccent).add(row[1]);
  }
  lines.emplace_back();
  lines.emplace_back().add("Grades", Style::kBold);
  lines.emplace_back()
      .add("  ")
      .cell("healthy", 12, Style::kGood)
      .add(print("busy at least %.0f %% of the last minute", health::kBusyHealthy * 100));
  lines.emplace_back().add("  ").cell("fair", 12).add("between low and healthy");
  lines.emplace_back()
      .add("  ")
      .cell("low", 12, Style::kWarn)
      .add(print("busy less than %.0f %% of it; the likely cause stands below the GPU",
                 health::kBusyLow * 100));
  lines.emplace_back()
      .add("  ")
      .cell("idle", 12, Style::kDim)
      .add(print("busy less than %.0f %% of it", health::kIdle * 100));
  lines.emplace_back().add("  ").cell("-", 12).add("could not be read; --json says why");
  return lines;
}

void append(std::vector<Line>* to, std::vector<Line> lines) {
  for (Line& line : lines) to->push_back(std::move(line));
}

std::vector<Line> gpu_lines(const Snapshot& snapshot, const History& history,
                            const ViewState& state, int detail) {
  std::vector<Line> lines;
  lines.push_back(gpu_heading(state));
  for (const Gpu& gpu : snapshot.gpus) {
    const std::vector<Point> points = history.points(history_key(gpu), 3600);
    append(&lines, gpu_block(gpu, points, state, detail));
  }
  return lines;
}

Line footer(const ViewState& state) {
  Line line;
  if (!state.message.empty()) return line.add(state.message, state.message_style);
  const char* const keys[][2] = {
      {"q", "quit"},        {"h", "help"},      {"\u2191\u2193", "choose"}, {"s", "sort"},
      {"k", "end process"}, {"space", "pause"}, {"+-", "interval"},         {"r", "reverse"}};
  for (const auto& key : keys) {
    if (state.read_only && key[0][0] == 'k') continue;
    const bool arrows = key[0][0] != 'q' && static_cast<unsigned char>(key[0][0]) >= 0x80;
    Line item;
    item.add(arrows && !state.unicode ? "up/down" : key[0], Style::kAccent);
    item.add(std::string(" ") + key[1], Style::kDim);
    // A key that has no room is left to the help.
    if (line.width() > 0 && line.width() + 2 + item.width() > state.width) break;
    if (line.width() > 0) line.add("  ");
    line.add(item);
  }
  return line;
}

}  // namespace

const char* sort_name(SortKey key) {
  const char* const names[] = {"gpu", "memory", "sm", "cpu", "pid", "user"};
  return names[static_cast<int>(key)];
}

std::vector<ProcessRow> sorted_processes(const Snapshot& snapshot, SortKey key, bool reverse) {
  std::vector<ProcessRow> rows;
  for (const Gpu& gpu : snapshot.gpus) {
    for (const GpuProcess& process : gpu.processes) rows.push_back({&gpu, &process});
  }
  const auto before = [key](const ProcessRow& a, const ProcessRow& b) {
    switch (key) {
      case SortKey::kGpu:
        return a.gpu->index < b.gpu->index;
      case SortKey::kMemory:
        return a.process->memory_bytes.or_else(-1) > b.process->memory_bytes.or_else(-1);
      case SortKey::kSm:
        return a.process->sm_share.or_else(-1) > b.process->sm_share.or_else(-1);
      case SortKey::kCpu:
        return a.process->host.cores.or_else(-1) > b.process->host.cores.or_else(-1);
      case SortKey::kPid:
        return a.process->pid < b.process->pid;
      case SortKey::kUser:
        return a.process->host.user < b.process->host.user;
    }
    return false;
  };
  std::stable_sort(rows.begin(), rows.end(), before);
  if (reverse) std::reverse(rows.begin(), rows.end());
  return rows;
}

std::vector<Line> draw(const Snapshot* snapshot, const History& history,
                       const std::vector<AlertEvent>& alerts, const ViewState& state) {
  std::vector<Line> lines;
  lines.push_back(header(snapshot, state));
  if (snapshot == nullptr) {
    const bool stuck = state.stuck_seconds > 2;
    lines.emplace_back().add(
        stuck ? print("NVML has not answered for %.0f s", state.stuck_seconds) : "Reading ...",
        stuck ? Style::kBad : Style::kDim);
  } else if (state.stuck_seconds > 5) {
    lines.emplace_back().add(
        print("NVML has not answered for %.0f s; what stands here is old", state.stuck_seconds),
        Style::kBad);
  }
  const size_t rows = state.height;
  if (state.help) {
    append(&lines, help_lines());
  } else if (snapshot != nullptr) {
    if (!snapshot->problem.empty()) {
      for (Line& line : wrapped("No GPU: " + snapshot->problem, state.width, Style::kBad)) {
        lines.push_back(std::move(line));
      }
    }
    const std::vector<ProcessRow> processes =
        sorted_processes(*snapshot, state.sort, state.reverse);
    std::vector<Line> alert_lines;
    for (const AlertEvent& event : alerts) {
      if (alert_lines.size() == 4) break;
      alert_lines.push_back(alert_view(event));
    }
    // As much detail as leaves room for a few processes.
    std::vector<Line> gpus;
    if (!snapshot->gpus.empty()) {
      for (int detail = 3; detail >= 0; --detail) {
        gpus = gpu_lines(*snapshot, history, state, detail);
        const size_t below = 3 + std::min(processes.size() + 1, kLeastProcessRows + 1);
        if (rows == 0 || lines.size() + gpus.size() + alert_lines.size() + below <= rows) break;
      }
      append(&lines, std::move(gpus));
    }
    append(&lines, std::move(alert_lines));
    if (!snapshot->gpus.empty()) {
      const size_t foot = state.interactive ? 1 : 0;
      const size_t used = lines.size() + foot;
      const size_t room = rows == 0 ? 0 : rows > used ? rows - used : 0;
      if (rows == 0 || room >= 2) {
        append(&lines, process_table(processes, *snapshot, state, room));
      }
    }
  }
  if (state.interactive && rows > 0) {
    if (lines.size() > rows - 1) lines.resize(rows - 1);
    while (lines.size() < rows - 1) lines.emplace_back();
    lines.push_back(footer(state));
  }
  return lines;
}

}  // namespace tracefire::monitor
