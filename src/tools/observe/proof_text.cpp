// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tracefire/observe.h"

namespace tracefire {
namespace {

std::string with_unit(double value, const char* unit) {
  const char* const prefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < std::size(prefixes)) {
    value /= 1000;
    ++prefix;
  }
  char text[48];
  std::snprintf(text, sizeof text, value < 10 && prefix > 0 ? "%.1f %s%s" : "%.0f %s%s", value,
                prefixes[prefix], unit);
  return text;
}

void pad_to(std::string* line, size_t column) {
  *line += ' ';
  while (line->size() < column) *line += ' ';
}

}  // namespace

std::string Proof::str() const {
  std::string out;
  auto add_row = [&](const std::string& op, const std::string& device, const std::string& kernel,
                     const std::string& runs, const std::string& work, const std::string& note) {
    std::string line = op;
    pad_to(&line, 24);
    line += device;
    pad_to(&line, 32);
    line += kernel;
    pad_to(&line, 60);
    line += runs;
    pad_to(&line, 70);
    line += work;
    if (!note.empty()) {
      pad_to(&line, 82);
      line += note;
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
  };
  add_row("operation", "device", "kernel", "runs", "work", "");
  for (const Row& row : rows) {
    std::string note = row.placement == Placement::kOnDevice ? "" : to_text(row.placement);
    if (!row.reason.empty()) note += ": " + row.reason;
    if (!row.reason.empty() && !row.location.empty()) note += " (" + row.location + ")";
    add_row(row.op, row.device, row.kernel, std::to_string(row.runs),
            row.flops > 0 ? with_unit(row.flops, "FLOP") : with_unit(row.bytes, "B"), note);
  }
  const double all = gpu_flops + cpu_flops + cpu_by_choice_flops;
  auto share = [&](double part) {
    char text[16];
    std::snprintf(text, sizeof text, "%.1f %%", all > 0 ? 100 * part / all : 0.0);
    return std::string(text);
  };
  out += "work on GPU " + share(gpu_flops) + ", on CPU " + share(cpu_flops + cpu_by_choice_flops);
  if (cpu_by_choice_flops > 0) out += " (by hand or by design " + share(cpu_by_choice_flops) + ")";
  out += "; " + std::to_string(graph_launches) + " graph launches, " + std::to_string(runs) +
         " single runs, " + std::to_string(synchronizations) + " synchronisations, " +
         with_unit(static_cast<double>(copies_in), "B") + " in, " +
         with_unit(static_cast<double>(copies_out), "B") + " out";
  if (counted_copies > 0) {
    out += ", " + std::to_string(counted_copies) + " copies of variables still being read";
  }
  out += "\nfloat32 products: " + (precision.empty() ? std::string("none") : precision) + "\n";
  return out;
}

std::string Proof::json() const {
  nlohmann::ordered_json out;
  out["schema"] = "tracefire.proof/1";
  out["verdict"] = to_text(verdict);
  out["precision"] = precision;
  out["gpu_flops"] = gpu_flops;
  out["cpu_flops"] = cpu_flops;
  out["cpu_by_choice_flops"] = cpu_by_choice_flops;
  out["graph_launches"] = graph_launches;
  out["runs"] = runs;
  out["synchronizations"] = synchronizations;
  out["copied_to_device_bytes"] = copies_in;
  out["copied_to_host_bytes"] = copies_out;
  out["variable_copies"] = counted_copies;
  out["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    out["rows"].push_back({{"op", row.op},
                           {"device", row.device},
                           {"kernel", row.kernel},
                           {"library", row.library},
                           {"placement", to_text(row.placement)},
                           {"reason", row.reason},
                           {"location", row.location},
                           {"runs", row.runs},
                           {"flops", row.flops},
                           {"bytes", row.bytes}});
  }
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tracefire
