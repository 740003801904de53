// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/monitor
//
// libFuzzer entry: any bytes as options of the monitor, a `NAME=VALUE` a line, and as a query
// of nvidia-smi's kind. What is taken can be printed; what is not is an error of wrong usage in one
// line without control characters.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tools/monitor/judge/webhook.h"
#include "tools/monitor/options.h"
#include "tools/monitor/show/query_gpu.h"

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void check(const tracefire::Status& status) {
  if (status.ok()) return;
  require(status.code() == tracefire::ErrorCode::kBadUsage, "an error of another kind");
  for (const char c : status.message()) {
    require(static_cast<unsigned char>(c) >= ' ' && c != '\x7f', "an error acts on the terminal");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire::monitor;
  const std::string text(reinterpret_cast<const char*>(data), size);
  Options options;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    const size_t equals = std::min(line.find('='), line.size());
    for (const OptionRow& row : option_rows()) {
      if (line.substr(0, equals) != row.name) continue;
      check(row.set(options, equals < line.size() ? line.substr(equals + 1) : ""));
    }
    begin = end + 1;
  }
  check(check_options(options));
  check(parse_webhook(text).status());
  const auto fields = parse_query(text);
  check(fields.status());
  if (!fields.ok()) return 0;
  Snapshot snapshot;
  snapshot.gpus.resize(2);
  snapshot.gpus[1].lost = true;
  std::vector<const Gpu*> gpus{&snapshot.gpus[0], &snapshot.gpus[1]};
  const std::string rows = query_rows(*fields, {}, snapshot, gpus);
  require(std::count(rows.begin(), rows.end(), '\n') == 2, "a row is not a line");
  query_header(*fields);
  query_questions(*fields);
  query_not_read(*fields);
  return 0;
}
