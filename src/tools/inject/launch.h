// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace tracefire::inject {

/// Exit statuses as shells give them.
inline constexpr int kCannotExecute = 126;
inline constexpr int kCommandNotFound = 127;
inline constexpr int kBrokenPipe = 141;  ///< 128 + SIGPIPE: the reader of the output went away

/// How a program ended.
struct Ending {
  int status = 0;           ///< the program's own, 128 + signal, 126 or 127
  bool known = true;        ///< false where another process started it: its parent alone is told
  bool ran_on = false;      ///< processes of the program still ran when it had ended
  bool over = true;         ///< false where it was still running at the last look
  int signal = 0;           ///< that ended it, 0 for none
  std::string start_error;  ///< why it could not be started; empty where it was
  int64_t user_ns = 0;      ///< CPU time of the program and its waited-for children
  int64_t system_ns = 0;
  int64_t resident_peak = 0;  ///< bytes, of the largest single process
};

/// What execvp() would run under a name.
struct FoundProgram {
  std::string path;  ///< empty where there is a problem
  int problem = 0;   ///< errno: why it cannot be started; 0 where it seems that it can
};
/// Searches PATH for a name without a slash. Nothing is run.
FoundProgram find_program(const std::string& name);

/// Runs `command` (searched in PATH) with additions to this process's environment and waits for it.
/// The program keeps terminal, process group, signal mask and open files. While it runs, SIGINT and
/// SIGQUIT are left to it (the terminal sends them to both), SIGTERM, SIGHUP, SIGUSR1, SIGUSR2,
/// SIGCONT and SIGWINCH are passed on. `tick` is called with the program's process id about every
/// `period_ms`, and never after the end. With `own_stdout` false what it and its children write to
/// stdout goes to stderr.
Ending run_program(const std::vector<std::string>& command,
                   const std::vector<std::pair<std::string, std::string>>& environment,
                   int period_ms, bool own_stdout, const std::function<void(pid_t)>& tick);

}  // namespace tracefire::inject
