// SPDX-License-Identifier: Apache-2.0
// tracefire-prove: `tracefire prove` as a program of its own, for machines without libtracefire.so.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "build_info.h"
#include "core/base/log.h"
#include "tools/inject/prove.h"

namespace {

constexpr char kUsage[] =
    "usage: tracefire-prove [options] -- COMMAND [ARGUMENT...]\n"
    "       tracefire-prove [options] --from DIR | --attach PID | --print-env [COMMAND...]\n"
    "Runs a program and its children and proves whether they used the GPU. Ends with the "
    "program's\n"
    "exit status (128 + signal, 126, 127), or 3 where it succeeded but --require is missed.\n"
    "  --out DIR        keeps records and reports in DIR, which must be new or empty\n"
    "  --from DIR       analyses again what --out kept\n"
    "  --attach PID     watches a process that runs already, by sampling\n"
    "  --seconds N      how long it is watched (until it ends)\n"
    "  --print-env      prints the variables and lines that trace a program elsewhere\n"
    "  --json           prints the report on stdout as JSON\n"
    "  --quiet          prints no report\n"
    "  --require PLACE  'on-gpu' or 'partly-on-gpu'\n"
    "  --limit BYTES    most bytes of single events a process (33554432)\n"
    "  --graphs LEVEL   'node' shows the kernels of CUDA graphs, 'graph' whole graphs (node)\n"
    "  --beat MS        how often records are collected (250)\n"
    "examples:\n"
    "  tracefire-prove -- python train.py --epochs 1\n"
    "  tracefire-prove --require on-gpu --quiet -- python train.py\n";

int wrong(const std::string& text) {
  std::fprintf(stderr, "tracefire-prove: %s\n%s", text.c_str(), kUsage);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  for (const tracefire::Status& problem : tracefire::settings_problems()) {
    tracefire::log_line(tracefire::LogLevel::kWarning, problem.str());
  }
  tracefire::inject::ProveRequest request;
  request.version = tracefire::kVersion;
  request.commit = tracefire::kCommit;
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
    if (word == "--json") {
      request.json = true;
      continue;
    }
    if (word == "--print-env") {
      request.print_env = true;
      continue;
    }
    if (word == "--quiet") {
      request.quiet = true;
      continue;
    }
    if (i + 1 == argc) return wrong(std::string(word) + " needs a value, or is no option");
    const std::string value = argv[++i];
    char* end = nullptr;
    const long long number = std::strtoll(value.c_str(), &end, 10);
    const bool is_number = !value.empty() && *end == '\0' && number >= 0;
    if (word == "--out") {
      request.out = value;
    } else if (word == "--from") {
      request.from = value;
    } else if (word == "--require" && (value == "on-gpu" || value == "partly-on-gpu")) {
      request.require = value;
    } else if (word == "--attach" && is_number && number > 0) {
      request.attach = number;
    } else if (word == "--seconds" && is_number) {
      request.seconds = static_cast<double>(number);
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
  const int modes = (request.from.empty() ? 0 : 1) + (request.attach > 0 ? 1 : 0) +
                    (request.command.empty() || request.print_env ? 0 : 1) +
                    (request.print_env ? 1 : 0);
  if (modes == 0) return wrong("no command was given");
  if (modes > 1) return wrong("a command, --from, --attach and --print-env exclude each other");
  if (request.print_env && request.out.empty()) {
    return wrong("--print-env needs --out: the folder that the records go to");
  }
  return tracefire::inject::prove(request);
}
