// SPDX-License-Identifier: Apache-2.0
// Snapshots as text that programs read: JSON, CSV, Prometheus.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/monitor/judge/alerts.h"
#include "tools/monitor/sample/history.h"
#include "tools/monitor/sample/snapshot.h"

namespace tracefire::monitor {

struct JsonOptions {
  bool commands = true;  ///< command lines of processes; the web server leaves them out
};

/// Schema tracefire.monitor/1 (schema/cli/monitor.json).
nlohmann::ordered_json snapshot_json(const Snapshot& snapshot, const History& history,
                                     const std::vector<AlertEvent>& alerts,
                                     const JsonOptions& options = {});
/// Schema tracefire.monitor.history/1: columns of numbers of the last `seconds`, oldest first, at
/// most `most` points a GPU.
nlohmann::ordered_json history_json(const Snapshot& snapshot, const History& history,
                                    double seconds, size_t most);

/// Columns of csv_rows(), without a line end.
std::string csv_header();
/// One line a GPU, each with its line end; an empty cell is a value that could not be read.
std::string csv_rows(const Snapshot& snapshot);

struct PrometheusOptions {
  bool dcgm_names = false;  ///< also the names of NVIDIA's DCGM exporter
};
/// Counters of the monitor itself.
struct MonitorFacts {
  std::string version;
  std::string commit;
  uint64_t samples = 0;
  double stuck_seconds = 0;
  uint64_t requests = 0;
};
/// Text format 0.0.4. Labels are index, UUID and instance of a GPU: as many series as there is
/// hardware, whatever processes come and go.
std::string prometheus_text(const Snapshot* snapshot, const MonitorFacts& facts,
                            const PrometheusOptions& options);

}  // namespace tracefire::monitor
