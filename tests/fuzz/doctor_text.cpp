// SPDX-License-Identifier: Apache-2.0
//
// libFuzzer entry: any bytes through the escaper give one line of UTF-8 without control characters,
// and HTML without a tag.
#include <cstdlib>

#include "tools/doctor/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire::doctor;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string shown = printable(text);
  if (printable(shown, 8000) != shown) std::abort();
  for (char c : shown)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) std::abort();
  for (char c : html_text(text))
    if (c == '<' || c == '>' || c == '"') std::abort();
  std::string field = csv_field(text);
  if (field.size() < 2 || field.front() != '"' || field.back() != '"') std::abort();
  redact(std::string(text.substr(0, 4096)));
  normal_path(text);
  return 0;
}
