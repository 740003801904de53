// SPDX-License-Identifier: Apache-2.0
// The list of commands, in the order of the help.
#include "tools/cli/command.h"

namespace tracefire::cli {

Command demo_command();
Command check_command();
Command devices_command();
Command doctor_command();
Command explain_command();
Command manifest_command();
Command monitor_command();
Command prove_command();
Command settings_command();
Command version_command();
Command completion_command();
Command help_command();

std::vector<Command> all_commands() {
  return {demo_command(),     check_command(),    devices_command(),    doctor_command(),
          explain_command(),  manifest_command(), monitor_command(),    prove_command(),
          settings_command(), version_command(),  completion_command(), help_command()};
}

}  // namespace tracefire::cli
