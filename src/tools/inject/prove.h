// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tracefire::inject {

/// What `tracefire prove` is asked for.
struct ProveRequest {
  std::vector<std::string> command;  ///< the program and its arguments
  std::string out;                   ///< folder that keeps the records and reports; "" for none
  int64_t window_limit = -1;
  bool graphs_by_node = true;
  int beat_ms = 0;
};

/// Runs the program, records it, and returns the exit status: the program's own (128 + signal, 126,
/// 127).
int prove(const ProveRequest& request);

}  // namespace tracefire::inject
