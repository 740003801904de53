// SPDX-License-Identifier: Apache-2.0
// tracefire-prove: `tracefire prove` as a program of its own, for machines without libtracefire.so.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tools/inject/prove.h"

namespace {

constexpr char kUsage[] =
    "usage: tracefire-prove [options] -- COMMAND [ARGUMENT...]\n"
    "Runs a program and its children and proves whether they used the GPU.\n"
    "  --out DIR        keeps records and reports in DIR, which must be new or empty\n"
    "  --limit BYTES    most bytes of single events a process (33554432)\n"
    "  --graphs LEVEL   'node' shows the kernels of CUDA graphs, 'graph' whole graphs (node)\n"
    "  --beat MS        how often records are collected (250)\n";

int wrong(const std::string& text) {
  std::fprintf(stderr, "tracefire-prove: %s\n%s", text.c_str(), kUsage);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  tracefire::inject::ProveRequest request;
  int i = 1;
  for (; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (word.empty() || word[0] != '-') break;
    if (word == "--help" || word == "-h") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (i + 1 == argc) return wrong(std::string(word) + " needs a value, or is no option");
    const std::string value = argv[++i];
    char* end = nullptr;
    const long long number = std::strtoll(value.c_str(), &end, 10);
    const bool is_number = !value.empty() && *end == '\0' && number >= 0;
    if (word == "--out") {
      request.out = value;
    } else if (word == "--limit" && is_number) {
      request.window_limit = number;
    } else if (word == "--beat" && is_number && number >= 10 && number <= 60000) {
      request.beat_ms = static_cast<int>(number);
    } else if (word == "--graphs" && (value == "node" || value == "graph")) {
      request.graphs_by_node = value == "node";
    } else {
      return wrong("'" + std::string(word) + " " + value + "' is not understood");
    }
  }
  request.command.assign(argv + i, argv + argc);
  if (request.command.empty()) return wrong("no command was given");
  return tracefire::inject::prove(request);
}
