// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/doctor
//
// libFuzzer entry: any text as a report or a manifest that `doctor diff` is given, against itself
// and against an empty one.
#include "tools/doctor/diff.h"
#include "tools/doctor/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire::doctor;
  static const Data kData;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  Snapshot a, empty;
  std::vector<std::string> untold, lines;
  for (std::string_view line : lines_of(text, 1000)) lines.emplace_back(line);
  read_inventory(lines, &a);
  if (std::optional<Document> document = parse_document(text)) {
    read_inventory(document->inventory, &a);
    read_manifest(*document, kData, &a);
  }
  if (!compare(a, a, kData, &untold).empty()) __builtin_trap();
  std::vector<Difference> found = compare(a, empty, kData, &untold);
  diff_text(a, empty, found, untold);
  diff_json(a, empty, found, untold);
  return 0;
}
