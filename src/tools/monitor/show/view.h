// SPDX-License-Identifier: Apache-2.0
// What the terminal shows, as lines: also the text of --once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/monitor/judge/alerts.h"
#include "tools/monitor/sample/history.h"
#include "tools/monitor/show/styled.h"

namespace tracefire::monitor {

enum class SortKey { kGpu, kMemory, kSm, kCpu, kPid, kUser };
const char* sort_name(SortKey key);

struct ViewState {
  size_t width = 100;
  size_t height = 0;  ///< 0: as many lines as it takes
  bool unicode = true;
  SortKey sort = SortKey::kMemory;
  bool reverse = false;
  size_t selected = 0;  ///< row of the process table
  bool interactive = false;
  bool help = false;
  bool paused = false;
  bool read_only = false;
  double interval_seconds = 1;
  double stuck_seconds = 0;  ///< age of a read that does not end
  std::string message;       ///< in the last line
  Style message_style = Style::kPlain;
};

/// A process with the GPU that it is on.
struct ProcessRow {
  const Gpu* gpu;
  const GpuProcess* process;
};
/// All processes in the order of the table.
std::vector<ProcessRow> sorted_processes(const Snapshot& snapshot, SortKey key, bool reverse);

/// `snapshot` may be null: nothing was read yet.
std::vector<Line> draw(const Snapshot* snapshot, const History& history,
                       const std::vector<AlertEvent>& alerts, const ViewState& state);

}  // namespace tracefire::monitor
