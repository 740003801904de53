// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/monitor/options.h"

namespace tracefire::monitor {

enum ExitStatus : int {
  kSuccess = 0,
  kUnreadable = 1,  ///< NVML could not be read, or the answer not be written; it says why
  kWrongUsage = 2,
  kAlert = 3,  ///< --fail-on-alert saw one
  kBrokenPipe = 141,
};

/// What the program's build knows of itself, for tracefire_build_info.
struct Build {
  std::string version;
  std::string commit;
};

/// Does what the options say. Data goes to stdout, talk to stderr. Returns the exit status; never
/// throws. `options` have passed check_options().
int run(const Options& options, const Build& build);

}  // namespace tracefire::monitor
