// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/doctor
//
// libFuzzer entry: any bytes through the escaper give one line of UTF-8 without control characters,
// HTML without a tag and one CSV field; what is a secret is found without running away.
#include <cstdlib>

#include "tools/doctor/text.h"
#include "tools/text/escape.h"
#include "tools/text/redact.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string shown = text::clean(input);
  if (text::clean(shown) != shown) std::abort();
  for (const char c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) std::abort();
  }
  for (const char c : text::escape(input, text::Sink::kHtml)) {
    if (c == '<' || c == '>' || c == '"') std::abort();
  }
  const std::string field = text::escape(input, text::Sink::kCsv);
  if (field.find(',') != field.npos && (field.front() != '"' || field.back() != '"')) std::abort();
  text::redacted(input.substr(0, 4096));
  text::cut_to_width(shown, size % 97);
  doctor::normal_path(input);
  return 0;
}
