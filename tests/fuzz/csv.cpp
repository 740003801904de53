// SPDX-License-Identifier: Apache-2.0
// Rooms: lib/data core/engine
//
// libFuzzer entry: whatever the bytes, plain or compressed, parse_csv() gives a table whose numbers
// are rows times columns, or an error of a bad file.
#include <cstdio>
#include <cstdlib>

#include "core/base/status.h"
#include "tracefire/data.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace tracefire;
  if (size == 0) return 0;
  // The first byte chooses the options.
  const data::CsvOptions options{.header = (bytes[0] & 1) != 0,
                                 .separator = (bytes[0] & 2) != 0 ? ';' : ',',
                                 .max_bytes = 1 << 16};
  const std::string_view text(reinterpret_cast<const char*>(bytes + 1), size - 1);
  try {
    const data::Table table = data::parse_csv(text, options, "fuzz");
    const bool fits =
        table.rows > 0 && table.columns > 0 &&
        table.values.size() == static_cast<size_t>(table.rows * table.columns) &&
        (table.names.empty() || table.names.size() == static_cast<size_t>(table.columns));
    if (!fits) {
      std::fprintf(stderr, "a table that is none\n");
      std::abort();
    }
  } catch (const Error& error) {
    const auto code = static_cast<ErrorCode>(error.number());
    if (code != ErrorCode::kBadFile && code != ErrorCode::kRaggedRows &&
        code != ErrorCode::kEmptyInput) {
      std::fprintf(stderr, "%s\n", error.what());
      std::abort();
    }
  }
  return 0;
}
