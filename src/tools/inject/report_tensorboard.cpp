// SPDX-License-Identifier: Apache-2.0
// An XSpace (tsl/profiler/protobuf/xplane.proto) as TensorBoard's profile plugin reads it, written
// field by field. One file a host; in it a plane a GPU and process with a line a stream and an
// event a kernel or copy, and a plane of the host with a line a thread and an event a call.
#include <map>

#include "tools/inject/report.h"
#include "tools/inject/tracks.h"
#include "tools/report/xspace.h"

namespace tracefire::inject {
namespace {

using namespace report::xplane;
using report::Message;


/// Lines of a plane, with the time that their offsets count from.
class Lines {
 public:
  explicit Lines(Message* plane) : plane_(*plane) {}
  Message& line(uint64_t id, const std::string& name, uint64_t real_ns) {
    const auto [at, fresh] = lines_.emplace(id, Message{});
    if (fresh) {
      at->second.number(kLineId, id);
      at->second.text(kLineName, name);
      at->second.number(kLineTimestamp, real_ns);
    }
    return at->second;
  }
  void event(Message& line, const std::string& name, uint64_t offset_ns, uint64_t ns) {
    Message event;
    event.number(kEventMetadataId, names_.of(name));
    event.number(kEventOffset, offset_ns * kPicoseconds);
    event.number(kEventDuration, ns * kPicoseconds);
    line.message(kLineEvents, event);
  }
  bool empty() const { return lines_.empty(); }
  void finish() {
    for (const auto& [id, line] : lines_) plane_.message(kPlaneLines, line);
    names_.write(plane_);
  }

 private:
  Message& plane_;
  std::map<uint64_t, Message> lines_;
  report::EventNames names_;
};

Message plane_named(const std::string& name, uint64_t id) {
  Message plane;
  plane.number(kPlaneId, id);
  plane.text(kPlaneName, name);
  return plane;
}

void add_device(const ProcessFigure& p, uint32_t device, uint64_t id, size_t* left,
                Message& space) {
  const ProcessRecord& r = *p.record;
  std::vector<std::string> kernel_names;
  for (const NameRow& n : r.names) kernel_names.push_back(short_kernel(readable_kernel(n.name)));
  Message plane = plane_named("/device:GPU:" + std::to_string(device) + " (" + p.title + ")", id);
  Lines lines(&plane);
  Tracks tracks;
  for (const WindowRow& w : r.windows) {
    for (const EventRow& e : w.events) {
      const bool here = e.is_work() && (e.place < r.lanes.size() ? r.lanes[e.place].device == device
                                                                 : device == 0);
      if (!here || e.start < r.first.cupti || *left == 0) continue;
      --*left;
      const uint32_t stream = e.place < r.lanes.size() ? r.lanes[e.place].stream : 0;
      const size_t track = tracks.place(e.place, e.start, e.end);
      Message& line = lines.line(kFirstLine + e.place * Tracks::kMost + track,
                                 "Stream #" + std::to_string(stream) +
                                     (track == 0 ? "" : " (" + std::to_string(track + 1) + ")"),
                                 r.first.real);
      lines.event(line,
                  e.kind == Event::kCopy         ? "copy"
                  : e.kind == Event::kSet        ? "set"
                  : e.name < kernel_names.size() ? kernel_names[e.name]
                                                 : "kernel",
                  e.start - r.first.cupti, e.end - e.start);
    }
  }
  lines.finish();
  space.message(kSpacePlanes, plane);
}

/// The plane of the host: a line for each thread that called CUDA, of all processes.
void add_threads(const std::vector<const ProcessFigure*>& processes, size_t* left, Message& space) {
  static constexpr const char* kCalls[] = {"call", "launch", "launch graph", "copy",
                                           "set",  "wait",   "allocate"};
  Message plane = plane_named("/host:CPU", 0);
  Lines lines(&plane);
  for (size_t i = 0; i < processes.size(); ++i) {
    const ProcessRecord& r = *processes[i]->record;
    for (const WindowRow& w : r.windows) {
      for (const EventRow& e : w.events) {
        if (e.kind != Event::kCall || e.start < r.first.cupti || *left == 0) continue;
        --*left;
        const uint32_t thread = e.place < r.thread_ids.size() ? r.thread_ids[e.place] : 0;
        Message& line =
            lines.line(kFirstLine + i * kMaxThreads + e.place,
                       processes[i]->title + ", thread " + std::to_string(thread), r.first.real);
        lines.event(line, kCalls[e.detail < kApiClasses ? e.detail : 0], e.start - r.first.cupti,
                    e.end - e.start);
      }
    }
  }
  if (lines.empty()) return;
  lines.finish();
  space.message(kSpacePlanes, plane);
}

/// As the name of a file.
std::string plain(const std::string& host) {
  std::string name;
  for (const char c : host.substr(0, 64)) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || (c == '.' && !name.empty());
    name += good ? c : '_';
  }
  return name.empty() ? "host" : name;
}

}  // namespace

std::map<std::string, std::string> report_tensorboard(const Report& report, size_t most_events) {
  std::map<std::string, std::vector<const ProcessFigure*>> hosts;
  for (const ProcessFigure& p : report.processes) {
    hosts[plain(p.record->host.empty() ? report.session->host : p.record->host)].push_back(&p);
  }
  std::map<std::string, std::string> files;
  for (const auto& [host, processes] : hosts) {
    Message space;
    uint64_t id = 0;
    for (const ProcessFigure* p : processes) {
      for (const GpuUse& use : p->gpus) add_device(*p, use.device, ++id, &most_events, space);
    }
    add_threads(processes, &most_events, space);
    if (space.bytes().empty()) continue;
    space.text(kSpaceHostnames, host);
    files[host + ".xplane.pb"] = space.bytes();
  }
  return files;
}

}  // namespace tracefire::inject
