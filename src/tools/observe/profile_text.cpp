// SPDX-License-Identifier: Apache-2.0
// A profile as tables for a terminal.
#include <algorithm>

#include "tools/report/escape.h"
#include "tools/report/page.h"
#include "tools/text/escape.h"
#include "tools/text/layout.h"
#include "tracefire/profiler.h"

namespace tracefire::profiler {
namespace {

using report::bytes_text;
using report::duration_text;
using report::formatted;
using report::printable;

constexpr size_t kShownRows = 20;

/// Columns as wide as their longest text; numbers are set to the right. Where a row has no room,
/// its last texts, then its last numbers, go to lines of their own below it.
class Table {
 public:
  explicit Table(std::vector<report::Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string str(size_t width) const {
    std::vector<std::string> names;
    for (const report::Column& column : columns_) names.emplace_back(column.name);
    std::vector<size_t> widths(columns_.size());
    for (size_t i = 0; i < columns_.size(); ++i) {
      widths[i] = text::display_width(names[i]);
      for (const auto& row : rows_) widths[i] = std::max(widths[i], text::display_width(row[i]));
    }
    const std::vector<bool> below = moved(&widths, width);
    std::string out = line(names, widths, below);
    std::string heads;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (below[i] && !columns_[i].number) heads += (heads.empty() ? "" : "; ") + names[i];
    }
    if (!heads.empty()) out += text::paragraph(heads, static_cast<int>(width), kBelow);
    for (const auto& row : rows_) {
      out += line(row, widths, below);
      std::string rest;
      for (size_t i = 0; i < columns_.size(); ++i) {
        if (!below[i] || row[i].empty()) continue;
        rest += rest.empty() ? "" : "; ";
        if (columns_[i].number) rest += names[i] + " ";
        rest += row[i];
      }
      if (!rest.empty()) out += text::paragraph(rest, static_cast<int>(width), kBelow);
    }
    return out;
  }

 private:
  static constexpr char kBelow[] = "        ";
  static constexpr size_t kLeastText = 12;  // columns that the first text keeps

  /// Which columns go below, and the width that is left for the first text, which stays.
  std::vector<bool> moved(std::vector<size_t>* widths, size_t width) const {
    std::vector<bool> below(columns_.size(), false);
    size_t first = columns_.size();
    for (size_t i = columns_.size(); i-- > 0;) {
      if (!columns_[i].number) first = i;
    }
    const auto used = [&](size_t of_first) {
      size_t sum = 0;
      for (size_t i = 0; i < columns_.size(); ++i) {
        if (!below[i]) sum += (i == first ? of_first : (*widths)[i]) + 2;
      }
      return sum < 2 ? 0 : sum - 2;
    };
    if (first == columns_.size() || used((*widths)[first]) <= width) return below;
    for (size_t i = first + 1; i < columns_.size(); ++i) below[i] = !columns_[i].number;
    const size_t least = std::min((*widths)[first], kLeastText);
    for (size_t i = columns_.size(); i-- > 1 && used(least) > width;) {
      if (columns_[i].number) below[i] = true;
    }
    const size_t others = used(0);
    (*widths)[first] = std::min((*widths)[first], others < width ? width - others : least);
    return below;
  }

  /// A row's line, and those that its first text goes on in.
  std::string line(const std::vector<std::string>& row, const std::vector<size_t>& widths,
                   const std::vector<bool>& below) const {
    std::string out;
    std::vector<std::string> more;
    size_t more_at = 0, at = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      if (below[i]) continue;
      if (at > 0) {
        out += "  ";
        at += 2;
      }
      std::string cell = row[i];
      if (text::display_width(cell) > widths[i]) {
        more = text::wrapped(cell, static_cast<int>(widths[i]));
        more_at = at;
        cell = more.front();
      }
      const std::string room(widths[i] - std::min(widths[i], text::display_width(cell)), ' ');
      out += columns_[i].number ? room + cell : cell + room;
      at += widths[i];
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
    for (size_t i = 1; i < more.size(); ++i) out += std::string(more_at, ' ') + more[i] + "\n";
    return out;
  }

  std::vector<report::Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::vector<std::string> times(const Durations& d) {
  if (d.p50_us == 0) return {duration_text(d.mean_us), "", ""};  // CUPTI's sums have no quantiles
  return {duration_text(d.mean_us), duration_text(d.p50_us), duration_text(d.p99_us)};
}

void append(std::vector<std::string>* row, const std::vector<std::string>& cells) {
  row->insert(row->end(), cells.begin(), cells.end());
}

std::string rows_text(const std::vector<Profile::Row>& rows, bool with_op, size_t width) {
  std::vector<report::Column> columns = {{"share", true}, {"total", true}, {"runs", true},
                                         {"mean", true},  {"p50", true},   {"p99", true}};
  if (with_op) columns.push_back({"operation"});
  for (const char* name : {"kernel", "device"}) columns.push_back({name});
  columns.push_back(with_op ? report::Column{"from"} : report::Column{"library"});
  columns.push_back({"time"});
  Table table(columns);
  for (size_t i = 0; i < std::min(rows.size(), kShownRows); ++i) {
    const Profile::Row& row = rows[i];
    const bool timed = row.source != "none";
    std::vector<std::string> cells = {timed ? formatted("%.1f %%", 100 * row.share) : "",
                                      timed ? duration_text(row.time.total_us) : "",
                                      std::to_string(row.runs)};
    append(&cells, timed ? times(row.time) : std::vector<std::string>(3));
    if (with_op) {
      cells.push_back(printable(row.name.empty() ? row.op : row.op + " (" + row.name + ")", 60));
    }
    append(&cells, {printable(row.kernel, 60), row.device});
    cells.push_back(printable(with_op ? row.location : row.library, 60));
    cells.push_back(row.source);
    table.add(std::move(cells));
  }
  std::string out = table.str(width);
  if (rows.size() > kShownRows) {
    out += formatted("%zu more are in the JSON and HTML reports.\n", rows.size() - kShownRows);
  }
  return out;
}

std::string spans_text(const Profile& p, size_t width) {
  Table table({{"total", true},
               {"count", true},
               {"mean", true},
               {"p50", true},
               {"p99", true},
               {"between", true},
               {"kind"},
               {"name"}});
  for (size_t i = 0; i < std::min(p.spans.size(), kShownRows); ++i) {
    const Profile::Span& span = p.spans[i];
    std::vector<std::string> cells = {duration_text(span.time.total_us),
                                      std::to_string(span.time.count)};
    append(&cells, times(span.time));
    cells.push_back(span.between.count > 0 ? duration_text(span.between.mean_us) : "");
    append(&cells, {span.kind, printable(span.name, 60)});
    table.add(std::move(cells));
  }
  return table.str(width);
}

std::string programs_text(const Profile& p, size_t width) {
  Table table({{"host", true},
               {"executions", true},
               {"mean", true},
               {"records", true},
               {"replays", true},
               {"program"}});
  for (size_t i = 0; i < std::min(p.programs.size(), kShownRows); ++i) {
    const Profile::Program& program = p.programs[i];
    const double mean =
        program.host_us / static_cast<double>(std::max<uint64_t>(program.executions, 1));
    table.add({duration_text(program.host_us), std::to_string(program.executions),
               duration_text(mean), std::to_string(program.records),
               std::to_string(program.graph_launches),
               program.name.empty() ? "(eager)" : printable(program.name, 60)});
  }
  return table.str(width);
}

std::string memory_text(const Profile& p, int columns) {
  std::string out;
  for (const Profile::Memory& memory : p.memory) {
    std::string line = memory.device + ": peak " + bytes_text(static_cast<double>(memory.peak)) +
                       " after " + duration_text(memory.peak_at_us) + ", held by ";
    for (size_t i = 0; i < std::min<size_t>(memory.holders.size(), 5); ++i) {
      line += (i == 0 ? "" : ", ") + printable(memory.holders[i].first, 60) + " " +
              bytes_text(static_cast<double>(memory.holders[i].second));
    }
    out += text::paragraph(line, columns, "", 2);
  }
  return out;
}

}  // namespace

std::string Profile::str(int columns) const {
  columns = std::max(columns, 40);
  const auto width = static_cast<size_t>(columns);
  const std::string head = "profile of " + duration_text(wall_us) + ", process " +
                           std::to_string(pid) + (command.empty() ? "" : ": ");
  std::string out = text::paragraph(
      head + (command.empty() ? "" : printable(report::redacted(command), 200)), columns, "", 2);
  if (!operations.empty()) out += "\noperations\n" + rows_text(operations, true, width);
  if (!kernels.empty()) out += "\nkernels\n" + rows_text(kernels, false, width);
  if (!spans.empty()) out += "\nsteps, input and annotations\n" + spans_text(*this, width);
  if (!programs.empty()) out += "\nprograms\n" + programs_text(*this, width);
  if (!memory.empty()) out += "\nmemory\n" + memory_text(*this, columns);
  const double active = std::max(active_us, 1e-9);
  std::string times = formatted("input %s (%.1f %% of the %s from the first record to the last), ",
                                duration_text(input_us).c_str(), 100 * input_us / active,
                                duration_text(active_us).c_str());
  times += formatted("between steps besides %s (%.1f %%); ", duration_text(between_us).c_str(),
                     100 * between_us / active);
  times += formatted("%llu waits for a device, %s", static_cast<unsigned long long>(waits),
                     duration_text(wait_us).c_str());
  out += "\n" + text::paragraph(times, columns);
  for (const std::string& note : notes) {
    out += text::paragraph(printable(note), columns, "note: ");
  }
  return out;
}

}  // namespace tracefire::profiler
