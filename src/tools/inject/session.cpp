// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/session.h"

#include <algorithm>

#include "tools/inject/escape.h"

namespace tracefire::inject {
namespace {

constexpr char kSchema[] = "tracefire.prove.session/1";
constexpr size_t kMostRows = 4096;

// A session may come from another machine: its texts are made safe here, once, before any report.
void make_safe(std::string& text) { text = printable(text, 4096); }
void make_safe(std::vector<std::string>& texts) {
  for (std::string& text : texts) make_safe(text);
}
template <class T>
void make_safe(T&) {}

template <class T>
void get(const Json& from, const char* name, T& to) {
  const auto found = from.find(name);
  if (found == from.end()) return;
  to = found->get<T>();
  make_safe(to);
}

Json columns(const std::vector<Sample>& samples) {
  Json out = {{"at_ns", Json::array()},
              {"cpu_ns", Json::array()},
              {"resident", Json::array()},
              {"processes", Json::array()},
              {"gpus", Json::array()}};
  size_t gpus = 0;
  for (const Sample& s : samples) gpus = std::max(gpus, s.gpus.size());
  for (const Sample& s : samples) {
    out["at_ns"].push_back(s.at_ns);
    out["cpu_ns"].push_back(s.cpu_ns);
    out["resident"].push_back(s.resident);
    out["processes"].push_back(s.processes);
  }
  for (size_t g = 0; g < gpus; ++g) {
    Json rows = Json::array();
    for (const Sample& s : samples) {
      const GpuSample one = g < s.gpus.size() ? s.gpus[g] : GpuSample{};
      rows.push_back({one.busy_percent, one.memory_used, one.tree_memory, one.sm_mhz, one.celsius,
                      one.milliwatts, one.throttle});
    }
    out["gpus"].push_back(rows);
  }
  return out;
}

void read_columns(const Json& from, std::vector<Sample>& samples) {
  const size_t count = std::min(from.at("at_ns").size(), kMostRows);
  samples.resize(count);
  for (size_t i = 0; i < count; ++i) {
    samples[i].at_ns = from.at("at_ns").at(i).get<int64_t>();
    samples[i].cpu_ns = from.at("cpu_ns").at(i).get<int64_t>();
    samples[i].resident = from.at("resident").at(i).get<int64_t>();
    samples[i].processes = from.at("processes").at(i).get<int>();
  }
  const Json& gpus = from.at("gpus");
  for (size_t g = 0; g < std::min<size_t>(gpus.size(), 64); ++g) {
    for (size_t i = 0; i < count; ++i) {
      const Json& row = gpus.at(g).at(i);
      GpuSample one;
      one.busy_percent = row.at(0).get<int>();
      one.memory_used = row.at(1).get<int64_t>();
      one.tree_memory = row.at(2).get<int64_t>();
      one.sm_mhz = row.at(3).get<int>();
      one.celsius = row.at(4).get<int>();
      one.milliwatts = row.at(5).get<int>();
      one.throttle = row.at(6).get<uint64_t>();
      samples[i].gpus.push_back(one);
    }
  }
}

Json process_json(const ProcessSeen& p) {
  return {{"pid", p.pid},
          {"parent", p.parent},
          {"name", printable(p.name, 64)},
          {"command", redacted(printable(p.command))},
          {"cpu_ns", p.cpu_ns},
          {"first_ns", p.first_ns},
          {"last_ns", p.last_ns},
          {"resident_peak", p.resident_peak},
          {"gpu_memory_peak", p.gpu_memory_peak},
          {"driver_loaded", p.driver_loaded},
          {"on_gpu", p.on_gpu},
          {"told", p.told},
          {"faults", p.faults},
          {"swapped_peak", p.swapped_peak}};
}

ProcessSeen read_process(const Json& from) {
  ProcessSeen p;
  get(from, "pid", p.pid);
  get(from, "parent", p.parent);
  get(from, "name", p.name);
  get(from, "command", p.command);
  get(from, "cpu_ns", p.cpu_ns);
  get(from, "first_ns", p.first_ns);
  get(from, "last_ns", p.last_ns);
  get(from, "resident_peak", p.resident_peak);
  get(from, "gpu_memory_peak", p.gpu_memory_peak);
  get(from, "driver_loaded", p.driver_loaded);
  get(from, "on_gpu", p.on_gpu);
  get(from, "told", p.told);
  get(from, "faults", p.faults);
  get(from, "swapped_peak", p.swapped_peak);
  return p;
}

void read_into(const Json& json, Session& s) {
  get(json, "command", s.command);
  get(json, "host", s.host);
  get(json, "cores", s.cores);
  get(json, "started_ns", s.started_ns);
  get(json, "wall_ns", s.wall_ns);
  const Json& ending = json.at("ending");
  // Null where nobody could know it.
  s.ending.known = !ending.contains("status") || !ending["status"].is_null();
  if (s.ending.known) get(ending, "status", s.ending.status);
  get(ending, "over", s.ending.over);
  get(ending, "ran_on", s.ending.ran_on);
  get(ending, "signal", s.ending.signal);
  get(ending, "start_error", s.ending.start_error);
  get(ending, "user_ns", s.ending.user_ns);
  get(ending, "system_ns", s.ending.system_ns);
  get(ending, "resident_peak", s.ending.resident_peak);
  for (const auto& [name, value] : json.at("environment").items()) {
    s.environment[printable(name)] = printable(value.get<std::string>(), 4096);
  }
  get(json, "version", s.version);
  if (const auto known = json.find("manifest"); known != json.end() && known->is_object()) {
    if (known->value("schema", "") == "tracefire.manifest/1") s.manifest = *known;
  }
  get(json, "tracing", s.tracing);
  get(json, "nvml_problem", s.nvml_problem);
  get(json, "gpu_problem", s.gpu_problem);
  get(json, "driver_version", s.driver_version);
  for (const Json& g : json.at("gpus")) {
    GpuSeen seen;
    get(g, "name", seen.name);
    get(g, "uuid", seen.uuid);
    get(g, "memory", seen.memory);
    get(g, "max_sm_mhz", seen.max_sm_mhz);
    s.gpus.push_back(seen);
    if (s.gpus.size() == 64) break;
  }
  read_columns(json.at("samples"), s.samples);
  for (const Json& p : json.at("processes")) {
    s.processes.push_back(read_process(p));
    if (s.processes.size() == kMostRows) break;
  }
  get(json, "processes_left_out", s.processes_left_out);
  get(json, "elsewhere", s.elsewhere);
  if (const auto others = json.find("others"); others != json.end()) {
    for (const Json& o : *others) {
      OtherSeen seen;
      get(o, "pid", seen.pid);
      get(o, "gpu", seen.gpu);
      get(o, "name", seen.name);
      get(o, "memory_peak", seen.memory_peak);
      s.others.push_back(seen);
      if (s.others.size() == Sampler::kMostOthers) break;
    }
  }
  get(json, "swapped_in", s.paging.swapped_in);
  get(json, "swapped_out", s.paging.swapped_out);
  get(json, "notes", s.notes);
}

}  // namespace

Json to_json(const Session& s) {
  Json gpus = Json::array();
  for (const GpuSeen& g : s.gpus) {
    gpus.push_back({{"name", printable(g.name, 128)},
                    {"uuid", printable(g.uuid, 128)},
                    {"memory", g.memory},
                    {"max_sm_mhz", g.max_sm_mhz}});
  }
  Json processes = Json::array();
  for (const ProcessSeen& p : s.processes) processes.push_back(process_json(p));
  Json others = Json::array();
  for (const OtherSeen& o : s.others) {
    others.push_back({{"pid", o.pid},
                      {"gpu", o.gpu},
                      {"name", printable(o.name, 64)},
                      {"memory_peak", o.memory_peak}});
  }
  Json command = Json::array();
  for (const std::string& word : s.command) command.push_back(printable(word));
  Json environment = Json::object();
  for (const auto& [name, value] : s.environment) environment[printable(name)] = printable(value);
  return {{"schema", kSchema},
          {"version", s.version},
          {"manifest", s.manifest},
          {"command", command},
          {"host", printable(s.host, 128)},
          {"cores", s.cores},
          {"started_ns", s.started_ns},
          {"wall_ns", s.wall_ns},
          {"ending",
           {{"status", s.ending.known ? Json(s.ending.status) : Json()},
            {"over", s.ending.over},
            {"ran_on", s.ending.ran_on},
            {"signal", s.ending.signal},
            {"start_error", printable(s.ending.start_error)},
            {"user_ns", s.ending.user_ns},
            {"system_ns", s.ending.system_ns},
            {"resident_peak", s.ending.resident_peak}}},
          {"tracing", printable(s.tracing)},
          {"nvml_problem", printable(s.nvml_problem)},
          {"gpu_problem", printable(s.gpu_problem)},
          {"driver_version", printable(s.driver_version, 64)},
          {"gpus", gpus},
          {"environment", environment},
          {"processes", processes},
          {"processes_left_out", s.processes_left_out},
          {"elsewhere", s.elsewhere},
          {"others", others},
          {"swapped_in", s.paging.swapped_in},
          {"swapped_out", s.paging.swapped_out},
          {"notes", s.notes},
          {"samples", columns(s.samples)}};
}

Result<Session> read_session(std::string_view text) {
  if (text.size() > (size_t{16} << 20)) {
    return error(ErrorCode::kBadFile, "session.json has ", text.size(),
                 " bytes; expected at most 16 MiB");
  }
  try {
    const Json json = Json::parse(text);
    if (!json.is_object() || json.value("schema", "") != kSchema) {
      return error(ErrorCode::kBadFile, "session.json is no ", kSchema);
    }
    Session session;
    read_into(json, session);
    return session;
  } catch (const nlohmann::json::exception& problem) {
    return error(ErrorCode::kBadFile, "session.json is damaged: ", printable(problem.what(), 200));
  }
}

}  // namespace tracefire::inject
