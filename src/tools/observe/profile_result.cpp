// SPDX-License-Identifier: Apache-2.0
// What the collector gathered, as the tables of a Profile.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "tools/observe/profile_collect.h"
#include "tools/report/manifest.h"

namespace tracefire::profiler {
namespace {

constexpr const char* kSliceKinds[] = {"program", "operation",  "step",
                                       "input",   "annotation", "wait"};

double us(int64_t ns) { return static_cast<double>(ns) / 1e3; }

/// The words of this process's command, separated by blanks.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

std::string source_of(bool measured, bool sampled) {
  if (sampled) return "sampled";
  return measured ? "measured" : "none";
}

/// Totals for all runs, shares of each device, most time first.
void finish(std::vector<Profile::Row>* rows) {
  std::map<std::string, double> totals;
  for (Profile::Row& row : *rows) {
    row.time.total_us = static_cast<double>(row.runs) * row.time.mean_us;
    totals[row.device] += row.time.total_us;
  }
  for (Profile::Row& row : *rows) {
    const double total = totals[row.device];
    row.share = total > 0 ? row.time.total_us / total : 0;
  }
  std::stable_sort(rows->begin(), rows->end(), [](const auto& a, const auto& b) {
    return a.time.total_us != b.time.total_us ? a.time.total_us > b.time.total_us
                                              : a.flops > b.flops;
  });
}

}  // namespace

void Collector::add_rows(Profile* out) const {
  std::map<std::pair<std::string, std::string>, Entry> kernels;
  for (const auto& [key, entry] : rows_) {
    Profile::Row& row = out->operations.emplace_back(entry.row);
    row.time = entry.times.durations();
    row.source = source_of(entry.measured, entry.sampled);
    Entry& kernel = kernels[{row.device, row.kernel}];
    kernel.row.device = row.device;
    kernel.row.kernel = row.kernel;
    kernel.row.library = row.library;
    for (const std::string& symbol : row.symbols) {
      auto& known = kernel.row.symbols;
      if (std::find(known.begin(), known.end(), symbol) == known.end()) known.push_back(symbol);
    }
    kernel.row.runs += row.runs;
    kernel.row.flops += row.flops;
    kernel.row.bytes += row.bytes;
    kernel.times.add(entry.times);
    kernel.measured |= entry.measured;
    kernel.sampled |= entry.sampled;
  }
  for (const auto& [key, entry] : kernels) {
    Profile::Row& row = out->kernels.emplace_back(entry.row);
    row.time = entry.times.durations();
    row.source = source_of(entry.measured, entry.sampled);
  }
  finish(&out->operations);
  finish(&out->kernels);
}

void Collector::add_spans(Profile* out) const {
  const auto kind_name = [](SpanKind kind) {
    return kind == SpanKind::kStep ? "step" : kind == SpanKind::kInput ? "input" : "annotation";
  };
  for (const auto& [key, entry] : spans_) {
    out->spans.push_back(
        {key.second, kind_name(key.first), entry.time.durations(), entry.between.durations()});
  }
  std::stable_sort(out->spans.begin(), out->spans.end(),
                   [](const auto& a, const auto& b) { return a.time.total_us > b.time.total_us; });
  for (const auto& [name, program] : program_rows_) {
    out->programs.push_back(program);
    out->programs.back().name = name;
  }
  std::stable_sort(out->programs.begin(), out->programs.end(),
                   [](const auto& a, const auto& b) { return a.host_us > b.host_us; });
}

void Collector::add_slices(Profile* out) const {
  std::vector<const std::string*> names(names_.size());
  for (const auto& [name, number] : names_) names[number] = &name;
  for (const Slice& slice : slices_) {
    out->slices.push_back({*names[slice.name], kSliceKinds[static_cast<size_t>(slice.kind)],
                           slice.thread, us(slice.start_ns), us(slice.span_ns), slice.executions});
  }
}

void Collector::add_notes(Profile* out) const {
  std::set<std::string> sources;
  bool replayed = false;
  for (const Profile::Row& row : out->operations) sources.insert(row.source);
  for (const Profile::Program& program : out->programs) replayed |= program.graph_launches > 0;
  if (replayed) {
    out->notes.push_back(
        "A replay of a captured graph is one record that stands for its steps; its operations are "
        "not timed one by one.");
  }
  if (sources.count("sampled") != 0) {
    out->notes.push_back(
        "Times marked `sampled` come from a few executions outside the captured graph, each "
        "operation waited for: launch and wait are part of them, so short kernels look longer.");
  }
  if (sources.count("none") != 0) {
    out->notes.push_back("Operations marked `none` ran, but no execution of them was measured.");
  }
  if (slices_left_out_ > 0) {
    out->notes.push_back(concat_text("The time line was cut: ", slices_left_out_,
                                     " slices beyond the first ", slices_.size(),
                                     " were left out. The tables count all."));
  }
  if (rows_full_) {
    out->notes.push_back(concat_text("There were more than ", rows_.size(),
                                     " operations; later ones are added up as (various)."));
  }
  for (const auto& [device, line] : memory_) {
    if (!line.thinned()) continue;
    out->notes.push_back("The memory line of " + device.str() +
                         " was thinned; of neighbouring points the higher one is kept.");
  }
}

Profile Collector::result() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Profile out;
  out.command = command_line();
  out.pid = getpid();
  out.started = report::utc_text(started_);
  out.wall_us = us(end_ns_ - start_ns_);
  out.active_us = us(last_ns_ - first_ns_);
  add_rows(&out);
  add_spans(&out);
  add_slices(&out);
  for (auto& [device, line] : memory_) out.memory.push_back(line.result(device.str(), start_ns_));
  out.input_us = us(input_ns_);
  out.between_us = us(between_ns_);
  out.waits = waits_;
  out.wait_us = us(wait_ns_);
  add_notes(&out);
  return out;
}

}  // namespace tracefire::profiler
