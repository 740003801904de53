// SPDX-License-Identifier: Apache-2.0
// The list of commands, in the order of the help. Those that need the engine:
// cli_engine/edition.cpp.
#include "tools/cli/edition.h"

namespace tracefire::cli {

Command check_command();
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
  std::vector<Command> all = edition().engine_commands();
  for (Command (*tool)() :
       {check_command, doctor_command, explain_command, manifest_command, monitor_command,
        prove_command, settings_command, version_command, completion_command, help_command}) {
    all.push_back(tool());
  }
  return all;
}

}  // namespace tracefire::cli
