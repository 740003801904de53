// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "tools/inject/launch.h"
#include "tools/inject/sample.h"

namespace tracefire::inject {

using Json = nlohmann::ordered_json;

/// What the run looked like from outside; kept as session.json beside the records.
struct Session {
  std::vector<std::string> command;  ///< without secrets
  std::string host;
  int cores = 0;
  int64_t started_ns = 0;  ///< real time
  int64_t wall_ns = 0;
  Ending ending;
  std::map<std::string, std::string> environment;
  std::string version;       ///< of Tracefire
  Json manifest;             ///< tracefire.manifest/1 of this machine; null where it is not known
  std::string tracing;       ///< "on", or why not
  std::string nvml_problem;  ///< empty where NVML answered
  std::string gpu_problem;   ///< why no GPU can be used, empty where one can or it is unknown
  std::string driver_version;
  std::vector<GpuSeen> gpus;
  std::vector<Sample> samples;
  std::vector<ProcessSeen> processes;
  int64_t processes_left_out = 0;
  bool elsewhere = false;         ///< a container, another host or user: no children of ours
  std::vector<OtherSeen> others;  ///< processes on the same GPUs that are not the program's
  Paging paging;
  std::vector<std::string> notes;  ///< about the way the program was run
};

Json to_json(const Session& session);
/// Reads what to_json() made; any file that is something else is an error (kBadFile), never a
/// crash. `text` is not trusted.
Result<Session> read_session(std::string_view text);

}  // namespace tracefire::inject
