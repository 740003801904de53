// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/show/query_gpu.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "tools/monitor/show/escape.h"
#include "tools/monitor/show/format.h"

namespace tracefire::monitor {

struct QueryField {
  const char* name;
  const char* alias;  ///< another name that nvidia-smi takes, "" for none
  const char* unit;   ///< "%", "MiB", …; "" for none
  /// Text of a field that is no plain number; null where `metric` is one.
  std::string (*text)(const Snapshot&, const Gpu&);
  Metric metric;
  double scale;
  int decimals;  ///< -1: cut to a whole number, as nvidia-smi does with MiB
};

namespace {

constexpr double kMebi = 1.0 / (1 << 20);
constexpr double kMega = 1e-6;
constexpr double kPercent = 100;

/// nvidia-smi's words for what is missing.
std::string missing_words(int code) {
  switch (code) {
    case 4:
    case Reading::kNoAccess:
      return "[Insufficient Permissions]";
    case 15:
      return "[GPU is lost]";
    case 16:
      return "[GPU requires reset]";
    case 999:
      return "[Unknown Error]";
    default:
      return "[N/A]";
  }
}

std::string or_missing(const Gpu& gpu, const std::string& text) {
  if (!text.empty()) return clean(text);
  return gpu.lost ? missing_words(gpu.lost_code) : "[N/A]";
}

std::string choice(const Reading& reading, std::initializer_list<const char*> words) {
  if (!reading.ok()) return missing_words(reading.code);
  const auto i = static_cast<size_t>(reading.value);
  return i < words.size() ? *(words.begin() + i) : "[Unknown Error]";
}

template <uint64_t kBits>
std::string active(const Snapshot&, const Gpu& gpu) {
  if (gpu.throttle_code != Reading::kOk) return missing_words(gpu.throttle_code);
  return (gpu.throttle & kBits) != 0 ? "Active" : "Not Active";
}
std::string reason_bits(const Snapshot&, const Gpu& gpu) {
  if (gpu.throttle_code != Reading::kOk) return missing_words(gpu.throttle_code);
  return print("0x%016llX", static_cast<unsigned long long>(gpu.throttle));
}
std::string timestamp(const Snapshot& s, const Gpu&) { return smi_time_text(s.unix_us); }
std::string driver(const Snapshot& s, const Gpu& g) { return or_missing(g, s.driver); }
std::string count(const Snapshot& s, const Gpu&) { return std::to_string(s.gpus.size()); }
std::string name(const Snapshot&, const Gpu& g) { return or_missing(g, g.name); }
std::string uuid(const Snapshot&, const Gpu& g) { return or_missing(g, g.uuid); }
std::string serial(const Snapshot&, const Gpu& g) { return or_missing(g, g.serial); }
std::string vbios(const Snapshot&, const Gpu& g) { return or_missing(g, g.vbios); }
std::string pci(const Snapshot&, const Gpu& g) { return or_missing(g, g.pci); }
std::string index(const Snapshot&, const Gpu& g) { return std::to_string(g.index); }
std::string capability(const Snapshot&, const Gpu& g) {
  return g.capability == 0 ? or_missing(g, "")
                           : print("%d.%d", g.capability / 10, g.capability % 10);
}
std::string pstate(const Snapshot&, const Gpu& g) {
  const Reading& r = g[Metric::kPerformanceState];
  if (!r.ok()) return missing_words(r.code);
  return r.value > 15 ? "[Unknown Error]" : print("P%.0f", r.value);
}
std::string persistence(const Snapshot&, const Gpu& g) {
  return choice(g[Metric::kPersistence], {"Disabled", "Enabled"});
}
std::string mig(const Snapshot&, const Gpu& g) {
  return choice(g[Metric::kMigMode], {"Disabled", "Enabled"});
}
std::string ecc(const Snapshot&, const Gpu& g) {
  return choice(g[Metric::kEccMode], {"Disabled", "Enabled"});
}
std::string display_active(const Snapshot&, const Gpu& g) {
  return choice(g[Metric::kDisplayActive], {"Disabled", "Enabled"});
}
std::string display_mode(const Snapshot&, const Gpu& g) {
  return choice(g[Metric::kDisplayMode], {"Disabled", "Enabled"});
}
std::string compute_mode(const Snapshot&, const Gpu& g) {
  return choice(g[Metric::kComputeMode],
                {"Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"});
}

constexpr Metric kNone = Metric::kBusy;  // not used where a field has its own text

// clang-format off
constexpr QueryField kFields[] = {
  {"timestamp", "", "", timestamp, kNone, 1, 0},
  {"driver_version", "", "", driver, kNone, 1, 0},
  {"count", "", "", count, kNone, 1, 0},
  {"name", "gpu_name", "", name, kNone, 1, 0},
  {"serial", "gpu_serial", "", serial, kNone, 1, 0},
  {"uuid", "gpu_uuid", "", uuid, kNone, 1, 0},
  {"pci.bus_id", "gpu_bus_id", "", pci, kNone, 1, 0},
  {"index", "", "", index, kNone, 1, 0},
  {"vbios_version", "", "", vbios, kNone, 1, 0},
  {"compute_cap", "", "", capability, kNone, 1, 0},
  {"pstate", "", "", pstate, kNone, 1, 0},
  {"persistence_mode", "", "", persistence, kNone, 1, 0},
  {"compute_mode", "", "", compute_mode, kNone, 1, 0},
  {"display_active", "", "", display_active, kNone, 1, 0},
  {"display_mode", "display_attached", "", display_mode, kNone, 1, 0},
  {"mig.mode.current", "", "", mig, kNone, 1, 0},
  {"ecc.mode.current", "", "", ecc, kNone, 1, 0},
  {"pcie.link.gen.current", "pcie.link.gen.gpucurrent", "", nullptr, Metric::kPcieGeneration, 1, 0},
  {"pcie.link.gen.max", "", "", nullptr, Metric::kPcieGenerationMax, 1, 0},
  {"pcie.link.width.current", "", "", nullptr, Metric::kPcieWidth, 1, 0},
  {"pcie.link.width.max", "", "", nullptr, Metric::kPcieWidthMax, 1, 0},
  {"fan.speed", "", "%", nullptr, Metric::kFan, kPercent, 0},
  {"clocks_event_reasons.active", "clocks_throttle_reasons.active", "", reason_bits, kNone, 1, 0},
  {"clocks_event_reasons.gpu_idle", "clocks_throttle_reasons.gpu_idle", "", active<0x1>, kNone, 1, 0},
  {"clocks_event_reasons.applications_clocks_setting", "clocks_throttle_reasons.applications_clocks_setting", "", active<0x2>, kNone, 1, 0},
  {"clocks_event_reasons.sw_power_cap", "clocks_throttle_reasons.sw_power_cap", "", active<0x4>, kNone, 1, 0},
  {"clocks_event_reasons.hw_slowdown", "clocks_throttle_reasons.hw_slowdown", "", active<0x8>, kNone, 1, 0},
  {"clocks_event_reasons.sync_boost", "clocks_throttle_reasons.sync_boost", "", active<0x10>, kNone, 1, 0},
  {"clocks_event_reasons.sw_thermal_slowdown", "clocks_throttle_reasons.sw_thermal_slowdown", "", active<0x20>, kNone, 1, 0},
  {"clocks_event_reasons.hw_thermal_slowdown", "clocks_throttle_reasons.hw_thermal_slowdown", "", active<0x40>, kNone, 1, 0},
  {"clocks_event_reasons.hw_power_brake_slowdown", "clocks_throttle_reasons.hw_power_brake_slowdown", "", active<0x80>, kNone, 1, 0},
  {"memory.total", "", "MiB", nullptr, Metric::kMemoryTotal, kMebi, -1},
  {"memory.reserved", "", "MiB", nullptr, Metric::kMemoryReserved, kMebi, -1},
  {"memory.used", "", "MiB", nullptr, Metric::kMemoryUsed, kMebi, -1},
  {"memory.free", "", "MiB", nullptr, Metric::kMemoryFree, kMebi, -1},
  {"utilization.gpu", "", "%", nullptr, Metric::kBusy, kPercent, 0},
  {"utilization.memory", "", "%", nullptr, Metric::kMemoryBusy, kPercent, 0},
  {"utilization.encoder", "", "%", nullptr, Metric::kEncoder, kPercent, 0},
  {"utilization.decoder", "", "%", nullptr, Metric::kDecoder, kPercent, 0},
  {"temperature.gpu", "", "", nullptr, Metric::kTemperature, 1, 0},
  {"temperature.memory", "", "", nullptr, Metric::kMemoryTemperature, 1, 0},
  {"power.draw", "", "W", nullptr, Metric::kPower, 1, 2},
  {"power.draw.average", "", "W", nullptr, Metric::kPowerAverage, 1, 2},
  {"power.draw.instant", "", "W", nullptr, Metric::kPowerInstant, 1, 2},
  {"power.limit", "", "W", nullptr, Metric::kPowerLimit, 1, 2},
  {"enforced.power.limit", "", "W", nullptr, Metric::kPowerLimit, 1, 2},
  {"power.default_limit", "", "W", nullptr, Metric::kPowerDefaultLimit, 1, 2},
  {"power.max_limit", "", "W", nullptr, Metric::kPowerMaxLimit, 1, 2},
  {"clocks.current.graphics", "clocks.gr", "MHz", nullptr, Metric::kClockGraphics, kMega, 0},
  {"clocks.current.sm", "clocks.sm", "MHz", nullptr, Metric::kClockSm, kMega, 0},
  {"clocks.current.memory", "clocks.mem", "MHz", nullptr, Metric::kClockMemory, kMega, 0},
  {"clocks.current.video", "clocks.video", "MHz", nullptr, Metric::kClockVideo, kMega, 0},
  {"clocks.max.graphics", "clocks.max.gr", "MHz", nullptr, Metric::kClockGraphicsMax, kMega, 0},
  {"clocks.max.sm", "", "MHz", nullptr, Metric::kClockSmMax, kMega, 0},
  {"clocks.max.memory", "clocks.max.mem", "MHz", nullptr, Metric::kClockMemoryMax, kMega, 0},
  {"ecc.errors.corrected.volatile.total", "", "", nullptr, Metric::kEccCorrected, 1, 0},
  {"ecc.errors.uncorrected.volatile.total", "", "", nullptr, Metric::kEccUncorrected, 1, 0},
  {"ecc.errors.corrected.aggregate.total", "", "", nullptr, Metric::kEccCorrectedTotal, 1, 0},
  {"ecc.errors.uncorrected.aggregate.total", "", "", nullptr, Metric::kEccUncorrectedTotal, 1, 0},
};
// clang-format on

std::string cell(const QueryField& field, const QueryFormat& format, const Snapshot& snapshot,
                 const Gpu& gpu) {
  if (field.text != nullptr) return field.text(snapshot, gpu);
  const Reading& reading = gpu[field.metric];
  if (!reading.ok()) return missing_words(reading.code);
  double value = reading.value * field.scale;
  int decimals = field.decimals;
  if (decimals < 0) {
    value = std::floor(value);
    decimals = 0;
  }
  std::string text = print("%.*f", decimals, value);
  if (format.units && field.unit[0] != '\0') text += std::string(" ") + field.unit;
  return text;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string_view part = text.substr(begin, end - begin);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    parts.push_back(part);
    begin = end + 1;
  }
  return parts;
}

}  // namespace

Result<std::vector<const QueryField*>> parse_query(std::string_view names) {
  std::vector<const QueryField*> fields;
  for (const std::string_view wanted : split(names)) {
    const auto found =
        std::find_if(std::begin(kFields), std::end(kFields), [&](const QueryField& field) {
          return wanted == field.name || (field.alias[0] != '\0' && wanted == field.alias);
        });
    if (found == std::end(kFields)) {
      std::vector<std::string_view> known;
      for (const QueryField& field : kFields) known.push_back(field.name);
      const std::string close = closest_name(wanted, known);
      return error(
          ErrorCode::kBadUsage, "--query-gpu: '", escape(wanted.substr(0, 100), Sink::kLog),
          "' is no field that can be asked for.",
          close.empty() ? "" : " Did you mean " + close + "?", " See --help-query-gpu for all.");
    }
    fields.push_back(&*found);
  }
  return fields;
}

Result<QueryFormat> parse_query_format(std::string_view text) {
  QueryFormat format;
  bool csv = false;
  for (const std::string_view word : split(text)) {
    if (word == "csv") {
      csv = true;
    } else if (word == "noheader") {
      format.header = false;
    } else if (word == "nounits") {
      format.units = false;
    } else {
      return error(ErrorCode::kBadUsage, "--format: '", escape(word.substr(0, 100), Sink::kLog),
                   "' is not known. Expected csv, with noheader and nounits where wanted: "
                   "--format=csv,noheader,nounits.");
    }
  }
  if (!csv) {
    return error(ErrorCode::kBadUsage,
                 "--format: csv is missing. Expected --format=csv[,noheader][,nounits].");
  }
  return format;
}

std::string query_header(const std::vector<const QueryField*>& fields) {
  std::string line;
  for (const QueryField* field : fields) {
    if (!line.empty()) line += ", ";
    line += field->name;
    // nvidia-smi keeps the units in the header also under nounits.
    if (field->unit[0] != '\0') line += std::string(" [") + field->unit + "]";
  }
  return line + "\n";
}

std::string query_rows(const std::vector<const QueryField*>& fields, const QueryFormat& format,
                       const Snapshot& snapshot, const std::vector<const Gpu*>& gpus) {
  std::string text;
  for (const Gpu* gpu : gpus) {
    bool first = true;
    for (const QueryField* field : fields) {
      text += (first ? "" : ", ") + cell(*field, format, snapshot, *gpu);
      first = false;
    }
    text += "\n";
  }
  return text;
}

std::string query_help() {
  std::string text = "Fields of --query-gpu, as nvidia-smi names them:\n";
  for (const QueryField& field : kFields) {
    std::string line = std::string("  ") + field.name;
    if (field.alias[0] != '\0') line += std::string(", ") + field.alias;
    if (field.unit[0] != '\0') line += std::string(" [") + field.unit + "]";
    text += line + "\n";
    if (field.text == nullptr) text += std::string("      ") + row(field.metric).doc + "\n";
  }
  return text;
}

}  // namespace tracefire::monitor
