// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/run.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "backends/nvidia/stack.h"
#include "tools/inject/environment.h"
#include "tools/inject/escape.h"

namespace tracefire::inject {
namespace {

namespace fs = std::filesystem;

int64_t clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

/// Prepares the tracing, or says why there is none.
std::string plan_tracing(const RunOptions& options, Variables* variables) {
  const char* taken = std::getenv("CUDA_INJECTION64_PATH");
  if (taken != nullptr && *taken != '\0') {
    return concat_text("another tool is injected already: CUDA_INJECTION64_PATH is ", taken);
  }
  const Result<std::string> library = find_inject_library();
  if (!library.ok()) return library.status().message();
  TracePlan plan;
  plan.library = *library;
  plan.folder = options.folder;
  plan.window_limit = options.window_limit;
  plan.graphs_by_node = options.graphs_by_node;
  plan.beat_ms = options.beat_ms;
  plan.cupti = find_cupti(options.command.front());
  *variables = trace_variables(plan);
  return "on";
}

}  // namespace

Result<std::string> make_folder(const std::string& wanted) {
  std::error_code failed;
  if (wanted.empty()) {
    const char* temporary = std::getenv("TMPDIR");
    std::string name = std::string(temporary != nullptr && *temporary == '/' ? temporary : "/tmp") +
                       "/tracefire-prove-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      return error(ErrorCode::kFileNotFound, "no folder could be made in ",
                   fs::path(name).parent_path().string(), ": ", std::strerror(errno));
    }
    return name;
  }
  const fs::path path = fs::absolute(wanted, failed);
  fs::create_directories(path.parent_path(), failed);
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return error(ErrorCode::kFileNotFound, path.string(),
                 " could not be made: ", std::strerror(errno));
  }
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat info {};
  const bool known = folder >= 0 && fstat(folder, &info) == 0;
  const bool mine = known && info.st_uid == geteuid();
  const bool empty = mine && fs::is_empty(path, failed) && !failed;
  const bool closed = empty && fchmod(folder, 0700) == 0;
  if (folder >= 0) close(folder);
  if (!closed) {
    return error(ErrorCode::kBadUsage, path.string(), " is ",
                 !known  ? "no folder"
                 : !mine ? "another user's folder"
                         : "not empty",
                 ". Expected a folder of yours that is new or empty.");
  }
  return path.string();
}

Status write_private(const std::string& path, std::string_view text) {
  const std::string fresh = path + ".new";
  const int file = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  bool good = file >= 0;
  while (good && !text.empty()) {
    const ssize_t n = write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    good = n > 0;
    if (good) text.remove_prefix(static_cast<size_t>(n));
  }
  int code = errno;
  if (file >= 0) close(file);
  if (good && rename(fresh.c_str(), path.c_str()) != 0) {
    good = false;
    code = errno;
  }
  if (good) return {};
  return error(ErrorCode::kFileNotFound, path, " could not be written: ", std::strerror(code));
}

Result<Session> run_and_record(const RunOptions& options) {
  Session session;
  session.command = redacted_words(options.command);
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  session.host = host;
  session.cores = static_cast<int>(std::thread::hardware_concurrency());
  session.environment = shown_environment();
  Variables variables;
  session.tracing = plan_tracing(options, &variables);

  nvidia::Stack stack(nvidia::SearchOptions::from_environment());
  Sampler sampler(stack);
  session.started_ns = clock_ns(CLOCK_REALTIME);
  const int64_t begun = clock_ns(CLOCK_MONOTONIC);
  session.ending = run_program(options.command, variables, options.sample_ms,
                               [&](pid_t pid) { sampler.look(pid); });
  session.wall_ns = clock_ns(CLOCK_MONOTONIC) - begun;

  session.nvml_problem = sampler.nvml_problem();
  session.driver_version = sampler.driver_version();
  session.gpus = sampler.gpus();
  session.samples = sampler.samples();
  for (const auto& [pid, seen] : sampler.processes()) session.processes.push_back(seen);
  session.processes_left_out = sampler.processes_left_out();
  TF_RETURN_IF_ERROR(
      write_private(options.folder + "/session.json",
                    to_json(session).dump(1, ' ', false, Json::error_handler_t::replace)));
  return session;
}

}  // namespace tracefire::inject
