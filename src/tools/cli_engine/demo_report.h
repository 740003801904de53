// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/cli/command.h"
#include "tools/cli_engine/kernel_check.h"

namespace tracefire::cli {

/// Runs `command`, one of the demos, under the profiler, with `--json FILE` added; keeps its result
/// in `json` where that is not empty, and writes a page about it to `html`. Returns the program's
/// exit status; without a result of it no page is written. Throws Error: kCannotWrite.
int run_and_report(const Context& context, const std::vector<std::string>& command,
                   const std::string& json, const std::string& html);

/// The page: devices and reason, accuracy, curve of the loss, where every step ran by which kernel,
/// shares of each device, times, memory, manifest. `demo` is a tracefire.demo/1 document.
std::string demo_page(const Json& demo, const ProfiledRun& run);

}  // namespace tracefire::cli
