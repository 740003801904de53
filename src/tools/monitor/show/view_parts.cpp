// SPDX-License-Identifier: Apache-2.0
// The process table, alerts, bars and sparklines.
#include "tools/monitor/show/view_parts.h"

#include <algorithm>
#include <cmath>

#include "tools/monitor/show/format.h"

namespace tracefire::monitor {
namespace {

std::string utf8(unsigned code) {  // of U+0800 to U+FFFF
  return {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

struct ProcessColumns {
  size_t mark = 2, pid = 9, user = 12, container = 20, gpu = 6, kind = 9, sm = 6, memory = 11,
         cpu = 7, age = 0;
};
ProcessColumns process_columns(size_t width, const std::vector<ProcessRow>& rows) {
  ProcessColumns c;
  const bool containers = std::any_of(rows.begin(), rows.end(), [](const ProcessRow& row) {
    return !row.process->host.container.empty();
  });
  if (!containers) c.container = 0;
  if (width < 100) {
    c.kind = 0;
    c.user = 9;
    c.container = containers ? 17 : 0;
  }
  if (width >= 140 && containers) c.container = 30;
  if (width >= 110) c.age = 13;
  if (width < 64) c.user = c.container = c.sm = c.cpu = 0;
  return c;
}

std::string gpu_text(const ProcessRow& row) {
  std::string text = std::to_string(row.gpu->index);
  if (row.process->gpu_instance >= 0) text += ":" + std::to_string(row.process->gpu_instance);
  return text;
}

Line process_heading(const ProcessColumns& c, const ViewState& state) {
  const auto mark = [&](const char* name, SortKey key) {
    const char* arrow = state.unicode ? "\u25be" : "*";
    return std::string(name) + (state.interactive && state.sort == key ? arrow : "");
  };
  Line line;
  line.add(std::string(c.mark, ' '));
  line.cell(mark("PID", SortKey::kPid), c.pid - 1, Style::kDim, true).add(" ");
  if (c.user > 0) line.cell(mark("USER", SortKey::kUser), c.user, Style::kDim);
  if (c.container > 0) line.cell("CONTAINER", c.container, Style::kDim);
  line.cell(mark("GPU", SortKey::kGpu), c.gpu, Style::kDim);
  if (c.kind > 0) line.cell("KIND", c.kind, Style::kDim);
  if (c.sm > 0) line.cell(mark("SM", SortKey::kSm), c.sm, Style::kDim, true);
  line.cell(mark("MEMORY", SortKey::kMemory), c.memory, Style::kDim, true);
  if (c.cpu > 0) line.cell(mark("CPU", SortKey::kCpu), c.cpu, Style::kDim, true);
  if (c.age > 0) line.cell("RUNNING", c.age, Style::kDim, true);
  line.add("  COMMAND", Style::kDim);
  return line;
}

Line process_row(const ProcessRow& row, const ProcessColumns& c, const ViewState& state,
                 bool selected) {
  const GpuProcess& p = *row.process;
  Line line;
  line.cell(selected ? (state.unicode ? "\u25b8" : ">") : "", c.mark, Style::kAccent);
  line.cell(std::to_string(p.pid), c.pid - 1, Style::kPlain, true).add(" ");
  if (c.user > 0) line.cell(p.host.user.empty() ? "-" : p.host.user, c.user - 1).add(" ");
  if (c.container > 0) {
    line.cell(p.host.container.empty() ? "-" : p.host.container, c.container - 1).add(" ");
  }
  line.cell(gpu_text(row), c.gpu);
  if (c.kind > 0) line.cell(process_kind_name(p.kind), c.kind);
  if (c.sm > 0) {
    line.cell(p.sm_share.ok() ? print("%.0f%%", p.sm_share.value * 100) : "-", c.sm, Style::kPlain,
              true);
  }
  line.cell(p.memory_bytes.ok() ? bytes_text(p.memory_bytes.value) : "-", c.memory, Style::kPlain,
            true);
  if (c.cpu > 0)
    line.cell(p.host.cores.ok() ? print("%.0f%%", p.host.cores.value * 100) : "-", c.cpu,
              Style::kPlain, true);
  if (c.age > 0) {
    const Reading& age = p.host.age_seconds;
    line.cell(age.ok() ? span_text(age.value) : "-", c.age, Style::kPlain, true);
  }
  std::string command = p.host.command.empty() ? p.host.name : p.host.command;
  if (p.host.gone) command = "(ended, or outside of this container)";
  line.add("  ").add(command, p.host.gone ? Style::kDim : Style::kPlain);
  if (selected) line.fill_to(state.width);
  if (selected) line.restyle(Style::kSelected);
  return line;
}

}  // namespace

std::string bar(double ratio, size_t width, bool unicode) {
  const double clamped = std::clamp(ratio, 0.0, 1.0);
  std::string text;
  if (!unicode) {
    const auto full = static_cast<size_t>(std::lround(clamped * static_cast<double>(width)));
    return std::string(full, '#') + std::string(width - full, '.');
  }
  const auto eighths = static_cast<size_t>(std::lround(clamped * static_cast<double>(width) * 8));
  for (size_t i = 0; i < width; ++i) {
    const size_t left = eighths > i * 8 ? eighths - i * 8 : 0;
    if (left >= 8) {
      text += utf8(0x2588);
    } else if (left == 0) {
      text += utf8(0x2591);  // light shade: the part that is free
    } else {
      text += utf8(0x2590 - static_cast<unsigned>(left));
    }
  }
  return text;
}

std::string sparkline(const std::vector<float>& values, size_t width, bool unicode) {
  static constexpr char kAscii[] = "_.-:=+*#";
  std::string text;
  const size_t count = values.size();
  const size_t columns = std::min(width, count);
  text.append(width - columns, ' ');
  for (size_t column = 0; column < columns; ++column) {
    // Columns share out the points evenly; each shows its largest value.
    const size_t begin = column * count / columns;
    const size_t end = std::max(begin + 1, (column + 1) * count / columns);
    float most = -1;
    for (size_t i = begin; i < end; ++i) {
      if (!std::isnan(values[i])) most = std::max(most, values[i]);
    }
    if (most < 0) {
      text += ' ';
      continue;
    }
    const int level = std::clamp(static_cast<int>(most * 8), 0, 7);
    if (unicode) {
      text += utf8(0x2581 + static_cast<unsigned>(level));
    } else {
      text += kAscii[level];
    }
  }
  return text;
}

std::vector<Line> process_table(const std::vector<ProcessRow>& rows, const Snapshot& snapshot,
                                const ViewState& state, size_t room) {
  std::vector<Line> lines;
  if (rows.empty()) {
    std::string words = "No process uses a GPU.";
    for (const Gpu& gpu : snapshot.gpus) {
      if (gpu.process_code == Reading::kOk) continue;
      words = std::string("Processes could not be listed: ") +
              Reading::missing(gpu.process_code).why() + ".";
    }
    lines.emplace_back();
    lines.emplace_back().add(words, Style::kDim);
    return lines;
  }
  const ProcessColumns c = process_columns(state.width, rows);
  size_t fit = rows.size();
  if (room > 0) {
    if (room > 3) lines.emplace_back();
    fit = std::min(rows.size(), room - lines.size() - 1);
  } else {
    lines.emplace_back();
  }
  lines.push_back(process_heading(c, state));
  const bool cut = fit < rows.size();
  if (cut && fit > 1) --fit;  // the last line says how many there are
  const size_t selected = std::min(state.selected, rows.size() - 1);
  const size_t first = selected < fit ? 0 : selected - fit + 1;
  for (size_t i = first; i < std::min(rows.size(), first + fit); ++i) {
    lines.push_back(process_row(rows[i], c, state, state.interactive && i == selected));
  }
  if (cut) {
    lines.emplace_back().add(print("  %zu to %zu of %zu processes", first + 1,
                                   std::min(rows.size(), first + fit), rows.size()),
                             Style::kDim);
  }
  return lines;
}

Line alert_view(const AlertEvent& event) {
  const health::AlertRow& row = health::kAlerts[static_cast<int>(event.alert)];
  const bool critical = std::string_view(row.severity) == "critical";
  Line line;
  line.add(std::string(critical ? "!! " : "! ") + row.name, critical ? Style::kBad : Style::kWarn);
  line.add(print("  GPU %d: ", event.gpu)).add(event.text);
  return line;
}

std::vector<Line> wrapped(const std::string& text, size_t width, Style style) {
  std::vector<Line> lines;
  std::string rest = clean(text);
  while (!rest.empty() && lines.size() < 12) {
    size_t end = std::min(rest.size(), std::max<size_t>(width, 20));
    if (end < rest.size()) {
      const size_t blank = rest.rfind(' ', end);
      if (blank != std::string::npos && blank > 0) end = blank;
    }
    lines.emplace_back().add(rest.substr(0, end), style);
    const size_t next = rest.find_first_not_of(' ', end);
    rest.erase(0, next == std::string::npos ? rest.size() : next);
  }
  return lines;
}

}  // namespace tracefire::monitor
