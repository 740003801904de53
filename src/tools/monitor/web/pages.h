// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tools/monitor/sample/history.h"
#include "tools/monitor/show/report.h"
#include "tools/monitor/web/http_server.h"

namespace tracefire::monitor {

/// A file of the web page, part of the program.
struct PageFile {
  const char* path;
  const char* type;
  const char* data;
  size_t size;
};
/// Made from src/tools/monitor/web/page/ by scripts/generate/monitor_page.py. Ends with a null
/// path.
extern const PageFile kPageFiles[];

/// What the server's answers are made of. Called on the server's thread.
struct WebSources {
  std::shared_ptr<History> history;
  std::function<std::vector<AlertEvent>()> alerts;
  std::function<MonitorFacts()> facts;
  PrometheusOptions prometheus;
};

/// "/", its files, "/api/v1/snapshot", "/api/v1/history?seconds=S&points=N", "/metrics",
/// "/healthz".
HttpResponse web_response(const HttpRequest& request, const WebSources& sources);

}  // namespace tracefire::monitor
