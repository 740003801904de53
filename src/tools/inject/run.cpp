// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/run.h"

#include <fcntl.h>
#include <signal.h>
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
#include "tools/inject/prefix.h"
#include "tools/inject/wrap.h"
#include "tools/report/manifest.h"

namespace tracefire::inject {
namespace {

namespace fs = std::filesystem;

constexpr int kLookMs = 50;  // children that end sooner, beside others that work, weigh little

int64_t clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

void take_over(const Sampler& sampler, nvidia::Stack& stack, Session& session) {
  if (sampler.gpus().empty()) {
    const nvidia::Inventory& found = stack.inventory();
    if (found.problem) session.gpu_problem = found.problem->line();
  }
  session.nvml_problem = sampler.nvml_problem();
  session.driver_version = sampler.driver_version();
  session.gpus = sampler.gpus();
  if (session.gpus.empty()) {  // a program may end before NVML has started
    for (const nvidia::Gpu& gpu : stack.inventory().gpus) {
      session.gpus.push_back({gpu.name, gpu.uuid, static_cast<int64_t>(gpu.memory_bytes), 0});
    }
  }
  session.samples = sampler.samples();
  for (const auto& [pid, seen] : sampler.processes()) session.processes.push_back(seen);
  session.processes_left_out = sampler.processes_left_out();
  session.others = sampler.others();
  session.paging = sampler.paging();
}

/// The driver's part comes from NVML: starting the driver would cost time and tell no more.
Json manifest_of(const Session& session, const std::string& commit) {
  report::ManifestFacts facts;
  facts.commit = commit;
  facts.driver = false;
  Json out = Json::parse(report::manifest(facts));
  if (!session.driver_version.empty()) out["driver"] = session.driver_version;
  for (const GpuSeen& gpu : session.gpus) {
    out["gpus"].push_back({{"device", nullptr},
                           {"name", gpu.name},
                           {"capability", nullptr},
                           {"memory_bytes", gpu.memory},
                           {"uuid", gpu.uuid.empty() ? Json() : Json(gpu.uuid)}});
  }
  if (!session.gpu_problem.empty()) out["why_no_gpu"] = session.gpu_problem;
  return out;
}

Session begin_session() {
  Session session;
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  session.host = host;
  session.cores = static_cast<int>(std::thread::hardware_concurrency());
  session.started_ns = clock_ns(CLOCK_REALTIME);
  return session;
}

Status write_session(const Session& session, const std::string& folder) {
  return write_private(folder + "/session.json",
                       to_json(session).dump(1, ' ', false, Json::error_handler_t::replace));
}

/// A zombie has ended: only its parent does not know yet.
bool is_running(pid_t pid) {
  if (kill(pid, 0) != 0 && errno == ESRCH) return false;
  const char state = process_state(pid);
  return state != 'Z' && state != 'X';
}

/// Makes `path`, private, and what is missing above it; `made` gets what was.
Status make_folders(const fs::path& path, std::vector<std::string>* made) {
  const auto failed = [&](int code) {
    return error(ErrorCode::kFileNotFound, path.string(),
                 " could not be made: ", std::strerror(code));
  };
  fs::path above;
  for (const fs::path& name : path.parent_path()) {
    above /= name;
    const int problem = mkdir(above.c_str(), 0777) == 0 ? 0 : errno;
    std::error_code unknown;
    if (problem == 0) {
      made->push_back(above.string());
    } else if (!fs::is_directory(above, unknown)) {
      return failed(problem == EEXIST ? ENOTDIR : problem);
    }
  }
  if (mkdir(path.c_str(), 0700) == 0) {
    made->push_back(path.string());
  } else if (errno != EEXIST) {
    return failed(errno);
  }
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat info {};
  const bool known = folder >= 0 && fstat(folder, &info) == 0;
  const bool mine = known && info.st_uid == geteuid();
  std::error_code unknown;
  const bool empty = mine && fs::is_empty(path, unknown) && !unknown;
  const int problem = empty && fchmod(folder, 0700) != 0 ? errno : 0;
  if (folder >= 0) close(folder);
  if (problem != 0) {
    return error(ErrorCode::kFileNotFound, path.string(),
                 " could not be made this user's alone: ", std::strerror(problem));
  }
  if (empty) return {};
  return error(ErrorCode::kBadUsage, path.string(), " is ",
               !known  ? "no folder"
               : !mine ? "another user's folder"
                       : "not empty",
               ". Expected a folder of yours that is new or empty.");
}

}  // namespace

Result<std::string> make_folder(const std::string& wanted, std::vector<std::string>* made) {
  std::error_code failed;
  if (wanted.empty()) {
    std::string tried;
    for (const char* place :
         {static_cast<const char*>(std::getenv("TMPDIR")), "/tmp", "/var/tmp", "/dev/shm"}) {
      if (place == nullptr || *place != '/') continue;
      std::string name = std::string(place) + "/tracefire-prove-XXXXXX";
      if (mkdtemp(name.data()) != nullptr) return name;
      tried += concat_text(tried.empty() ? "" : "; ", place, ": ", std::strerror(errno));
    }
    return error(ErrorCode::kFileNotFound, "no folder could be made (", tried,
                 "). Set TMPDIR to a folder that you can write to.");
  }
  const fs::path path = fs::absolute(wanted, failed);
  std::vector<std::string> fresh;
  const Status usable = make_folders(path, &fresh);
  if (!usable.ok()) {
    take_back_folders(fresh);
    return usable;
  }
  if (made != nullptr) *made = fresh;
  return path.string();
}

void take_back_folders(const std::vector<std::string>& made) {
  for (auto it = made.rbegin(); it != made.rend() && rmdir(it->c_str()) == 0; ++it) {
  }
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
  if (file >= 0) unlink(fresh.c_str());
  return error(ErrorCode::kFileNotFound, path, " could not be written: ", std::strerror(code));
}

Result<TracePlan> plan_tracing(const RunOptions& options) {
  TracePlan plan;
  TF_ASSIGN(plan.library, find_inject_library());
  plan.folder = options.folder;
  plan.window_limit = options.window_limit;
  plan.graphs_by_node = options.graphs_by_node;
  plan.beat_ms = options.beat_ms;
  if (!options.command.empty()) {
    plan.cupti = find_cupti(options.command[program_of(options.command)]);
  }
  return plan;
}

Session run_and_record(const RunOptions& options, std::string* lost) {
  Session session = begin_session();
  session.command = redacted_words(options.command);
  for (std::string& word : session.command) word = printable(word);  // arguments are outside text
  session.version = options.version;
  session.environment = shown_environment();
  std::vector<std::string> command = options.command;
  // Tracefire's own programs write their records there even where CUPTI cannot be used.
  Variables variables;
  if (!options.folder.empty()) variables = {{"TRACEFIRE_PROVE_DIR", options.folder}};
  const char* taken = std::getenv("CUDA_INJECTION64_PATH");
  if (options.folder.empty()) {
    session.tracing = "nothing can be recorded: " + options.no_folder;
  } else if (taken != nullptr && *taken != '\0') {
    session.tracing =
        concat_text("another tool is injected already: CUDA_INJECTION64_PATH is ", taken);
  } else if (const Result<TracePlan> plan = plan_tracing(options); !plan.ok()) {
    session.tracing = plan.status().message();
  } else {
    const WrappedCommand wrapped = wrap_command(command, *plan);
    command = wrapped.command;
    session.notes = wrapped.notes;
    session.elsewhere = wrapped.lost;
    variables = trace_variables(*plan);
    variables.insert(variables.end(), wrapped.variables.begin(), wrapped.variables.end());
    session.tracing = "on";
  }

  session.ending.known = session.ending.over = false;
  Status written;
  if (!options.folder.empty()) written = write_session(session, options.folder);
  nvidia::Stack stack(nvidia::SearchOptions::from_environment());
  Sampler sampler(stack);
  const int64_t begun = clock_ns(CLOCK_MONOTONIC);
  session.ending = run_program(command, variables, kLookMs, options.own_stdout,
                               [&](pid_t pid) { sampler.look(pid); });
  session.wall_ns = clock_ns(CLOCK_MONOTONIC) - begun;
  take_over(sampler, stack, session);
  session.manifest = manifest_of(session, options.commit);
  if (options.folder.empty()) return session;
  std::error_code unknown;
  if (written.ok() && !fs::exists(options.folder + "/session.json", unknown)) {
    *lost = options.folder + " was removed or emptied while the program ran";
  }
  struct stat info {};
  if (lost->empty() && stat(options.folder.c_str(), &info) == 0 && (info.st_mode & 077) != 0) {
    *lost = options.folder +
            " was opened to others while the program ran: nothing is recorded in such a folder";
  }
  written = write_session(session, options.folder);
  if (lost->empty() && !written.ok()) *lost = written.message();
  return session;
}

Result<Session> watch_process(pid_t pid, double seconds, const std::string& folder) {
  if (pid <= 0 || !is_running(pid)) {
    return error(ErrorCode::kFileNotFound, "there is no process ", pid);
  }
  Session session = begin_session();
  session.tracing = "the process was watched from outside: CUPTI cannot be loaded into it";
  sigset_t stop;
  sigset_t mask;
  sigemptyset(&stop);
  for (const int s : {SIGINT, SIGTERM}) sigaddset(&stop, s);
  sigprocmask(SIG_BLOCK, &stop, &mask);
  nvidia::Stack stack(nvidia::SearchOptions::from_environment());
  Sampler sampler(stack);
  const int64_t begun = clock_ns(CLOCK_MONOTONIC);
  const auto elapsed = [&] { return clock_ns(CLOCK_MONOTONIC) - begun; };
  const timespec period{0, kLookMs * 1000000L};
  do {
    sampler.look(pid);
    if (sigtimedwait(&stop, nullptr, &period) > 0) break;
  } while ((seconds <= 0 || static_cast<double>(elapsed()) < seconds * 1e9) && is_running(pid));
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  session.wall_ns = elapsed();
  take_over(sampler, stack, session);
  if (session.processes.empty()) {
    return error(ErrorCode::kFileNotFound, "process ", pid, " ended before it could be looked at");
  }
  session.ending.known = false;
  session.ending.over = !is_running(pid);
  for (const ProcessSeen& p : session.processes) {
    if (p.pid == pid) session.command = {redacted(printable(p.command))};
    session.ending.user_ns += p.cpu_ns;
  }
  if (!folder.empty()) TF_RETURN_IF_ERROR(write_session(session, folder));
  return session;
}

}  // namespace tracefire::inject
