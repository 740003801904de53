// SPDX-License-Identifier: Apache-2.0
// Rooms: core/base backends/nvidia tools/text tools/monitor
//
// libFuzzer entry: any bytes as the head of a request to the monitor's server. What is taken for a
// request has an absolute path without control characters and one Host; what it answers is one of
// its own files or nothing, and no name but its own is let in.
#include <cstdio>
#include <cstdlib>

#include "tools/monitor/web/http_parse.h"
#include "tools/monitor/web/http_server.h"
#include "tools/monitor/web/pages.h"

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefire::monitor;
  ParsedRequest request;
  if (!parse_request({reinterpret_cast<const char*>(data), size}, &request)) return 0;
  require(!request.path.empty() && request.path[0] == '/', "a path is not absolute");
  for (const char c : request.path + request.query) {
    require(static_cast<unsigned char>(c) >= ' ' && c != '\x7f',
            "a control character came through");
  }
  query_value(request.query, "seconds");
  if (host_allowed(request.host, {"gpu-node"})) {
    require(request.host.find("evil") == std::string::npos, "another name was let in");
  }
  WebSources sources;
  sources.history = std::make_shared<History>();
  sources.alerts = [] { return std::vector<AlertEvent>(); };
  sources.facts = [] { return MonitorFacts{}; };
  const HttpResponse response =
      web_response({request.method == "HEAD", request.path, request.query}, sources);
  bool own = request.path == "/" || request.path == "/metrics";
  for (const PageFile* file = kPageFiles; file->path != nullptr; ++file) {
    own = own || request.path == file->path;
  }
  require(own || response.status != 200, "something else was served");
  return 0;
}
