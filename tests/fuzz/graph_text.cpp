// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base core/graph core/ops
//
// libFuzzer entry: whatever the text, parse() gives a graph that verifies and prints to a text that
// reads back to itself, or an error of the catalogue.
#include <cstdio>
#include <cstdlib>

#include "core/graph/text.h"
#include "core/ops/op_table.h"

namespace {

void require(bool condition, const char* what, const tracefire::Status& status) {
  if (condition) return;
  std::fprintf(stderr, "%s: %s\n", what, status.str().c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire;
  const OpTable& ops = OpTable::instance();
  std::string_view text(reinterpret_cast<const char*>(data), size);
  Result<GraphPtr> graph = parse(ops, text);
  if (!graph.ok()) {
    require(graph.status().code() == ErrorCode::kBadText, "wrong code", graph.status());
    return 0;
  }
  Status status = verify(ops, **graph);
  require(status.ok(), "does not verify", status);
  std::string printed = print(ops, **graph, {true, true});
  Result<GraphPtr> back = parse(ops, printed);
  require(back.ok(), "does not read back", back.status());
  require(print(ops, **back, {true, true}) == printed, "prints another text", {});
  require(cache_key(ops, **back) == cache_key(ops, **graph), "has another key", {});
  return 0;
}
