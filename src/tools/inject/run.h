// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "tools/inject/environment.h"
#include "tools/inject/session.h"

namespace tracefire::inject {

struct RunOptions {
  std::vector<std::string> command;
  std::string folder;  ///< for the records: absolute, mode 0700, made by make_folder(); ""
                       ///< where none could be made: `no_folder` says why
  std::string no_folder;
  int64_t window_limit = -1;  ///< bytes of single events a process; -1: the usual 32 MiB
  bool graphs_by_node = true;
  int beat_ms = 0;         ///< how often records are collected; 0: the usual 250
  bool own_stdout = true;  ///< false: what the program writes to stdout goes to stderr
  std::string version;
  std::string commit;  ///< of Tracefire, for the manifest; may be empty
};

/// A fresh private folder: `wanted`, which must not exist or be empty, or one in TMPDIR, or where
/// that cannot be written in another place for such things, where `wanted` is empty. `made` gets
/// the folders that were not there before, the outermost first. Errors, which leave none of them
/// behind: kBadUsage for what is in use, kFileNotFound with the system's words.
Result<std::string> make_folder(const std::string& wanted,
                                std::vector<std::string>* made = nullptr);

/// Takes back the folders that make_folder() made and that nothing was written into.
void take_back_folders(const std::vector<std::string>& made);

/// Runs the program under the injected library and samples it; writes session.json into the folder
/// at the beginning, so that at the end its absence tells of a folder that was emptied, and again
/// at the end. Whatever prevents tracing is told in Session::tracing and the program runs all the
/// same. `lost` gets why the folder does not hold the records; it stays empty where it does.
Session run_and_record(const RunOptions& options, std::string* lost);

/// Watches a process that runs already, and its children, from outside: /proc and NVML alone. Ends
/// with the process, after `seconds` (0: never) or at Ctrl-C. Errors: kFileNotFound where there is
/// no such process or it belongs to somebody else.
Result<Session> watch_process(pid_t pid, double seconds, const std::string& folder);

/// What to tell the injected library; errors as find_inject_library().
Result<TracePlan> plan_tracing(const RunOptions& options);

/// Writes a file of mode 0600 as a whole: another name first, then renamed.
Status write_private(const std::string& path, std::string_view text);

}  // namespace tracefire::inject
