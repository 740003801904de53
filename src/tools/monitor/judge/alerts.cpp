// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/judge/alerts.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "tools/monitor/judge/health.h"
#include "tools/monitor/show/escape.h"
#include "tools/monitor/show/format.h"

namespace tracefire::monitor {
namespace {

using health::Alert;

constexpr size_t kMaxPoints = 2000;
constexpr int kNotListed = 28;  // NVML_ERROR_GPU_NOT_FOUND
/// Part of the window that the points must cover.
constexpr double kCovered = 0.95;

std::string percent(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", ratio * 100);
  return text;
}

std::string cause_words(const Health& health) {
  if (health.causes.empty()) return "";
  const health::CauseRow& cause = health::kCauses[static_cast<int>(health.causes.front())];
  return "; likely cause: " + std::string(cause.text) +
         (health.culprit.empty() ? "" : ": " + health.culprit) + "; try: " + cause.cure;
}

bool is_moment(Alert alert) { return alert == Alert::kXidError || alert == Alert::kEccError; }

struct Window {
  double mean = 0;
  double seconds = 0;
  bool has_job = true;  ///< at every point
  int count = 0;
};
Window window_of(const std::vector<Point>& points, double seconds) {
  Window window;
  double sum = 0;
  for (auto it = points.rbegin(); it != points.rend(); ++it) {
    const double age = static_cast<double>(points.back().steady_us - it->steady_us) * 1e-6;
    if (age > seconds) break;
    window.has_job = window.has_job && it->has_job;
    window.seconds = age;
    if (std::isnan(it->busy)) continue;
    sum += it->busy;
    ++window.count;
  }
  if (window.count > 0) window.mean = sum / window.count;
  return window;
}

}  // namespace

Result<std::set<Alert>> parse_alerts(std::string_view text) {
  std::set<Alert> wanted;
  std::vector<std::string_view> names;
  for (const health::AlertRow& row : health::kAlerts) names.push_back(row.name);
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view name = text.substr(begin, end - begin);
    begin = end + 1;
    if (name == "all") {
      for (int i = 0; i < health::kAlertCount; ++i) wanted.insert(static_cast<Alert>(i));
      continue;
    }
    bool found = false;
    for (int i = 0; i < health::kAlertCount; ++i) {
      if (name == names[static_cast<size_t>(i)]) {
        wanted.insert(static_cast<Alert>(i));
        found = true;
      }
    }
    if (!found) {
      const std::string close = closest_name(name, names);
      std::string list = "all";
      for (const std::string_view n : names) list += ", " + std::string(n);
      return error(ErrorCode::kBadUsage, "there is no alert '", escape(name, Sink::kLog), "'.",
                   close.empty() ? "" : " Did you mean " + close + "?",
                   " Expected names of: ", list, ".");
    }
  }
  return wanted;
}

AlertEngine::Finding AlertEngine::look(Alert alert, const Gpu& gpu,
                                       const std::vector<Point>& points, bool firing,
                                       Known* known) {
  Finding f;
  const double margin = firing ? health::kAlertMargin : 0;
  const auto is = [&f](bool condition) { f.holds = condition ? Holds::kYes : Holds::kNo; };
  switch (alert) {
    case Alert::kIdleWithJob: {
      const Reading& busy = gpu[Metric::kBusy];
      if (!busy.ok() || gpu.process_code != Reading::kOk || points.empty()) return f;
      is(busy.value < health::kIdle + margin && points.back().has_job);
      f.after_seconds = health::kIdleSeconds;
      f.text = "idle for " + std::to_string(static_cast<int>(health::kIdleSeconds)) +
               " s while a process holds it" + cause_words(judge(gpu, points));
      return f;
    }
    case Alert::kLowUtilization: {
      const Window window = window_of(points, health::kBusyLowSeconds);
      if (window.count == 0 || window.seconds < kCovered * health::kBusyLowSeconds) return f;
      is(window.has_job && window.mean < health::kBusyLow + margin && window.mean >= health::kIdle);
      f.text = percent(window.mean) + " busy over the last " +
               std::to_string(static_cast<int>(health::kBusyLowSeconds)) + " s, below " +
               percent(health::kBusyLow) + cause_words(judge(gpu, points));
      return f;
    }
    case Alert::kMemoryNearlyFull: {
      const Reading& used = gpu[Metric::kMemoryUsed];
      const Reading& total = gpu[Metric::kMemoryTotal];
      if (!used.ok() || !total.ok() || total.value <= 0) return f;
      is(used.value >= (health::kMemoryFull - margin) * total.value);
      f.text = "memory " + percent(used.value / total.value) + " full: " + bytes_text(used.value) +
               " of " + bytes_text(total.value);
      return f;
    }
    case Alert::kMemorySwapping: {
      const GpuProcess* paging = paging_process(gpu);
      is(migrates(gpu) || paging != nullptr);
      const health::Cause cause =
          migrates(gpu) ? health::Cause::kUnifiedMemory : health::Cause::kHostPaging;
      const health::CauseRow& row = health::kCauses[static_cast<int>(cause)];
      f.text = std::string(row.text) + "; try: " + row.cure;
      return f;
    }
    case Alert::kThrottled:
      if (gpu.throttle_code != Reading::kOk) return f;
      is((gpu.throttle & throttle_fault_bits()) != 0);
      f.after_seconds = health::kThrottleSeconds;
      f.text = "clocks are held down: " + throttle_words(gpu.throttle);
      return f;
    case Alert::kSharedGpu:
      if (gpu.process_code != Reading::kOk) return f;
      is(is_shared(gpu));
      f.text = std::to_string(gpu.processes.size()) + " processes of different jobs use it";
      return f;
    case Alert::kXidError: {
      const Reading& count = gpu[Metric::kXidErrors];
      if (!count.ok()) return f;
      const bool more = count.value > known->xid_errors;
      known->xid_errors = count.value;
      is(more);
      f.text = "the driver reported Xid " +
               std::to_string(static_cast<int>(gpu[Metric::kXidLast].or_else(0))) +
               "; see the kernel log: dmesg | grep -i xid";
      return f;
    }
    case Alert::kEccError: {
      const Reading& count = gpu[Metric::kEccUncorrected];
      if (!count.ok()) return f;
      is(known->have_ecc && count.value > known->ecc_errors);
      known->ecc_errors = count.value;
      known->have_ecc = true;
      f.text = std::to_string(static_cast<int64_t>(count.value)) +
               " uncorrectable memory errors since the driver was loaded";
      return f;
    }
    case Alert::kGpuLost:
      is(gpu.lost);
      f.text = std::string("it does not answer: ") + Reading::missing(gpu.lost_code).why();
      return f;
  }
  return f;
}

void AlertEngine::judge_gpu(const Snapshot& snapshot, const Gpu& gpu,
                            const std::vector<Point>& points, Known* known, bool listed,
                            std::vector<AlertEvent>* events) {
  for (const Alert alert : wanted_) {
    if (!listed && alert != Alert::kGpuLost) continue;
    State& state = states_[{history_key(gpu), alert}];
    const Finding finding = look(alert, gpu, points, state.firing, known);
    if (finding.holds == Holds::kUnknown) continue;
    const bool holds = finding.holds == Holds::kYes;
    const int64_t now = snapshot.steady_us;
    if (holds && state.since_us < 0) state.since_us = now;
    if (holds) state.seen_us = now;
    const bool over = static_cast<double>(now - state.seen_us) * 1e-6 >= health::kAlertClearSeconds;
    if (!holds && (state.since_us < 0 || over)) state.since_us = -1;
    const double held = static_cast<double>(now - state.since_us) * 1e-6;
    const bool begins = holds && held >= finding.after_seconds;
    const bool firing = begins || (state.firing && state.since_us >= 0);
    // Errors are moments, not states: each is an event of its own and does not end.
    const bool moment = is_moment(alert);
    if (moment ? !begins : firing == state.firing) {
      state.firing = firing;
      continue;
    }
    state.firing = firing;
    state.event = AlertEvent{alert,
                             firing,
                             gpu.index,
                             gpu.name,
                             gpu.uuid,
                             snapshot.unix_us,
                             firing ? finding.text : "ended"};
    events->push_back(state.event);
  }
}

std::vector<AlertEvent> AlertEngine::evaluate(const Snapshot& snapshot, const History& history) {
  now_us_ = snapshot.steady_us;
  std::vector<AlertEvent> events;
  std::set<std::string> listed;
  for (const Gpu& gpu : snapshot.gpus) {
    const std::string key = history_key(gpu);
    Known& known = known_[key];
    known.last.index = gpu.index;
    known.last.name = gpu.name;
    known.last.uuid = gpu.uuid;
    judge_gpu(snapshot, gpu, history.points(key, kMaxPoints), &known, true, &events);
    listed.insert(key);
  }
  // A GPU that fell off the bus may vanish from the list instead of answering that it is lost.
  for (auto& [key, known] : known_) {
    if (listed.count(key) != 0) continue;
    for (const Alert alert : wanted_) {
      if (alert != Alert::kGpuLost) states_.erase({key, alert});  // nothing more is known of these
    }
    known.last.lost = true;
    known.last.lost_code = kNotListed;
    judge_gpu(snapshot, known.last, {}, &known, false, &events);
  }
  return events;
}

std::vector<AlertEvent> AlertEngine::firing() const {
  std::vector<AlertEvent> list;
  for (const auto& [key, state] : states_) {
    // An error is over at once but has to be seen: pages and the live view look now and then.
    const double age = static_cast<double>(now_us_ - state.seen_us) * 1e-6;
    const bool recent =
        is_moment(key.second) && state.seen_us >= 0 && age < health::kAlertMomentSeconds;
    if (state.firing || recent) list.push_back(state.event);
  }
  return list;
}

std::string alert_json(const AlertEvent& event, const std::string& host) {
  const health::AlertRow& row = health::kAlerts[static_cast<int>(event.alert)];
  const nlohmann::ordered_json json = {{"schema", "tracefire.monitor.alert/1"},
                                       {"time", time_text(event.unix_us)},
                                       {"host", clean(host)},
                                       {"alert", row.name},
                                       {"severity", row.severity},
                                       {"state", event.firing ? "firing" : "ended"},
                                       {"gpu", event.gpu},
                                       {"gpu_name", clean(event.gpu_name)},
                                       {"uuid", clean(event.uuid)},
                                       {"text", clean(event.text)}};
  return json.dump();
}

std::string alert_line(const AlertEvent& event) {
  const health::AlertRow& row = health::kAlerts[static_cast<int>(event.alert)];
  return escape(std::string("alert ") + row.name + ": GPU " + std::to_string(event.gpu) + " (" +
                    event.gpu_name + "): " + event.text,
                Sink::kLog);
}

}  // namespace tracefire::monitor
