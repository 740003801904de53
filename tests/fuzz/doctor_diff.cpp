// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/doctor
//
// libFuzzer entry: two documents, parted by a byte 0, as `doctor diff` is given them. What differs
// from A to B differs from B to A, and nothing that is printed acts on a terminal.
#include <cstdlib>

#include "tools/doctor/diff.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire::doctor;
  static const Data kData;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t part = std::min(text.find('\0'), size);
  Snapshot sides[2];
  for (int i = 0; i < 2; ++i) {
    const std::optional<Document> document =
        parse_document(i == 0 ? text.substr(0, part) : text.substr(std::min(size, part + 1)));
    if (!document) return 0;
    sides[i].form = document->inventory.empty() ? "manifest" : "report";
    if (document->inventory.empty())
      read_manifest(*document, kData, &sides[i]);
    else
      read_inventory(document->inventory, &sides[i]);
  }
  std::vector<std::string> untold, back;
  const std::vector<Difference> found = compare(sides[0], sides[1], kData, &untold);
  if (found.size() != compare(sides[1], sides[0], kData, &back).size()) std::abort();
  if (untold != back) std::abort();
  for (const char c : diff_text(sides[0], sides[1], found, untold))
    if (static_cast<unsigned char>(c) < ' ' && c != '\n') std::abort();
  diff_json(sides[0], sides[1], found, untold);
  return 0;
}
