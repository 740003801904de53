// SPDX-License-Identifier: Apache-2.0
// Trace events as JSON, which Perfetto and chrome://tracing open.
#include "tools/inject/report.h"
#include "tools/report/trace_events.h"

namespace tracefire::inject {
namespace {

using report::quoted;
using Trace = report::TraceEvents;

const char* const kCallNames[] = {"call", "launch", "launch graph", "copy",
                                  "set",  "wait",   "allocate"};

constexpr uint64_t kLaneBase = 1u << 24;  // GPU streams come after the threads

void process(const ProcessFigure& p, uint64_t origin, Trace& trace) {
  const ProcessRecord& r = *p.record;
  // Real time since the first process began, so that processes of several hosts lie side by side.
  const auto at = [&](uint64_t cupti) {
    const uint64_t since = cupti > r.first.cupti ? cupti - r.first.cupti : 0;
    return since + (r.first.real - origin);
  };
  trace.name("process_name", r.pid, 0, p.title);
  for (size_t lane = 1; lane < r.lanes.size(); ++lane) {
    trace.name("thread_name", r.pid, kLaneBase + lane,
               "GPU " + std::to_string(r.lanes[lane].device) + " stream " +
                   std::to_string(r.lanes[lane].stream));
  }
  for (size_t thread = 1; thread < r.thread_ids.size(); ++thread) {
    trace.name("thread_name", r.pid, thread, "thread " + std::to_string(r.thread_ids[thread]));
  }
  std::vector<std::string> names;
  for (const NameRow& n : r.names) names.push_back(quoted(short_kernel(readable_kernel(n.name))));
  for (const WindowRow& w : r.windows) {
    for (const EventRow& e : w.events) {
      if (!trace.take()) return;
      if (e.kind == Event::kCall) {
        trace.slice(r.pid, e.place, std::string("\"") + kCallNames[e.detail] + "\"", at(e.start),
                    at(e.end));
      } else {
        trace.slice(r.pid, kLaneBase + e.place,
                    e.kind == Event::kCopy  ? "\"copy\""
                    : e.kind == Event::kSet ? "\"set\""
                    : e.name < names.size() ? names[e.name]
                                            : "\"kernel\"",
                    at(e.start), at(e.end));
      }
    }
  }
  for (const GpuUse& use : p.gpus) {
    const auto found = r.gpu_parts.find(use.device);
    if (found == r.gpu_parts.end() || r.part_ns == 0) continue;
    const std::string title = quoted("GPU " + std::to_string(use.device) + " busy");
    for (size_t i = 0; i < found->second.size(); ++i) {
      trace.counter(
          r.pid, title, at(r.first.cupti + i * r.part_ns),
          100 * static_cast<double>(found->second[i].busy) / static_cast<double>(r.part_ns));
    }
  }
}

}  // namespace

std::string report_perfetto(const Report& report, size_t most_events) {
  Trace trace(most_events);
  uint64_t origin = ~uint64_t{0};
  for (const ProcessFigure& p : report.processes) origin = std::min(origin, p.record->first.real);
  for (const ProcessFigure& p : report.processes) process(p, origin, trace);
  return trace.finish();
}

}  // namespace tracefire::inject
