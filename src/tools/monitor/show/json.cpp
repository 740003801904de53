// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/monitor/judge/health.h"
#include "tools/monitor/show/escape.h"
#include "tools/monitor/show/format.h"
#include "tools/monitor/show/report.h"

namespace tracefire::monitor {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kHealthPoints = 2000;

/// Whole numbers stay whole; the rest keeps as many digits as the sensors have.
Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < 9e15) return static_cast<int64_t>(value);
  return std::round(value * 1000) / 1000;
}

Json number(const Reading& reading, double scale = 1) {
  return reading.ok() ? number(reading.value * scale) : Json(nullptr);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(clean(text));
}

/// The metrics themselves, and under "missing" why those that are null are.
void add_readings(const Readings& readings, Json* out) {
  Json missing = Json::object();
  for (const MetricRow& row : metric_rows()) {
    const Reading& reading = readings[static_cast<size_t>(row.metric)];
    (*out)[row.key] = number(reading, row.key_scale);
    if (!reading.ok()) missing[row.key] = reading.why();
  }
  (*out)["missing"] = std::move(missing);
}

Json process_json(const GpuProcess& p, const JsonOptions& options) {
  Json out = {{"pid", p.pid},
              {"kind", process_kind_name(p.kind)},
              {"name", text_or_null(p.host.name)},
              {"user", text_or_null(p.host.user)},
              {"container", text_or_null(p.host.container)}};
  if (options.commands) out["command"] = text_or_null(p.host.command);
  out["gpu_instance"] = p.gpu_instance < 0 ? Json(nullptr) : Json(p.gpu_instance);
  out["compute_instance"] = p.compute_instance < 0 ? Json(nullptr) : Json(p.compute_instance);
  out["memory_bytes"] = number(p.memory_bytes);
  out["sm_percent"] = number(p.sm_share, 100);
  out["memory_utilization_percent"] = number(p.memory_share, 100);
  out["running_seconds"] = number(p.host.age_seconds);
  out["host_cores"] = number(p.host.cores);
  out["host_children_cores"] = number(p.host.children_cores);
  out["host_resident_bytes"] = number(p.host.resident_bytes);
  out["host_swapped_bytes"] = number(p.host.swapped_bytes);
  out["host_major_faults_per_second"] = number(p.host.major_faults);
  // Not in /proc: it has just ended, or lives outside this container.
  out["in_proc"] = !p.host.gone;
  return out;
}

Json health_json(const Health& health) {
  Json causes = Json::array();
  for (const health::Cause cause : health.causes) {
    const health::CauseRow& row = health::kCauses[static_cast<int>(cause)];
    causes.push_back({{"name", row.name}, {"text", row.text}, {"cure", row.cure}});
  }
  return {{"grade", health.grade ? Json(grade_name(health)) : Json(nullptr)},
          {"busy_percent", health.grade ? number(health.busy * 100) : Json(nullptr)},
          {"window_seconds", number(health.window_seconds)},
          {"low_seconds", number(health.low_seconds)},
          {"causes", causes},
          {"culprit", text_or_null(health.culprit)},
          {"text", clean(health_words(health))}};
}

Json gpu_json(const Gpu& gpu, const History& history, const JsonOptions& options) {
  Json out = {{"index", gpu.index},
              {"name", text_or_null(gpu.name)},
              {"uuid", text_or_null(gpu.uuid)},
              {"pci_bus_id", text_or_null(gpu.pci)},
              {"serial", text_or_null(gpu.serial)},
              {"vbios_version", text_or_null(gpu.vbios)},
              {"compute_capability", gpu.capability == 0 ? Json(nullptr)
                                                         : Json(print("%d.%d", gpu.capability / 10,
                                                                      gpu.capability % 10))},
              {"lost", gpu.lost}};
  out["health"] = health_json(judge(gpu, history.points(history_key(gpu), kHealthPoints)));
  Json reasons = nullptr;
  if (gpu.throttle_code == Reading::kOk) {
    reasons = Json::array();
    for (const ThrottleReason& reason : throttle_reasons()) {
      if ((gpu.throttle & reason.bit) != 0) reasons.push_back(reason.name);
    }
  }
  out["throttle_reasons"] = reasons;
  add_readings(gpu.readings, &out);
  if (gpu.throttle_code != Reading::kOk) {
    out["missing"]["throttle_reasons"] = Reading::missing(gpu.throttle_code).why();
  }
  Json instances = Json::array();
  for (const Instance& instance : gpu.instances) {
    Json entry = {{"gpu_instance", instance.gpu_instance},
                  {"compute_instance", instance.compute_instance},
                  {"uuid", text_or_null(instance.uuid)},
                  {"name", text_or_null(instance.name)}};
    for (const Metric m :
         {Metric::kMemoryTotal, Metric::kMemoryUsed, Metric::kMemoryFree, Metric::kEngine,
          Metric::kSmActivity, Metric::kSmOccupancy, Metric::kTensor, Metric::kDram}) {
      entry[row(m).key] = number(instance[m], row(m).key_scale);
    }
    instances.push_back(std::move(entry));
  }
  out["mig_instances"] = std::move(instances);
  Json processes = nullptr;
  if (gpu.process_code == Reading::kOk) {
    processes = Json::array();
    for (const GpuProcess& p : gpu.processes) processes.push_back(process_json(p, options));
  } else {
    out["missing"]["processes"] = Reading::missing(gpu.process_code).why();
  }
  out["processes"] = std::move(processes);
  out["more_processes"] = gpu.more_processes;
  return out;
}

}  // namespace

Json snapshot_json(const Snapshot& snapshot, const History& history,
                   const std::vector<AlertEvent>& alerts, const JsonOptions& options) {
  Json out = {{"schema", "tracefire.monitor/1"},
              {"time", time_text(snapshot.unix_us)},
              {"sequence", snapshot.sequence},
              {"host", clean(snapshot.host)},
              {"driver_version", text_or_null(snapshot.driver)},
              {"nvml_version", text_or_null(snapshot.nvml)},
              {"cuda_version", snapshot.cuda == 0 ? Json(nullptr)
                                                  : Json(print("%d.%d", snapshot.cuda / 1000,
                                                               snapshot.cuda % 1000 / 10))},
              {"sample_seconds", std::round(snapshot.took_seconds * 1e6) / 1e6},
              {"problem", text_or_null(snapshot.problem)}};
  Json gpus = Json::array();
  for (const Gpu& gpu : snapshot.gpus) gpus.push_back(gpu_json(gpu, history, options));
  out["gpus"] = std::move(gpus);
  Json list = Json::array();
  for (const AlertEvent& event : alerts)
    list.push_back(Json::parse(alert_json(event, snapshot.host)));
  out["alerts"] = std::move(list);
  return out;
}

namespace {

constexpr size_t kAllPoints = 1 << 20;
constexpr struct {
  const char* key;
  float Point::*member;
  double scale;
} kColumns[] = {
    {"gpu_utilization_percent", &Point::busy, 100},  {"sm_activity_percent", &Point::sm, 100},
    {"memory_percent", &Point::memory, 100},         {"power_watts", &Point::power, 1},
    {"temperature_celsius", &Point::temperature, 1}, {"clock_sm_mhz", &Point::clock, 1e-6},
    {"pcie_bytes_per_second", &Point::pcie, 1},      {"nvlink_bytes_per_second", &Point::nvlink, 1},
};

/// At most `most` points of the last `seconds`; where there are more, neighbours are averaged.
std::vector<Point> thinned(const std::vector<Point>& points, double seconds, size_t most) {
  std::vector<Point> recent;
  for (const Point& p : points) {
    if (static_cast<double>(points.back().steady_us - p.steady_us) * 1e-6 <= seconds) {
      recent.push_back(p);
    }
  }
  if (recent.size() <= most) return recent;
  std::vector<Point> out;
  for (size_t i = 0; i < most; ++i) {
    const size_t begin = i * recent.size() / most;
    const size_t end = (i + 1) * recent.size() / most;
    Point mean = recent[end - 1];
    for (const auto& column : kColumns) {
      double sum = 0;
      int count = 0;
      for (size_t j = begin; j < end; ++j) {
        if (std::isnan(recent[j].*column.member)) continue;
        sum += recent[j].*column.member;
        ++count;
      }
      if (count > 0) mean.*column.member = static_cast<float>(sum / count);
    }
    out.push_back(mean);
  }
  return out;
}

}  // namespace

Json history_json(const Snapshot& snapshot, const History& history, double seconds, size_t most) {
  Json gpus = Json::array();
  for (const Gpu& gpu : snapshot.gpus) {
    const std::vector<Point> points =
        thinned(history.points(history_key(gpu), kAllPoints), seconds, most);
    Json times = Json::array();
    for (const Point& p : points) times.push_back(p.unix_us / 1000);
    Json entry = {{"index", gpu.index}, {"unix_ms", std::move(times)}};
    for (const auto& column : kColumns) {
      Json values = Json::array();
      for (const Point& p : points) values.push_back(number(p.*column.member * column.scale));
      entry[column.key] = std::move(values);
    }
    gpus.push_back(std::move(entry));
  }
  return {{"schema", "tracefire.monitor.history/1"}, {"gpus", std::move(gpus)}};
}

}  // namespace tracefire::monitor
