// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/read/smi.h"

#include "tools/doctor/text.h"

namespace tracefire::doctor {

namespace {

constexpr size_t kMaxRows = 2048;

std::string without_unit(std::string_view value) {
  std::string_view text = trim(value);
  for (std::string_view unit : {" MiB", " W", " %", " MHz", " C"})
    if (text.size() > unit.size() && text.substr(text.size() - unit.size()) == unit &&
        is_version(trim(text.substr(0, text.size() - unit.size()))))
      text = trim(text.substr(0, text.size() - unit.size()));
  return std::string(text);
}

}  // namespace

std::vector<SmiRow> parse_smi_csv(std::string_view text) {
  std::vector<SmiRow> rows;
  std::vector<std::string> header;
  for (std::string_view line : lines_of(text, 4096)) {
    if (trim(line).empty()) continue;
    std::vector<std::string_view> cells = split(line, ',');
    std::string_view first = trim(cells[0]);
    bool names = header.empty() || first == "index" || first == "pid" || first == "gpu_uuid";
    if (names) {
      header.clear();
      for (std::string_view cell : cells)
        header.push_back(lower(trim(cell.substr(0, cell.find(" [")))));
      continue;
    }
    if (rows.size() == kMaxRows) break;
    SmiRow row;
    for (size_t i = 0; i < cells.size() && i < header.size(); ++i)
      row[header[i]] = without_unit(cells[i]);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string cell(const SmiRow& row, const std::string& column) {
  auto it = row.find(column);
  return it == row.end() ? "" : it->second;
}

std::string row_gpu(const SmiRow& row) {
  for (const char* key : {"uuid", "gpu_uuid", "pci.bus_id", "index"})
    if (auto it = row.find(key); it != row.end() && !it->second.empty() && it->second[0] != '[')
      return it->second;  // "[N/A]" names none
  return "";
}

std::vector<SmiRow> latest_rows(const std::vector<SmiRow>& rows) {
  std::vector<SmiRow> out;
  std::map<std::string, size_t> places;
  for (const SmiRow& row : rows) {
    const std::string gpu = row_gpu(row);
    auto it = gpu.empty() ? places.end() : places.find(gpu);
    if (it == places.end()) {
      if (!gpu.empty()) places[gpu] = out.size();
      out.push_back(row);
      continue;
    }
    for (const auto& [key, value] : row) out[it->second][key] = value;
  }
  return out;
}

std::vector<SmiEntry> parse_smi_q(std::string_view text) {
  std::vector<SmiEntry> entries;
  std::vector<std::pair<size_t, std::string>> open;  // indentation and key of the sections around
  for (std::string_view line : lines_of(text, 20000)) {
    size_t indent = line.find_first_not_of(" \t");
    if (indent == line.npos) continue;
    size_t colon = line.find(" : ");
    if (colon == line.npos && line.back() == ':') colon = line.size() - 1;
    std::string key(trim(line.substr(0, colon)));
    while (!open.empty() && open.back().first >= indent) open.pop_back();
    std::vector<std::string> above;
    for (const auto& section : open) above.push_back(section.second);
    if (colon != line.npos) {
      std::string_view value =
          colon + 3 <= line.size() ? line.substr(colon + 3) : std::string_view();
      entries.push_back({join(above, " / "), key, std::string(trim(value))});
    }
    if (open.size() < 16) open.emplace_back(indent, key);
  }
  return entries;
}

SmiList parse_smi_list(std::string_view text) {
  SmiList out;
  for (std::string_view line : lines_of(text, 1024)) {
    std::string uuid = between(line, "UUID: ", ")");
    std::string_view words = trim(line);
    if (words.rfind("GPU ", 0) == 0) {
      out.gpu_names.push_back(between(words, ": ", "("));
      if (!uuid.empty()) out.gpu_uuids.push_back(uuid);
    } else if (words.rfind("MIG", 0) == 0 && !uuid.empty()) {
      out.mig_uuids.push_back(uuid);
    }
  }
  return out;
}

namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::string_view word : split(text, ' '))
    if (!trim(word).empty()) words.emplace_back(trim(word));
  return words;
}

bool is_number(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

/// "81100MiB" -> "81100"; "" where it is no size.
std::string mebibytes(const std::string& word) {
  const size_t unit = word.rfind("MiB");
  return unit != std::string::npos && unit + 3 == word.size() && is_number(word.substr(0, unit))
             ? word.substr(0, unit)
             : "";
}

/// `|   0  NVIDIA A100-SXM4-80GB  On  |   00000000:01:00.0 Off |    0 |`, the first line of a GPU.
SmiRow table_gpu(const std::vector<std::string_view>& cells) {
  if (cells.size() < 4) return {};
  const std::vector<std::string> gpu = words_of(cells[1]), bus = words_of(cells[2]),
                                 ecc = words_of(cells[3]);
  if (gpu.size() < 2 || !is_number(gpu[0]) || bus.empty() || !contains(bus[0], ":") ||
      !contains(bus[0], "."))
    return {};
  SmiRow row = {{"index", gpu[0]}, {"pci.bus_id", bus[0]}};
  if (gpu.back() == "On" || gpu.back() == "Off")
    row["persistence_mode"] = gpu.back() == "On" ? "Enabled" : "Disabled";
  std::string name;
  for (size_t i = 1; i + 1 < gpu.size(); ++i) name += (name.empty() ? "" : " ") + gpu[i];
  if (!name.empty() && name.back() != '.') row["name"] = name;  // not where it is cut: "RTX 30..."
  if (bus.size() > 1 && (bus[1] == "On" || bus[1] == "Off"))
    row["display_active"] = bus[1] == "On" ? "Enabled" : "Disabled";
  if (!ecc.empty()) row["ecc.errors.uncorrected.volatile.total"] = ecc[0];
  return row;
}

/// `| N/A   33C    P0    63W /  400W |   81100MiB /  81920MiB |      0%      Default |`
void table_usage(const std::vector<std::string_view>& cells, SmiRow* row) {
  if (cells.size() < 4) return;
  const std::vector<std::string> memory = words_of(cells[2]), load = words_of(cells[3]);
  if (memory.size() == 3 && memory[1] == "/" && !mebibytes(memory[2]).empty()) {
    (*row)["memory.used"] = mebibytes(memory[0]);
    (*row)["memory.total"] = mebibytes(memory[2]);
  }
  if (!load.empty() && load[0].size() > 1 && load[0].back() == '%')
    (*row)["utilization.gpu"] = load[0].substr(0, load[0].size() - 1);
}

/// `|    0   N/A  N/A            4242      C   python3        81000MiB |`
void table_process(std::string_view line, SmiTable* out) {
  const std::vector<std::string> words = words_of(line.substr(1));
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    const std::string& type = words[i + 1];
    if (type != "C" && type != "G" && type != "C+G") continue;
    if (type == "G" || !is_number(words[i])) return;
    out->process_ids.push_back(words[i]);
    SmiRow app = {{"index", words[0]}, {"pid", words[i]}};
    if (i + 2 < words.size()) app["process_name"] = words[i + 2];
    for (size_t j = i + 3; j < words.size(); ++j)
      if (!mebibytes(words[j]).empty()) app["used_gpu_memory"] = mebibytes(words[j]);
    out->apps.push_back(std::move(app));
    return;
  }
}

}  // namespace

SmiTable parse_smi_table(std::string_view text) {
  SmiTable out;
  out.tool_version = find_version(between(text, "NVIDIA-SMI ", "|\n"));
  out.driver_version = find_version(between(text, "Driver Version: ", "|\n"));
  out.cuda_version = find_version(between(text, "CUDA Version: ", "|\n"));
  out.no_mig_devices = contains(text, "No MIG devices found");
  bool processes = false, first = false;
  std::vector<SmiRow> rows;
  for (std::string_view line : lines_of(text, 4096)) {
    if (line.empty() || line.front() != '|') continue;
    // Printed again and again (nvidia-smi -l 1), the last one counts.
    if (contains(line, "NVIDIA-SMI ")) {
      processes = false;
      out.process_ids.clear();
      out.apps.clear();
    }
    if (contains(line, "Processes:")) processes = true;
    if (processes) {
      table_process(line, &out);
      continue;
    }
    out.exclusive |= contains(line, "E. Process") || contains(line, "E. Thread");
    out.prohibited |= contains(line, "Prohibited");
    const std::vector<std::string_view> cells = split(line, '|');
    for (std::string_view cell : cells) out.mig_enabled |= trim(cell) == "Enabled";
    if (SmiRow row = table_gpu(cells); !row.empty()) {
      rows.push_back(std::move(row));
      first = true;
    } else if (std::exchange(first, false)) {
      table_usage(cells, &rows.back());
    }
  }
  out.rows = latest_rows(rows);
  return out;
}

}  // namespace tracefire::doctor
