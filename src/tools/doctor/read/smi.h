// SPDX-License-Identifier: Apache-2.0
//
// What nvidia-smi printed.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tracefire::doctor {

/// A row of a CSV table with a header: column name without its unit -> value without its unit.
using SmiRow = std::map<std::string, std::string>;
/// The value in a column, "" where the row has none.
std::string cell(const SmiRow& row, const std::string& column);

/// `--query-gpu=… --format=csv` and `--query-compute-apps=…`. A second header in the text begins a
/// new table. At most 2048 rows.
std::vector<SmiRow> parse_smi_csv(std::string_view text);
/// One row a GPU of rows that were taken again and again (nvidia-smi -l 1) or as several tables:
/// what was read last. Rows that do not say which GPU they are of stay as they are.
std::vector<SmiRow> latest_rows(const std::vector<SmiRow>& rows);
/// Which GPU a row is of: its UUID, PCI address or index, "" where it says none.
std::string row_gpu(const SmiRow& row);

/// One "key : value" of `nvidia-smi -q`.
struct SmiEntry {
  std::string section;  ///< the keys above it, joined by " / "
  std::string key;
  std::string value;
};
std::vector<SmiEntry> parse_smi_q(std::string_view text);

/// `nvidia-smi -L`.
struct SmiList {
  std::vector<std::string> gpu_names;
  std::vector<std::string> gpu_uuids;
  std::vector<std::string> mig_uuids;
};
SmiList parse_smi_list(std::string_view text);

/// The table that plain `nvidia-smi` prints.
struct SmiTable {
  std::string tool_version, driver_version, cuda_version;
  bool exclusive = false, prohibited = false;
  bool mig_enabled = false, no_mig_devices = false;
  std::vector<std::string> process_ids;
  std::vector<SmiRow> rows;  ///< the GPUs, under the names of the CSV's columns
  std::vector<SmiRow> apps;  ///< the processes that compute, likewise; "index" is the GPU's
};
SmiTable parse_smi_table(std::string_view text);

}  // namespace tracefire::doctor
