// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cmath>
#include <map>

#include "tools/monitor/show/escape.h"
#include "tools/monitor/show/format.h"
#include "tools/monitor/show/report.h"

namespace tracefire::monitor {
namespace {

/// Collects samples by family, in the order in which the families first came.
class Exposition {
 public:
  void family(const std::string& name, bool counter, const std::string& doc) {
    if (index_.count(name) != 0) return;
    index_[name] = families_.size();
    families_.push_back("# HELP " + name + " " + doc + "\n# TYPE " + name +
                        (counter ? " counter\n" : " gauge\n"));
  }
  /// `labels` are already escaped: a="b",c="d".
  void sample(const std::string& name, const std::string& labels, double value) {
    char text[40];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    families_[index_.at(name)] +=
        name + (labels.empty() ? "" : "{" + labels + "}") + " " + std::string(text, end) + "\n";
  }
  void one(const std::string& name, bool counter, const std::string& doc, double value) {
    family(name, counter, doc);
    sample(name, "", value);
  }
  std::string text() const {
    std::string all;
    for (const std::string& family : families_) all += family;
    return all;
  }

 private:
  std::vector<std::string> families_;
  std::map<std::string, size_t> index_;
};

std::string label(const char* name, const std::string& value) {
  return std::string(name) + "=\"" + escape(value, Sink::kPrometheus) + "\"";
}

std::string gpu_labels(const Gpu& gpu) {
  return label("gpu", std::to_string(gpu.index)) + "," + label("uuid", gpu.uuid);
}

std::string instance_labels(const Gpu& gpu, const Instance& instance) {
  return gpu_labels(gpu) + "," + label("gpu_instance", std::to_string(instance.gpu_instance)) +
         "," + label("compute_instance", std::to_string(instance.compute_instance));
}

void add_gpus(const Snapshot& snapshot, Exposition* out) {
  const std::string prefix = "tracefire_gpu_";
  out->family(prefix + "info", false, "Names of a GPU; the value is always 1.");
  out->family(prefix + "up", false, "1 while the GPU answers.");
  out->family(prefix + "processes", false, "Processes that hold the GPU.");
  out->family(prefix + "throttled", false, "1 while this reason holds the clocks down.");
  for (const Gpu& gpu : snapshot.gpus) {
    const std::string labels = gpu_labels(gpu);
    out->sample(prefix + "info",
                labels + "," + label("name", gpu.name) + "," + label("pci_bus_id", gpu.pci) + "," +
                    label("driver_version", snapshot.driver),
                1);
    out->sample(prefix + "up", labels, gpu.lost ? 0 : 1);
    if (gpu.process_code == Reading::kOk) {
      out->sample(prefix + "processes", labels, static_cast<double>(gpu.processes.size()));
    }
    if (gpu.throttle_code == Reading::kOk) {
      for (const ThrottleReason& reason : throttle_reasons()) {
        out->sample(prefix + "throttled", labels + "," + label("reason", reason.name),
                    (gpu.throttle & reason.bit) != 0 ? 1 : 0);
      }
    }
  }
  for (const MetricRow& row : metric_rows()) {
    if (row.family[0] == '\0') continue;
    const std::string name = prefix + row.family;
    for (const Gpu& gpu : snapshot.gpus) {
      const std::string extra = row.label[0] == '\0' ? "" : std::string(",") + row.label;
      if (gpu[row.metric].ok()) {
        out->family(name, row.counter, row.doc);
        out->sample(name, gpu_labels(gpu) + extra, gpu[row.metric].value);
      }
      for (const Instance& instance : gpu.instances) {
        if (!instance[row.metric].ok()) continue;
        out->family(name, row.counter, row.doc);
        out->sample(name, instance_labels(gpu, instance) + extra, instance[row.metric].value);
      }
    }
  }
}

void add_dcgm(const Snapshot& snapshot, Exposition* out) {
  for (const MetricRow& row : metric_rows()) {
    if (row.dcgm[0] == '\0') continue;
    for (const Gpu& gpu : snapshot.gpus) {
      if (!gpu[row.metric].ok()) continue;
      out->family(row.dcgm, row.counter, row.doc);
      out->sample(row.dcgm,
                  label("gpu", std::to_string(gpu.index)) + "," + label("UUID", gpu.uuid) + "," +
                      label("pci_bus_id", gpu.pci) + "," +
                      label("device", "nvidia" + std::to_string(gpu.index)) + "," +
                      label("modelName", gpu.name) + "," + label("Hostname", snapshot.host) + "," +
                      label("DCGM_FI_DRIVER_VERSION", snapshot.driver),
                  gpu[row.metric].value * row.dcgm_scale);
    }
  }
}

}  // namespace

std::string prometheus_text(const Snapshot* snapshot, const MonitorFacts& facts,
                            const PrometheusOptions& options) {
  Exposition out;
  out.family("tracefire_build_info", false, "Version of Tracefire; the value is always 1.");
  out.sample("tracefire_build_info",
             label("version", facts.version) + "," + label("commit", facts.commit), 1);
  const bool answers = snapshot != nullptr && snapshot->problem.empty();
  out.one("tracefire_monitor_nvml_up", false, "1 while NVML answers and shows a GPU.",
          answers ? 1 : 0);
  out.one("tracefire_monitor_samples_total", true, "Snapshots taken.",
          static_cast<double>(facts.samples));
  out.one("tracefire_monitor_http_requests_total", true, "Requests answered by this server.",
          static_cast<double>(facts.requests));
  out.one("tracefire_monitor_read_pending_seconds", false,
          "Age of the read under way; large where the driver hangs.", facts.stuck_seconds);
  if (snapshot != nullptr) {
    out.one("tracefire_monitor_sample_timestamp_seconds", false, "Time of the newest snapshot.",
            static_cast<double>(snapshot->unix_us / 1000) / 1000);
    out.one("tracefire_monitor_sample_duration_seconds", false,
            "How long the newest snapshot took.", snapshot->took_seconds);
    add_gpus(*snapshot, &out);
    if (options.dcgm_names) add_dcgm(*snapshot, &out);
  }
  return out.text();
}

}  // namespace tracefire::monitor
