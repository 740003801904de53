// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tools/monitor/show/escape.h"
#include "tools/monitor/show/format.h"
#include "tools/monitor/show/report.h"

namespace tracefire::monitor {
namespace {

std::string number(double value) {
  if (value == std::floor(value) && std::abs(value) < 9e15) {
    return std::to_string(static_cast<int64_t>(value));
  }
  return print("%.3f", value);
}

}  // namespace

std::string csv_header() {
  std::string line = "time,host,index,name,uuid";
  for (const MetricRow& row : metric_rows()) line += std::string(",") + row.key;
  return line + ",throttle_reasons,processes,lost";
}

std::string csv_rows(const Snapshot& snapshot) {
  std::string text;
  for (const Gpu& gpu : snapshot.gpus) {
    text += time_text(snapshot.unix_us) + "," + escape(snapshot.host, Sink::kCsv) + "," +
            std::to_string(gpu.index) + "," + escape(gpu.name, Sink::kCsv) + "," +
            escape(gpu.uuid, Sink::kCsv);
    for (const MetricRow& row : metric_rows()) {
      const Reading& reading = gpu[row.metric];
      text += "," + (reading.ok() ? number(reading.value * row.key_scale) : std::string());
    }
    std::string reasons;
    for (const ThrottleReason& reason : throttle_reasons()) {
      if (gpu.throttle_code != Reading::kOk || (gpu.throttle & reason.bit) == 0) continue;
      reasons += (reasons.empty() ? "" : "+") + std::string(reason.name);
    }
    text += "," + reasons + ",";
    if (gpu.process_code == Reading::kOk) text += std::to_string(gpu.processes.size());
    text += gpu.lost ? ",1\n" : ",0\n";
  }
  return text;
}

}  // namespace tracefire::monitor
