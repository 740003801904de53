// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/prove.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/inject/escape.h"
#include "tools/inject/launch.h"
#include "tools/inject/report.h"
#include "tools/inject/run.h"
#include "tools/inject/wrap.h"

namespace tracefire::inject {
namespace {

namespace fs = std::filesystem;

constexpr int kRefused = 2;

int refuse(const Status& status) {
  std::fprintf(stderr, "tracefire prove: %s\n", printable(status.str()).c_str());
  return kRefused;
}

/// Writes to stdout; an exit status. What cannot be written is said, but for a reader that went
/// away.
int put(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return 0;
  if (errno == EPIPE) return kBrokenPipe;
  std::fprintf(stderr, "tracefire prove: standard output cannot be written: %s\n",
               std::strerror(errno));
  return 1;
}

/// session.json of the folder. Records without one come from variables that were set by hand.
Result<Session> read_session_file(const std::string& folder) {
  const std::string path = folder + "/session.json";
  std::error_code unknown;
  std::ifstream file;
  if (fs::is_regular_file(path, unknown)) file.open(path, std::ios::binary);  // a pipe would wait
  if (file.is_open()) {
    std::stringstream text;
    text << file.rdbuf();
    return read_session(text.str());
  }
  Damage damage;
  TF_ASSIGN(const std::vector<ProcessRecord> records, read_records(folder, &damage));
  if (records.empty()) {
    return error(ErrorCode::kFileNotFound, printable(folder), " holds neither session.json nor ",
                 "records. Expected a folder that `tracefire prove --out` made.", damage.str());
  }
  Session session;
  session.tracing = "on";
  session.host = records[0].host;
  session.command = redacted_words({printable(records[0].command)});
  session.started_ns = static_cast<int64_t>(records[0].first.real);
  uint64_t last = records[0].first.real;
  for (const ProcessRecord& r : records) {
    last = std::max(last, r.now.real);
    session.ending.user_ns += static_cast<int64_t>(r.cpu);
  }
  session.wall_ns = static_cast<int64_t>(last - records[0].first.real);
  session.notes = {"the programs were not started by `prove`: nothing is known but their records"};
  return session;
}

Status write_reports(const Report& report, const std::string& folder) {
  TF_RETURN_IF_ERROR(write_private(folder + "/report.txt", report_text(report)));
  TF_RETURN_IF_ERROR(write_private(
      folder + "/report.json",
      report_json(report).dump(1, ' ', false, Json::error_handler_t::replace) + "\n"));
  TF_RETURN_IF_ERROR(write_private(folder + "/report.html", report_html(report)));
  TF_RETURN_IF_ERROR(write_private(folder + "/trace.json", report_perfetto(report)));
  // Where TensorBoard looks: tensorboard --logdir DIR/tensorboard.
  const std::string profile = folder + "/tensorboard/plugins/profile/prove";
  if (report.processes.empty()) return {};
  std::error_code failed;
  fs::create_directories(profile, failed);
  fs::permissions(folder + "/tensorboard", fs::perms::owner_all, failed);
  if (failed) {
    return error(ErrorCode::kFileNotFound, profile, " could not be made: ", failed.message());
  }
  for (const auto& [name, bytes] : report_tensorboard(report)) {
    TF_RETURN_IF_ERROR(write_private(profile + "/" + name, bytes));
  }
  return {};
}

/// What was seen for certain meets partly-on-gpu; on-gpu needs the whole evidence.
bool verdict_met(const Report& report, const std::string& require) {
  if (require.empty()) return true;
  if (require == "partly-on-gpu") {
    return report.place == Place::kOnGpu || report.place == Place::kPartlyOnGpu;
  }
  return report.place == Place::kOnGpu && report.complete();
}

void say_missed(const Report& report, const ProveRequest& request) {
  if (request.quiet) return;
  std::string why = std::string("the verdict is ") + place_name(report.place);
  if (!report.complete()) why += ", the evidence is incomplete: " + report.incomplete.front();
  std::fprintf(stderr, "tracefire prove: --require %s is not met: %s\n", request.require.c_str(),
               why.c_str());
}

/// What a record or report that could not be kept means, and the cure.
void say_not_kept(const std::string& why) {
  std::fprintf(stderr,
               "tracefire prove: the record is not kept: %s. The program ran all the same and the "
               "exit status is its own. Name a folder with --out that can be written to and that "
               "stays.\n",
               printable(why).c_str());
}

/// Where the reports of a run go.
struct Kept {
  std::string records;  ///< folder that is analysed; "" for none
  std::string reports;  ///< folder that gets the reports; "" for none
  std::string lost;     ///< why the records are not whole; empty where they are
};

/// Analyses what was recorded and tells it. A run has its status whatever becomes of its reports.
int tell(const ProveRequest& request, const Kept& kept, const Session& session,
         std::string* document) {
  const bool ran = request.from.empty();
  if (ran) ::signal(SIGPIPE, SIG_IGN);  // the program has ended, and its status is not lost
  Damage damage;
  Result<std::vector<ProcessRecord>> records = std::vector<ProcessRecord>();
  if (!kept.records.empty()) records = read_records(kept.records, &damage);
  if (!records.ok() && !ran) return refuse(records.status());
  if (!kept.lost.empty()) {
    damage.traces.push_back(kept.lost);
  } else if (!records.ok()) {
    damage.traces.push_back(records.status().message());
  }
  if (!records.ok()) records = std::vector<ProcessRecord>();
  const Report report = analyse(session, *records, damage);
  int told = 0;
  if (request.json || document != nullptr) {
    const std::string text =
        report_json(report).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    if (document != nullptr) *document = text;
    if (request.json) told = put(text);
  }
  const bool started = session.ending.start_error.empty();
  if (!request.quiet && started && !(request.json && !ran)) {
    if (ran) {
      std::fputs(report_text(report, request.err_look).c_str(), stderr);
    } else {
      told = std::max(told, put(report_text(report, request.out_look)));
    }
  }
  if (!kept.lost.empty()) {
    say_not_kept(kept.lost);
  } else if (!kept.reports.empty() && started) {
    const Status status = write_reports(report, kept.reports);
    if (!status.ok() && !ran) return refuse(status);
    if (!status.ok()) say_not_kept(status.message());
  }
  const int status = ran ? session.ending.status : 0;
  if (status == 0 && told != 0) return told;
  if (status != 0 || verdict_met(report, request.require)) return status;
  say_missed(report, request);
  return kMissedVerdict;
}

int analyse_again(const ProveRequest& request, std::string* document) {
  const Result<Session> session = read_session_file(request.from);
  if (!session.ok()) return refuse(session.status());
  Kept kept{request.from, "", ""};
  std::vector<std::string> fresh;
  if (!request.out.empty()) {
    const Result<std::string> made = make_folder(request.out, &fresh);
    if (!made.ok()) return refuse(made.status());
    kept.reports = *made;
  }
  const int status = tell(request, kept, *session, document);
  if (status == kRefused) take_back_folders(fresh);
  return status;
}

RunOptions run_options(const ProveRequest& request) {
  RunOptions options;
  options.command = request.command;
  options.window_limit = request.window_limit;
  options.graphs_by_node = request.graphs_by_node;
  options.beat_ms = request.beat_ms;
  options.own_stdout = request.own_stdout;
  options.version = request.version;
  options.commit = request.commit;
  return options;
}

/// Runs or watches with the records in `kept.records`; the exit status.
int observe(const ProveRequest& request, RunOptions options, Kept kept, std::string* document) {
  if (request.attach > 0) {
    const Result<Session> session =
        watch_process(static_cast<pid_t>(request.attach), request.seconds, kept.records);
    if (!session.ok()) return refuse(session.status());
    return tell(request, kept, *session, document);
  }
  std::string lost;
  options.folder = kept.records;
  options.no_folder = kept.lost;
  const Session session = run_and_record(options, &lost);
  if (kept.lost.empty()) kept.lost = lost;
  if (!session.ending.start_error.empty()) {
    std::fprintf(stderr, "tracefire prove: %s: %s\n", printable(request.command.front()).c_str(),
                 session.ending.start_error.c_str());
  }
  try {
    return tell(request, kept, session, document);
  } catch (const std::exception& failure) {  // the program has ended: its status is not lost
    say_not_kept(failure.what());
    return session.ending.status;
  }
}

}  // namespace

int prove(const ProveRequest& request, std::string* document) {
  if (!request.from.empty()) return analyse_again(request, document);
  std::vector<std::string> fresh;
  Result<std::string> folder = make_folder(request.out, &fresh);
  // Who names a folder wants the records; a long run without them is worse than none.
  const bool wanted = !request.out.empty() || request.print_env || request.attach > 0;
  if (!folder.ok() && wanted) return refuse(folder.status());
  RunOptions options = run_options(request);
  if (request.print_env) {
    options.folder = *folder;
    const Result<TracePlan> plan = plan_tracing(options);
    if (!plan.ok()) {
      take_back_folders(fresh);
      return refuse(plan.status());
    }
    return put(print_env(*plan, request.command));
  }
  Kept kept;
  if (!folder.ok()) {
    kept.lost = folder.status().message();
  } else {
    kept.records = *folder;
    if (!request.out.empty()) kept.reports = *folder;
  }
  const int status = observe(request, std::move(options), kept, document);
  if (status == kRefused) take_back_folders(fresh);
  if (request.out.empty() && folder.ok()) {
    std::error_code ignored;
    fs::remove_all(*folder, ignored);
  }
  return status;
}

}  // namespace tracefire::inject
