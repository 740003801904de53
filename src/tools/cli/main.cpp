// SPDX-License-Identifier: Apache-2.0
#include "build_info.h"
#include "tools/cli/program.h"

int main(int argc, char** argv) {
  return tracefire::run_command_line(argc, argv, {tracefire::kVersion, tracefire::kCommit});
}
