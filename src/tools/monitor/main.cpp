// SPDX-License-Identifier: Apache-2.0
// tracefire-monitor: the monitor as a program of its own, which needs no libtracefire.so.
#include "build_info.h"
#include "core/base/log.h"
#include "tools/monitor/monitor.h"

int main(int argc, char** argv) {
  for (const tracefire::Status& problem : tracefire::settings_problems()) {
    tracefire::log_line(tracefire::LogLevel::kWarning, problem.str());
  }
  return tracefire::monitor::run_arguments({argv + 1, argv + argc},
                                           {tracefire::kVersion, tracefire::kCommit});
}
