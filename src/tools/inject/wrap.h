// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/inject/environment.h"

namespace tracefire::inject {

/// A command that carries the tracing to where its program runs.
struct WrappedCommand {
  std::vector<std::string> command;
  std::vector<std::string> notes;  ///< what the reader must know about this way of running
  /// The program runs elsewhere, or without the variables: without records nothing is known of it.
  bool lost = false;
  Variables variables;  ///< that the command needs beside those of the tracing
};

/// Adds to `docker run`, `podman run`, `nerdctl run`, `docker compose run` and `apptainer exec|run`
/// (singularity too) the options that bring the library, the folder and the variables into the
/// container, also behind env, sudo, nice, timeout and the like (prefix.h); `env -i` gets the
/// variables. Any other command comes back as it is, with a note where the tracing would not pass
/// through it (sudo, ssh, sbatch, srun with its own environment, kubectl, `docker exec`, a shell
/// that starts containers): print_env() has the lines for these.
WrappedCommand wrap_command(const std::vector<std::string>& command, const TracePlan& plan);

/// What `--print-env` prints: the variables for a shell, and the lines for sudo, ssh, mpirun, srun,
/// docker, sbatch and kubectl. `command` may be empty.
std::string print_env(const TracePlan& plan, const std::vector<std::string>& command);

/// A word for a POSIX shell.
std::string shell_word(const std::string& word);

}  // namespace tracefire::inject
