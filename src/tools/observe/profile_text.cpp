// SPDX-License-Identifier: Apache-2.0
// A profile as tables for a terminal.
#include <algorithm>

#include "tools/report/escape.h"
#include "tools/report/page.h"
#include "tools/text/escape.h"
#include "tracefire/profiler.h"

namespace tracefire::profiler {
namespace {

using report::bytes_text;
using report::duration_text;
using report::formatted;
using report::printable;

constexpr size_t kShownRows = 20;

/// Columns as wide as their longest text; numbers are set to the right.
class Table {
 public:
  explicit Table(std::vector<report::Column> columns) : columns_(std::move(columns)) {
    std::vector<std::string> names;
    for (const report::Column& column : columns_) names.emplace_back(column.name);
    rows_.push_back(std::move(names));
  }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string str() const {
    std::vector<size_t> widths(columns_.size());
    for (const auto& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i)
        widths[i] = std::max(widths[i], text::display_width(row[i]));
    }
    std::string out;
    for (const auto& row : rows_) {
      std::string line;
      for (size_t i = 0; i < row.size(); ++i) {
        const std::string room(widths[i] - text::display_width(row[i]), ' ');
        line += (i == 0 ? "" : "  ") + (columns_[i].number ? room + row[i] : row[i] + room);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    return out;
  }

 private:
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

std::string rows_text(const std::vector<Profile::Row>& rows, bool with_op) {
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
  std::string out = table.str();
  if (rows.size() > kShownRows) {
    out += formatted("%zu more are in the JSON and HTML reports.\n", rows.size() - kShownRows);
  }
  return out;
}

std::string spans_text(const Profile& p) {
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
  return table.str();
}

std::string programs_text(const Profile& p) {
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
  return table.str();
}

std::string memory_text(const Profile& p) {
  std::string out;
  for (const Profile::Memory& memory : p.memory) {
    out += memory.device + ": peak " + bytes_text(static_cast<double>(memory.peak)) + " after " +
           duration_text(memory.peak_at_us) + ", held by ";
    for (size_t i = 0; i < std::min<size_t>(memory.holders.size(), 5); ++i) {
      out += (i == 0 ? "" : ", ") + printable(memory.holders[i].first, 60) + " " +
             bytes_text(static_cast<double>(memory.holders[i].second));
    }
    out += "\n";
  }
  return out;
}

}  // namespace

std::string Profile::str() const {
  std::string out = "profile of " + duration_text(wall_us) + ", process " + std::to_string(pid) +
                    (command.empty() ? "" : ": " + printable(report::redacted(command), 200)) +
                    "\n";
  if (!operations.empty()) out += "\noperations\n" + rows_text(operations, true);
  if (!kernels.empty()) out += "\nkernels\n" + rows_text(kernels, false);
  if (!spans.empty()) out += "\nsteps, input and annotations\n" + spans_text(*this);
  if (!programs.empty()) out += "\nprograms\n" + programs_text(*this);
  if (!memory.empty()) out += "\nmemory\n" + memory_text(*this);
  const double active = std::max(active_us, 1e-9);
  out += formatted("\ninput %s (%.1f %% of the %s from the first record to the last), ",
                   duration_text(input_us).c_str(), 100 * input_us / active,
                   duration_text(active_us).c_str());
  out += formatted("between steps besides %s (%.1f %%); ", duration_text(between_us).c_str(),
                   100 * between_us / active);
  out += formatted("%llu waits for a device, %s\n", static_cast<unsigned long long>(waits),
                   duration_text(wait_us).c_str());
  for (const std::string& note : notes) out += "note: " + printable(note) + "\n";
  return out;
}

}  // namespace tracefire::profiler
