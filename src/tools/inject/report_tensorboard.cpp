// SPDX-License-Identifier: Apache-2.0
// An XSpace (tsl/profiler/protobuf/xplane.proto) as TensorBoard's profile plugin reads it, written
// field by field: a plane a GPU and process, a line a stream, an event a kernel or copy.
#include <map>

#include "tools/inject/report.h"
#include "tools/report/xspace.h"

namespace tracefire::inject {
namespace {

using namespace report::xplane;
using report::Message;
using Names = report::EventNames;

void add_plane(const ProcessFigure& p, uint32_t device, uint64_t id, size_t* left, Message& space) {
  const ProcessRecord& r = *p.record;
  std::vector<std::string> kernel_names;
  for (const NameRow& n : r.names) kernel_names.push_back(short_kernel(readable_kernel(n.name)));
  Message plane;
  plane.number(kPlaneId, id);
  plane.text(kPlaneName, "/device:GPU:" + std::to_string(device) + " (" + p.title + ")");
  Names names;
  std::map<uint16_t, Message> lines;
  for (const WindowRow& w : r.windows) {
    for (const EventRow& e : w.events) {
      const bool here = e.is_work() && (e.place < r.lanes.size() ? r.lanes[e.place].device == device
                                                                 : device == 0);
      if (!here || e.start < r.first.cupti || *left == 0) continue;
      --*left;
      auto line = lines.find(e.place);
      if (line == lines.end()) {
        line = lines.emplace(e.place, Message{}).first;
        line->second.number(kLineId, e.place + uint64_t{1});
        const uint32_t stream = e.place < r.lanes.size() ? r.lanes[e.place].stream : 0;
        line->second.text(kLineName, "Stream #" + std::to_string(stream));
        line->second.number(kLineTimestamp, r.first.real);
      }
      const std::string name = e.kind == Event::kCopy         ? "copy"
                               : e.kind == Event::kSet        ? "set"
                               : e.name < kernel_names.size() ? kernel_names[e.name]
                                                              : "kernel";
      Message event;
      event.number(kEventMetadataId, names.of(name));
      event.number(kEventOffset, (e.start - r.first.cupti) * kPicoseconds);
      event.number(kEventDuration, (e.end - e.start) * kPicoseconds);
      line->second.message(kLineEvents, event);
    }
  }
  for (const auto& [place, line] : lines) plane.message(kPlaneLines, line);
  names.write(plane);
  space.message(kSpacePlanes, plane);
}

}  // namespace

std::string report_tensorboard(const Report& report, size_t most_events) {
  Message space;
  uint64_t id = 0;
  for (const ProcessFigure& p : report.processes) {
    for (const GpuUse& use : p.gpus) add_plane(p, use.device, ++id, &most_events, space);
  }
  space.text(kSpaceHostnames, report.session->host);
  return space.bytes();
}

}  // namespace tracefire::inject
