// SPDX-License-Identifier: Apache-2.0
// Trace events as JSON, which Perfetto and chrome://tracing open.
#include <algorithm>
#include <set>

#include "tools/inject/report.h"
#include "tools/inject/tracks.h"
#include "tools/report/trace_events.h"

namespace tracefire::inject {
namespace {

using report::quoted;
using Trace = report::TraceEvents;

const char* const kCallNames[] = {"call", "launch", "launch graph", "copy",
                                  "set",  "wait",   "allocate"};

constexpr uint64_t kLaneBase = 1u << 24;  // GPU streams come after the threads

/// `pid` is unique in the trace: processes of several hosts may have the same number.
void process(const ProcessFigure& p, uint32_t pid, uint64_t origin, Trace& trace) {
  const ProcessRecord& r = *p.record;
  // Real time since the first process began, so that processes of several hosts lie side by side.
  const auto at = [&](uint64_t cupti) {
    const uint64_t since = cupti > r.first.cupti ? cupti - r.first.cupti : 0;
    return since + (r.first.real - origin);
  };
  trace.name("process_name", pid, 0, p.title);
  for (size_t thread = 1; thread < r.thread_ids.size(); ++thread) {
    trace.name("thread_name", pid, thread, "thread " + std::to_string(r.thread_ids[thread]));
  }
  Tracks tracks;
  std::vector<std::string> names;
  for (const NameRow& n : r.names) names.push_back(quoted(short_kernel(readable_kernel(n.name))));
  for (const WindowRow& w : r.windows) {
    for (const EventRow& e : w.events) {
      if (!trace.take()) break;
      if (e.kind == Event::kCall) {
        trace.slice(pid, e.place, std::string("\"") + kCallNames[e.detail] + "\"", at(e.start),
                    at(e.end));
      } else {
        trace.slice(pid,
                    kLaneBase + e.place * Tracks::kMost + tracks.place(e.place, e.start, e.end),
                    e.kind == Event::kCopy  ? "\"copy\""
                    : e.kind == Event::kSet ? "\"set\""
                    : e.name < names.size() ? names[e.name]
                                            : "\"kernel\"",
                    at(e.start), at(e.end));
      }
    }
  }
  for (uint32_t lane = 0; lane < r.lanes.size(); ++lane) {
    for (size_t track = 0; track < tracks.count(lane); ++track) {
      const std::string name = "GPU " + std::to_string(r.lanes[lane].device) + " stream " +
                               std::to_string(r.lanes[lane].stream);
      trace.name(
          "thread_name", pid, kLaneBase + lane * Tracks::kMost + track,
          track == 0 ? name : name + ", at the same time (" + std::to_string(track + 1) + ")");
    }
  }
  for (const GpuUse& use : p.gpus) {
    const auto found = r.gpu_parts.find(use.device);
    if (found == r.gpu_parts.end() || r.part_ns == 0) continue;
    const std::string title = quoted("GPU " + std::to_string(use.device) + " busy");
    for (size_t i = 0; i < found->second.size(); ++i) {
      trace.counter(
          pid, title, at(r.first.cupti + i * r.part_ns),
          100 * static_cast<double>(found->second[i].busy) / static_cast<double>(r.part_ns));
    }
  }
}

}  // namespace

std::string report_perfetto(const Report& report, size_t most_events) {
  Trace trace(most_events);
  uint64_t origin = ~uint64_t{0};
  for (const ProcessFigure& p : report.processes) origin = std::min(origin, p.record->first.real);
  std::set<uint32_t> used;
  for (const ProcessFigure& p : report.processes) {
    uint32_t pid = p.record->pid;
    while (!used.insert(pid).second) pid += 1u << 22;  // beyond the largest process number
    process(p, pid, origin, trace);
  }
  return trace.finish();
}

}  // namespace tracefire::inject
