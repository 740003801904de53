// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
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

/// Rows of cells under each other. A column is as wide as its longest cell asks, and no less than
/// usual, so that tables of common operations look alike; the last one ends each line.
class Table {
 public:
  void add(std::array<std::string, 6> cells) { rows_.push_back(std::move(cells)); }
  std::string str() const {
    std::array<size_t, 5> widths = {24, 8, 28, 10, 12};
    for (const auto& row : rows_) {
      for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size() + 1);
    }
    std::string out;
    for (const auto& row : rows_) {
      std::string line;
      for (size_t i = 0; i < widths.size(); ++i) {
        line += row[i] + std::string(widths[i] - row[i].size(), ' ');
      }
      line += row.back();
      while (!line.empty() && line.back() == ' ') line.pop_back();
      out += line + "\n";
    }
    return out;
  }

 private:
  std::vector<std::array<std::string, 6>> rows_;
};

}  // namespace

std::string Proof::str() const {
  if (rows.empty()) return "nothing ran\n";
  Table table;
  table.add({"operation", "device", "kernel", "runs", "work", ""});
  for (const Row& row : rows) {
    std::string note = row.placement == Placement::kOnDevice ? "" : to_text(row.placement);
    if (!row.reason.empty()) note += ": " + row.reason;
    if (!row.reason.empty() && !row.location.empty()) note += " (" + row.location + ")";
    table.add({row.op, row.device, row.kernel, std::to_string(row.runs),
               row.flops > 0 ? with_unit(row.flops, "FLOP") : with_unit(row.bytes, "B"), note});
  }
  std::string out = table.str();
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
  out["verdict"] = verdict_text();
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
