// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/session.h"

#include <algorithm>

#include "tools/inject/escape.h"
#include "tools/inject/field.h"

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
void get(const Field& from, const char* name, T& to) {
  if (!from.has(name)) return;
  from[name].read(to);
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

void read_columns(const Field& from, std::vector<Sample>& samples) {
  const size_t count = std::min(from["at_ns"].size(), kMostRows);
  samples.resize(count);
  for (size_t i = 0; i < count; ++i) {
    from["at_ns"].at(i).read(samples[i].at_ns);
    from["cpu_ns"].at(i).read(samples[i].cpu_ns);
    from["resident"].at(i).read(samples[i].resident);
    from["processes"].at(i).read(samples[i].processes);
  }
  each(from["gpus"], 64, [&](const Field& gpu) {
    for (size_t i = 0; i < count; ++i) {
      const Field row = gpu.at(i);
      GpuSample one;
      row.at(0).read(one.busy_percent);
      row.at(1).read(one.memory_used);
      row.at(2).read(one.tree_memory);
      row.at(3).read(one.sm_mhz);
      row.at(4).read(one.celsius);
      row.at(5).read(one.milliwatts);
      row.at(6).read(one.throttle);
      samples[i].gpus.push_back(one);
    }
  });
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

ProcessSeen read_process(const Field& from) {
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

void read_into(const Field& json, Session& s) {
  get(json, "command", s.command);
  get(json, "host", s.host);
  get(json, "cores", s.cores);
  get(json, "started_ns", s.started_ns);
  get(json, "wall_ns", s.wall_ns);
  const Field ending = json["ending"];
  // Null where nobody could know it.
  s.ending.known = !ending.has("status") || !ending["status"].json().is_null();
  if (s.ending.known) get(ending, "status", s.ending.status);
  get(ending, "over", s.ending.over);
  get(ending, "ran_on", s.ending.ran_on);
  get(ending, "signal", s.ending.signal);
  get(ending, "start_error", s.ending.start_error);
  get(ending, "user_ns", s.ending.user_ns);
  get(ending, "system_ns", s.ending.system_ns);
  get(ending, "resident_peak", s.ending.resident_peak);
  const Field environment = json["environment"];
  if (!environment.json().is_object()) environment.wrong("an object");
  for (const auto& [name, value] : environment.json().items()) {
    s.environment[printable(name)] = printable(environment[name].as<std::string>(), 4096);
  }
  get(json, "version", s.version);
  if (json.has("manifest") && json["manifest"].has("schema")) {
    const Field known = json["manifest"];
    if (known["schema"].as<std::string>() == "tracefire.manifest/1") s.manifest = known.json();
  }
  get(json, "tracing", s.tracing);
  get(json, "nvml_problem", s.nvml_problem);
  get(json, "gpu_problem", s.gpu_problem);
  get(json, "driver_version", s.driver_version);
  each(json["gpus"], 64, [&](const Field& g) {
    GpuSeen seen;
    get(g, "name", seen.name);
    get(g, "uuid", seen.uuid);
    get(g, "memory", seen.memory);
    get(g, "max_sm_mhz", seen.max_sm_mhz);
    s.gpus.push_back(seen);
  });
  read_columns(json["samples"], s.samples);
  each(json["processes"], kMostRows,
       [&](const Field& p) { s.processes.push_back(read_process(p)); });
  get(json, "processes_left_out", s.processes_left_out);
  get(json, "elsewhere", s.elsewhere);
  if (json.has("others"))
    each(json["others"], Sampler::kMostOthers, [&](const Field& o) {
      OtherSeen seen;
      get(o, "pid", seen.pid);
      get(o, "gpu", seen.gpu);
      get(o, "name", seen.name);
      get(o, "memory_peak", seen.memory_peak);
      s.others.push_back(seen);
    });
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
    read_into(Field(json), session);
    return session;
  } catch (const FieldProblem& problem) {
    return error(ErrorCode::kBadFile, "session.json is damaged: ", printable(problem.what(), 200));
  } catch (const nlohmann::json::exception& problem) {
    return error(ErrorCode::kBadFile, "session.json is damaged: ", printable(problem.what(), 200));
  }
}

}  // namespace tracefire::inject
