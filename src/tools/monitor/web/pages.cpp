// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/web/pages.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "tools/monitor/web/http_parse.h"

namespace tracefire::monitor {
namespace {

constexpr size_t kMostPoints = 3600;
constexpr size_t kUsualPoints = 300;
constexpr size_t kMostSeconds = 7 * 24 * 3600;
constexpr char kJson[] = "application/json; charset=utf-8";

HttpResponse json(const nlohmann::ordered_json& document) {
  return {200, kJson, document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

/// A number of the query, within bounds; `usual` where it is missing or none.
size_t wanted(const std::string& query, const char* name, size_t usual, size_t most) {
  const std::string text = query_value(query, name);
  size_t value = usual;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::clamp<size_t>(value, 1, most);
}

}  // namespace

HttpResponse web_response(const HttpRequest& request, const WebSources& sources) {
  const std::string path = request.path == "/" ? "/index.html" : request.path;
  for (const PageFile* file = kPageFiles; file->path != nullptr; ++file) {
    if (path == file->path) return {200, file->type, std::string(file->data, file->size)};
  }
  const std::shared_ptr<const Snapshot> snapshot = sources.history->latest();
  if (path == "/metrics") {
    return {200, "text/plain; version=0.0.4; charset=utf-8",
            prometheus_text(snapshot.get(), sources.facts(), sources.prometheus)};
  }
  if (path == "/healthz") {
    const bool stuck = sources.facts().stuck_seconds > 30;
    if (snapshot == nullptr || stuck)
      return {503, "text/plain; charset=utf-8", "NVML does not answer\n"};
    return {200, "text/plain; charset=utf-8", "ok\n"};
  }
  if (path == "/api/v1/snapshot" || path == "/api/v1/history") {
    if (snapshot == nullptr) {
      return {503, kJson, R"({"schema":"tracefire.monitor/1","problem":"nothing was read yet"})"};
    }
    if (path == "/api/v1/history") {
      return json(
          history_json(*snapshot, *sources.history,
                       static_cast<double>(wanted(request.query, "seconds", 300, kMostSeconds)),
                       wanted(request.query, "points", kUsualPoints, kMostPoints)));
    }
    // Command lines hold passwords now and then: they stay on this machine.
    JsonOptions options;
    options.commands = false;
    nlohmann::ordered_json document =
        snapshot_json(*snapshot, *sources.history, sources.alerts(), options);
    document["read_pending_seconds"] = sources.facts().stuck_seconds;
    return json(document);
  }
  return {404, "text/plain; charset=utf-8", "There is no such page.\n"};
}

}  // namespace tracefire::monitor
