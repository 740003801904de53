// SPDX-License-Identifier: Apache-2.0
// A profile as JSON and back (a process of tracefire.profile/1), and as trace events.
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "tools/report/escape.h"
#include "tools/report/trace_events.h"
#include "tracefire/profiler.h"

namespace tracefire::profiler {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Durations& d) {
  return {{"measured", d.count},
          {"total_us", d.total_us},
          {"mean_us", d.mean_us},
          {"p50_us", d.p50_us},
          {"p99_us", d.p99_us}};
}

Json to_json(const Profile::Row& row) {
  return {{"op", row.op},           {"name", row.name},       {"device", row.device},
          {"kernel", row.kernel},   {"library", row.library}, {"location", row.location},
          {"symbols", row.symbols}, {"runs", row.runs},       {"time", to_json(row.time)},
          {"share", row.share},     {"source", row.source},   {"flops", row.flops},
          {"bytes", row.bytes}};
}

Json rows_json(const std::vector<Profile::Row>& rows) {
  Json out = Json::array();
  for (const Profile::Row& row : rows) out.push_back(to_json(row));
  return out;
}

Json memory_json(const Profile::Memory& memory) {
  Json out = {{"device", memory.device},
              {"peak_bytes", memory.peak},
              {"peak_at_us", memory.peak_at_us},
              {"holders", Json::array()},
              {"points", Json::array()}};
  for (const auto& [what, bytes] : memory.holders) {
    out["holders"].push_back({{"what", what}, {"bytes", bytes}});
  }
  for (const Profile::MemoryPoint& point : memory.points) {
    out["points"].push_back({point.at_us, point.bytes});
  }
  return out;
}

Durations durations_of(const Json& j) {
  Durations d;
  d.count = j.at("measured").get<uint64_t>();
  d.total_us = j.at("total_us").get<double>();
  d.mean_us = j.at("mean_us").get<double>();
  d.p50_us = j.at("p50_us").get<double>();
  d.p99_us = j.at("p99_us").get<double>();
  return d;
}

std::vector<Profile::Row> rows_of(const Json& j) {
  std::vector<Profile::Row> rows;
  for (const Json& r : j) {
    Profile::Row row;
    row.op = r.at("op").get<std::string>();
    row.name = r.at("name").get<std::string>();
    row.device = r.at("device").get<std::string>();
    row.kernel = r.at("kernel").get<std::string>();
    row.library = r.at("library").get<std::string>();
    row.location = r.at("location").get<std::string>();
    row.symbols = r.at("symbols").get<std::vector<std::string>>();
    row.runs = r.at("runs").get<uint64_t>();
    row.time = durations_of(r.at("time"));
    row.share = r.at("share").get<double>();
    row.source = r.at("source").get<std::string>();
    row.flops = r.at("flops").get<double>();
    row.bytes = r.at("bytes").get<double>();
    rows.push_back(std::move(row));
  }
  return rows;
}

Profile::Memory memory_of(const Json& j) {
  Profile::Memory memory;
  memory.device = j.at("device").get<std::string>();
  memory.peak = j.at("peak_bytes").get<uint64_t>();
  memory.peak_at_us = j.at("peak_at_us").get<double>();
  for (const Json& h : j.at("holders")) {
    memory.holders.emplace_back(h.at("what").get<std::string>(), h.at("bytes").get<uint64_t>());
  }
  for (const Json& p : j.at("points")) {
    memory.points.push_back({p.at(0).get<double>(), p.at(1).get<uint64_t>()});
  }
  return memory;
}

Profile profile_of(const Json& j) {
  Profile p;
  p.command = j.at("command").get<std::string>();
  p.pid = j.at("pid").get<int64_t>();
  p.started = j.at("started").get<std::string>();
  p.wall_us = j.at("wall_us").get<double>();
  p.active_us = j.at("active_us").get<double>();
  p.operations = rows_of(j.at("operations"));
  p.kernels = rows_of(j.at("kernels"));
  for (const Json& s : j.at("spans")) {
    p.spans.push_back({s.at("name").get<std::string>(), s.at("kind").get<std::string>(),
                       durations_of(s.at("time")), durations_of(s.at("between"))});
  }
  for (const Json& r : j.at("programs")) {
    p.programs.push_back({r.at("name").get<std::string>(), r.at("records").get<uint64_t>(),
                          r.at("executions").get<uint64_t>(),
                          r.at("graph_launches").get<uint64_t>(), r.at("host_us").get<double>()});
  }
  for (const Json& m : j.at("memory")) p.memory.push_back(memory_of(m));
  const Json& input = j.at("input");
  p.input_us = input.at("input_us").get<double>();
  p.between_us = input.at("between_steps_us").get<double>();
  p.waits = j.at("waits").at("count").get<uint64_t>();
  p.wait_us = j.at("waits").at("total_us").get<double>();
  p.notes = j.at("notes").get<std::vector<std::string>>();
  if (j.contains("slices")) {
    for (const Json& s : j.at("slices")) {
      p.slices.push_back({s.at(0).get<std::string>(), s.at(1).get<std::string>(),
                          s.at(2).get<uint32_t>(), s.at(3).get<double>(), s.at(4).get<double>(),
                          s.at(5).get<uint64_t>()});
    }
  }
  return p;
}

}  // namespace

std::string Profile::json(bool with_slices) const {
  Json out;
  out["command"] = report::redacted(command);
  out["pid"] = pid;
  out["started"] = started;
  out["wall_us"] = wall_us;
  out["active_us"] = active_us;
  out["operations"] = rows_json(operations);
  out["kernels"] = rows_json(kernels);
  out["spans"] = Json::array();
  for (const Span& span : spans) {
    out["spans"].push_back({{"name", span.name},
                            {"kind", span.kind},
                            {"time", to_json(span.time)},
                            {"between", to_json(span.between)}});
  }
  out["programs"] = Json::array();
  for (const Program& program : programs) {
    out["programs"].push_back({{"name", program.name},
                               {"records", program.records},
                               {"executions", program.executions},
                               {"graph_launches", program.graph_launches},
                               {"host_us", program.host_us}});
  }
  out["memory"] = Json::array();
  for (const Memory& m : memory) out["memory"].push_back(memory_json(m));
  const double active = active_us > 0 ? active_us : 1;
  out["input"] = {{"input_us", input_us},
                  {"between_steps_us", between_us},
                  {"share", (input_us + between_us) / active}};
  out["waits"] = {{"count", waits}, {"total_us", wait_us}};
  out["notes"] = notes;
  if (with_slices) {
    Json all = Json::array();
    for (const Slice& s : slices) {
      all.push_back({s.name, s.kind, s.thread, s.start_us, s.span_us, s.executions});
    }
    out["slices"] = std::move(all);
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Profile Profile::from_json(const std::string& text) {
  try {
    return profile_of(Json::parse(text));
  } catch (const Json::exception& failure) {
    error(ErrorCode::kBadUsage, "a profile could not be read: ", failure.what(),
          ". A file that the profiler wrote was expected")
        .throw_if_error();
  }
  return {};
}

std::string Profile::trace() const {
  report::TraceEvents events(slices.size());
  const auto process = static_cast<uint32_t>(pid);
  events.name("process_name", process, 0, report::printable(report::redacted(command), 200));
  const auto ns = [](double us) { return static_cast<uint64_t>(us > 0 ? us * 1e3 : 0); };
  for (const Slice& s : slices) {
    const std::string many =
        s.executions > 1 ? s.name + " x" + std::to_string(s.executions) : s.name;
    events.slice(process, s.thread, report::quoted(many), ns(s.start_us),
                 ns(s.start_us + s.span_us));
  }
  for (const Memory& m : memory) {
    const std::string name = report::quoted("memory of " + m.device);
    for (const MemoryPoint& point : m.points) {
      events.counter(process, name, ns(point.at_us), static_cast<double>(point.bytes), "bytes");
    }
  }
  return events.finish();
}

}  // namespace tracefire::profiler
