// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/show/query_gpu.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "tools/monitor/show/escape.h"
#include "tools/monitor/show/format.h"
#include "tools/monitor/show/query_table.h"

namespace tracefire::monitor {
namespace {

std::string number(const QueryField& field, const QueryFormat& format, double value, int driver) {
  value *= field.scale;
  if (field.decimals < 0) value = driver >= kRoundsUpSince ? std::ceil(value) : std::floor(value);
  std::string text = print("%.*f", std::max(field.decimals, 0), value);
  if (format.units && field.unit[0] != '\0') text += std::string(" ") + field.unit;
  return text;
}

std::string missing(const QueryField& field, int code) {
  const std::string words = missing_words(code);
  return field.bare && words == "[N/A]" ? "N/A" : words;
}

std::string cell(const QueryField& field, const QueryFormat& format, const Snapshot& snapshot,
                 const Gpu& gpu) {
  const int driver = driver_major(snapshot.driver);
  if (field.deprecated != 0 && driver >= field.deprecated) {
    return "[Requested functionality has been deprecated]";
  }
  if (field.from == From::kText) return field.text(snapshot, gpu);
  if (gpu.lost) return missing(field, gpu.lost_code);
  if (field.from == From::kMetric) {
    const Reading& reading = gpu[field.metric];
    return reading.ok() ? number(field, format, reading.value, driver)
                        : missing(field, reading.code);
  }
  const auto answer = gpu.answers.find(field.name);
  if (field.from == From::kNothing || answer == gpu.answers.end()) {
    return missing(field, Reading::kNotAsked);
  }
  if (answer->second.code != Reading::kOk) return missing(field, answer->second.code);
  // Words of a device go through the same filter as its name.
  if (!answer->second.text.empty()) return clean(answer->second.text);
  const bool words = std::string_view(field.name) == "platform.chassis_serial_number";
  return words ? "" : number(field, format, answer->second.value, driver);
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

constexpr std::string_view kReasons = "clocks_event_reasons.";
constexpr std::string_view kOldReasons = "clocks_throttle_reasons.";

}  // namespace

Result<std::vector<const QueryField*>> parse_query(std::string_view names) {
  std::vector<const QueryField*> fields;
  for (const std::string_view wanted : split(names)) {
    const std::span<const QueryField> all = query_fields();
    const auto found = std::find_if(all.begin(), all.end(), [&](const QueryField& field) {
      return wanted == field.name || (field.alias[0] != '\0' && wanted == field.alias) ||
             // The names of before driver 535.
             (wanted.substr(0, kOldReasons.size()) == kOldReasons &&
              std::string(kReasons).append(wanted.substr(kOldReasons.size())) == field.name);
    });
    if (found == all.end()) {
      std::vector<std::string_view> known;
      for (const QueryField& field : all) known.push_back(field.name);
      const std::string close = closest_name(wanted, known);
      // nvidia-smi's own sentence first: scripts look for it.
      return error(ErrorCode::kBadUsage, "Field \"", escape(wanted.substr(0, 100), Sink::kLog),
                   "\" is not a valid field to query.",
                   close.empty() ? "" : " Did you mean " + close + "?",
                   " See --help-query-gpu for all.");
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

std::vector<std::string> query_questions(const std::vector<const QueryField*>& fields) {
  std::vector<std::string> names;
  for (const QueryField* field : fields) {
    if (field->from == From::kAnswer) names.push_back(field->name);
  }
  return names;
}

std::string query_not_read(const std::vector<const QueryField*>& fields) {
  std::string names;
  for (const QueryField* field : fields) {
    if (field->from == From::kNothing)
      names += (names.empty() ? "" : ", ") + std::string(field->name);
  }
  return names;
}

std::string query_help() {
  std::string text = "Fields of --query-gpu, as nvidia-smi names them:\n";
  for (const QueryField& field : query_fields()) {
    std::string line = std::string("  ") + field.name;
    if (field.alias[0] != '\0') line += std::string(", ") + field.alias;
    if (field.unit[0] != '\0') line += std::string(" [") + field.unit + "]";
    text += line + "\n";
    if (field.from == From::kMetric) text += std::string("      ") + row(field.metric).doc + "\n";
    if (field.from == From::kNothing) text += "      Known by name, not read here: [N/A].\n";
    if (field.deprecated != 0) {
      text += print("      Deprecated by NVIDIA since driver %d.\n", field.deprecated);
    }
  }
  return text;
}

}  // namespace tracefire::monitor
