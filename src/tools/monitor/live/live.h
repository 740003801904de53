// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "tools/monitor/options.h"
#include "tools/monitor/sample/sampler.h"
#include "tools/monitor/show/view.h"

namespace tracefire::monitor {

/// The live view until the user quits or a signal comes. `each` is called with every new snapshot
/// and returns the alerts to show, or nothing where the view is to end. Returns the exit status.
int run_live(const Options& options, bool color, Sampler& sampler, History& history,
             const std::function<std::optional<std::vector<AlertEvent>>(const Snapshot&)>& each);

/// Sends a signal to the process that was shown, not to another that has its number by now.
/// `started` is HostProcess::started. Returns "" or what went wrong.
std::string signal_process(unsigned pid, int64_t started, int signal);

}  // namespace tracefire::monitor
