// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/prove.h"

#include <cstdio>
#include <filesystem>

#include "tools/inject/escape.h"
#include "tools/inject/run.h"

namespace tracefire::inject {

int prove(const ProveRequest& request) {
  const Result<std::string> folder = make_folder(request.out);
  if (!folder.ok()) {
    std::fprintf(stderr, "tracefire prove: %s\n", printable(folder.status().str()).c_str());
    return 2;
  }
  RunOptions options;
  options.command = request.command;
  options.folder = *folder;
  options.window_limit = request.window_limit;
  options.graphs_by_node = request.graphs_by_node;
  options.beat_ms = request.beat_ms;
  const Result<Session> session = run_and_record(options);
  if (!session.ok()) {
    std::fprintf(stderr, "tracefire prove: %s\n", printable(session.status().str()).c_str());
    return 2;
  }
  if (!session->ending.start_error.empty()) {
    std::fprintf(stderr, "tracefire prove: %s: %s\n", printable(request.command.front()).c_str(),
                 session->ending.start_error.c_str());
  }
  if (session->tracing != "on") {
    std::fprintf(stderr, "tracefire prove: not traced: %s\n", printable(session->tracing).c_str());
  }
  if (request.out.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(*folder, ignored);
  }
  return session->ending.status;
}

}  // namespace tracefire::inject
