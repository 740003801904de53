// SPDX-License-Identifier: Apache-2.0
// A profile as files: HTML, TensorBoard's XSpace, a folder of everything.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "core/base/path.h"
#include "tools/observe/profile_html.h"
#include "tools/report/escape.h"
#include "tools/report/page.h"
#include "tools/report/xspace.h"
#include "tracefire/profiler.h"

namespace tracefire::profiler {
namespace {

using report::duration_text;
using report::formatted;

constexpr size_t kShownRows = 200;

std::vector<std::string> times(const Profile::Row& row) {
  if (row.source == "none") return {"", "", std::to_string(row.runs), "", "", ""};
  const bool quantiles = row.time.p50_us > 0;  // CUPTI's sums have none
  return {formatted("%.1f %%", 100 * row.share),
          duration_text(row.time.total_us),
          std::to_string(row.runs),
          duration_text(row.time.mean_us),
          quantiles ? duration_text(row.time.p50_us) : "",
          quantiles ? duration_text(row.time.p99_us) : ""};
}

const std::vector<report::Column> kTimes = {{"share", true}, {"total", true}, {"runs", true},
                                            {"mean", true},  {"p50", true},   {"p99", true}};

std::string operation_table(const Profile& p) {
  std::vector<report::Column> columns = kTimes;
  for (const char* name : {"operation", "layer", "kernel", "device", "from", "time"}) {
    columns.push_back({name});
  }
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < std::min(p.operations.size(), kShownRows); ++i) {
    const Profile::Row& row = p.operations[i];
    std::vector<std::string> cells = times(row);
    for (const std::string& text :
         {row.op, row.name, row.kernel, row.device, row.location, row.source}) {
      cells.push_back(text);
    }
    rows.push_back(std::move(cells));
  }
  return report::table(columns, rows);
}

std::string kernel_table(const Profile& p) {
  std::vector<report::Column> columns = kTimes;
  for (const char* name : {"kernel", "device", "library", "device kernels", "time"}) {
    columns.push_back({name});
  }
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < std::min(p.kernels.size(), kShownRows); ++i) {
    const Profile::Row& row = p.kernels[i];
    std::vector<std::string> cells = times(row);
    std::string symbols;
    for (const std::string& symbol : row.symbols) symbols += (symbols.empty() ? "" : ", ") + symbol;
    for (const std::string& text : {row.kernel, row.device, row.library, symbols, row.source}) {
      cells.push_back(text);
    }
    rows.push_back(std::move(cells));
  }
  return report::table(columns, rows);
}

std::string step_tables(const Profile& p) {
  std::vector<std::vector<std::string>> rows;
  for (const Profile::Span& s : p.spans) {
    rows.push_back({s.name, s.kind, std::to_string(s.time.count), duration_text(s.time.total_us),
                    duration_text(s.time.mean_us), duration_text(s.time.p50_us),
                    duration_text(s.time.p99_us),
                    s.between.count > 0 ? duration_text(s.between.mean_us) : ""});
  }
  std::string out;
  if (!rows.empty()) {
    out += "<h2>Steps, input and annotations</h2>" + report::table({{"name"},
                                                                    {"kind"},
                                                                    {"count", true},
                                                                    {"total", true},
                                                                    {"mean", true},
                                                                    {"p50", true},
                                                                    {"p99", true},
                                                                    {"mean gap before", true}},
                                                                   rows);
  }
  rows.clear();
  for (const Profile::Program& r : p.programs) {
    rows.push_back(
        {r.name.empty() ? "(eager)" : r.name, std::to_string(r.executions),
         std::to_string(r.records), std::to_string(r.graph_launches), duration_text(r.host_us),
         duration_text(r.host_us / static_cast<double>(std::max<uint64_t>(r.executions, 1)))});
  }
  if (!rows.empty()) {
    out += "<h2>Programs</h2>" + report::table({{"program"},
                                                {"executions", true},
                                                {"records", true},
                                                {"replays", true},
                                                {"host time", true},
                                                {"an execution", true}},
                                               rows);
  }
  return out;
}

std::string memory_curves(const Profile& p) {
  std::string out;
  for (const Profile::Memory& m : p.memory) {
    std::vector<report::CurvePoint> points;
    for (const Profile::MemoryPoint& point : m.points) {
      points.push_back({point.at_us, static_cast<double>(point.bytes)});
    }
    const std::string peak = report::bytes_text(static_cast<double>(m.peak));
    out += "<h2>Memory of " + report::html_text(m.device) + "</h2><p>Peak " + peak + " after " +
           duration_text(m.peak_at_us) + ".</p>" +
           report::curve("bytes in use over time", points, peak,
                         points.empty() ? "" : duration_text(points.front().x),
                         points.empty() ? "" : duration_text(points.back().x));
    std::vector<std::vector<std::string>> rows;
    for (const auto& [what, bytes] : m.holders) {
      rows.push_back({what, report::bytes_text(static_cast<double>(bytes))});
    }
    out += report::table({{"held at the peak by"}, {"bytes", true}}, rows);
  }
  return out;
}

std::string lanes(const Profile& p) {
  const std::pair<const char*, const char*> kinds[] = {
      {"step", "#0969da"}, {"input", "#bf8700"},   {"annotation", "#57606a"},
      {"wait", "#cf222e"}, {"program", "#1a7f37"}, {"operation", "#8250df"}};
  std::vector<report::Lane> out;
  for (const auto& [kind, colour] : kinds) {
    report::Lane lane{kind, colour, {}};
    for (const Profile::Slice& s : p.slices) {
      if (s.kind != kind) continue;
      lane.slices.push_back({s.start_us, s.span_us, s.name + ", " + duration_text(s.span_us)});
    }
    if (!lane.slices.empty()) out.push_back(std::move(lane));
  }
  if (out.empty()) return "";
  double from = p.wall_us, to = 0;  // what lies before and after says nothing
  for (const Profile::Slice& s : p.slices) {
    from = std::min(from, s.start_us);
    to = std::max(to, s.start_us + s.span_us);
  }
  return "<h2>Time line</h2>" +
         report::time_line("host time line", out, from, to, duration_text(from), duration_text(to));
}

}  // namespace

std::string Profile::html() const {
  const double active = std::max(active_us, 1e-9);
  std::string out =
      "<h1>Profile</h1><p><code>" + report::html_text(report::redacted(command)) + "</code></p>" +
      report::table(
          {{"what"}, {"value"}},
          {{"process", std::to_string(pid)},
           {"started", started},
           {"recorded", duration_text(wall_us)},
           {"first to last record", duration_text(active_us)},
           {"input", duration_text(input_us) + formatted(" (%.1f %%)", 100 * input_us / active)},
           {"between steps besides",
            duration_text(between_us) + formatted(" (%.1f %%)", 100 * between_us / active)},
           {"waits for a device", std::to_string(waits) + ", " + duration_text(wait_us)}});
  return report::page("Profile", out + html_sections(*this));
}

std::string html_sections(const Profile& p) {
  std::string out = lanes(p);
  out += "<h2>Operations</h2>" + operation_table(p);
  out += "<h2>Kernels</h2>" + kernel_table(p);
  out += step_tables(p) + memory_curves(p);
  if (p.notes.empty()) return out;
  out += "<h2>How to read the times</h2><ul>";
  for (const std::string& note : p.notes) out += "<li>" + report::html_text(note) + "</li>";
  return out + "</ul>";
}

namespace {

/// A slice's event, as the profile plugin expects it: operations are called "name:Type", and steps
/// say their number and that they are roots.
report::Message event_of(const Profile::Slice& s, report::EventNames* names,
                         report::EventNames* stats) {
  using namespace report::xplane;
  report::Message event;
  std::string name = s.name;
  const size_t blank = name.rfind(' ');
  const bool numbered = s.kind == "step" && blank != std::string::npos && blank + 1 < name.size() &&
                        name.find_first_not_of("0123456789", blank + 1) == std::string::npos;
  if (s.kind == "operation" && !name.empty()) {
    std::string type = name;
    type[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(type[0])));
    name += ":" + type;
  }
  const auto stat = [&](const char* what, uint64_t value) {
    report::Message out;
    out.number(kStatMetadataId, stats->of(what));
    out.number(kStatInteger, value);
    event.message(kEventStats, out);
  };
  if (numbered) {
    stat("step_num", std::strtoull(name.c_str() + blank, nullptr, 10));
    stat("_r", 1);
    name.resize(blank);
  }
  event.number(kEventMetadataId, names->of(name));
  event.number(kEventOffset, static_cast<uint64_t>(std::max(s.start_us, 0.0) * 1e6));
  event.number(kEventDuration, static_cast<uint64_t>(s.span_us * 1e6));
  return event;
}

}  // namespace

std::string Profile::xplane() const {
  using namespace report::xplane;
  report::Message space;
  report::EventNames names, stats;
  std::map<uint32_t, report::Message> lines;
  for (const Slice& s : slices) {
    auto line = lines.find(s.thread);
    if (line == lines.end()) {
      line = lines.emplace(s.thread, report::Message{}).first;
      line->second.number(kLineId, s.thread);
      line->second.text(kLineName, "thread " + std::to_string(s.thread));
      line->second.number(kLineTimestamp, 0);
    }
    line->second.message(kLineEvents, event_of(s, &names, &stats));
  }
  report::Message plane;
  plane.number(kPlaneId, 1);
  plane.text(kPlaneName, "/host:CPU");
  for (const auto& [thread, line] : lines) plane.message(kPlaneLines, line);
  names.write(plane);
  stats.write(plane, kPlaneStatMetadata);
  space.message(kSpacePlanes, plane);
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  space.text(kSpaceHostnames, host);
  return space.bytes();
}

namespace {

void write_private(const std::string& path, const std::string& text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  bool good = file >= 0;
  for (size_t at = 0; good && at < text.size();) {
    const ssize_t n = ::write(file, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    good = n > 0;
    if (good) at += static_cast<size_t>(n);
  }
  const int code = errno;
  if (file >= 0) close(file);
  if (good) return;
  error(ErrorCode::kCannotWrite, path, ": ", std::strerror(code)).throw_if_error();
}

}  // namespace

void Profile::write(const std::string& directory) const {
  check_path(directory, ErrorCode::kCannotWrite).throw_if_error();
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) {
    error(ErrorCode::kCannotWrite, directory, ": ", failed.message()).throw_if_error();
  }
  write_private(directory + "/profile.txt", str());
  write_private(directory + "/profile.json", json(true) + "\n");
  write_private(directory + "/profile.html", html());
  write_private(directory + "/trace.json", trace());
}

}  // namespace tracefire::profiler
