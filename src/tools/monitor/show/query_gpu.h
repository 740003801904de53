// SPDX-License-Identifier: Apache-2.0
// nvidia-smi's --query-gpu: its field names, columns, units and words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "tools/monitor/sample/snapshot.h"

namespace tracefire::monitor {

struct QueryField;  // one row of query_table.h

struct QueryFormat {
  bool header = true;
  bool units = true;
};

/// "timestamp,name,utilization.gpu". Errors: kBadUsage for an unknown name, with the closest one.
Result<std::vector<const QueryField*>> parse_query(std::string_view names);
/// "csv", "csv,noheader", "csv,noheader,nounits" in any order. Errors: kBadUsage.
Result<QueryFormat> parse_query_format(std::string_view text);

/// "timestamp, name, utilization.gpu [%]" with a line end.
std::string query_header(const std::vector<const QueryField*>& fields);
/// One line a GPU.
std::string query_rows(const std::vector<const QueryField*>& fields, const QueryFormat& format,
                       const Snapshot& snapshot, const std::vector<const Gpu*>& gpus);
/// Fields among them that are read only where they are asked for, for NvmlSource.
std::vector<std::string> query_questions(const std::vector<const QueryField*>& fields);
/// Names among them that are known but never read, "a, b"; "" for none.
std::string query_not_read(const std::vector<const QueryField*>& fields);
/// Every field with what it means, for --help-query-gpu.
std::string query_help();

}  // namespace tracefire::monitor
