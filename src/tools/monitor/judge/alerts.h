// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "health_table.h"
#include "tools/monitor/sample/history.h"

namespace tracefire::monitor {

/// An alert began or ended.
struct AlertEvent {
  health::Alert alert;
  bool firing = true;  ///< false: it has ended
  int gpu = 0;
  std::string gpu_name;
  std::string uuid;
  int64_t unix_us = 0;
  std::string text;  ///< "12 % busy over the last 60 s …", raw: escape it where it is shown
};

/// "idle_with_job,throttled" or "all". Errors: kBadUsage for an unknown name.
Result<std::set<health::Alert>> parse_alerts(std::string_view text);

/// Decides from each snapshot which alerts begin and end. Limits come from schema/health.json: an
/// alert ends when its share is better than the limit by alert_margin and its condition has been
/// over for alert_clear_seconds, so that a value at its limit is told once, not with every look.
/// What could not be read neither begins nor ends one. Used by one thread.
class AlertEngine {
 public:
  explicit AlertEngine(std::set<health::Alert> wanted) : wanted_(std::move(wanted)) {}

  std::vector<AlertEvent> evaluate(const Snapshot& snapshot, const History& history);
  /// What fires now, with the text of its beginning, and errors of the last minute.
  std::vector<AlertEvent> firing() const;

 private:
  struct State {
    int64_t since_us = -1;  ///< steady time at which the condition began; -1: it does not hold
    int64_t seen_us = -1;   ///< steady time at which it held last
    bool firing = false;
    AlertEvent event;
  };
  struct Known {
    double xid_errors = 0;
    double ecc_errors = 0;
    bool have_ecc = false;
    Gpu last;  ///< names only: what is said of a GPU that is no longer listed
  };
  enum class Holds { kNo, kYes, kUnknown };
  struct Finding {
    Holds holds = Holds::kUnknown;
    double after_seconds = 0;
    std::string text;
  };
  void judge_gpu(const Snapshot& snapshot, const Gpu& gpu, const std::vector<Point>& points,
                 Known* known, bool listed, std::vector<AlertEvent>* events);
  /// `firing`: the alert has begun, so the limit is that of its end.
  Finding look(health::Alert alert, const Gpu& gpu, const std::vector<Point>& points, bool firing,
               Known* known);

  const std::set<health::Alert> wanted_;
  int64_t now_us_ = 0;  ///< steady time of the newest snapshot
  std::map<std::pair<std::string, health::Alert>, State> states_;
  std::map<std::string, Known> known_;
};

/// JSON of an event for a webhook: schema tracefire.monitor.alert/1.
std::string alert_json(const AlertEvent& event, const std::string& host);
/// "alert low_utilization: GPU 0 (NVIDIA H200): …", escaped for a log line.
std::string alert_line(const AlertEvent& event);

}  // namespace tracefire::monitor
