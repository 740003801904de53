// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/status.h"

namespace tracefire::monitor {

struct HttpRequest {
  bool head = false;
  std::string path;   ///< "/api/v1/snapshot", without the query
  std::string query;  ///< "points=300"
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

struct HttpOptions {
  std::string host = "127.0.0.1";  ///< address to bind to, an IP number
  int port = 0;                    ///< 0: the system chooses
  std::vector<std::string> names;  ///< names that the Host header may give, besides IP numbers
  size_t most_connections = 64;
  double patience_seconds = 10;  ///< for a whole request, and for a whole answer to be taken
};

/// The Host header "name[:port]" names this server: an IP number (which no other site's name can
/// resolve to), localhost, or one of `names`. Keeps other web sites from reading this one through a
/// browser (DNS rebinding).
bool host_allowed(const std::string& header, const std::vector<std::string>& names);

/// Only this machine reaches an address like 127.0.0.1 or ::1.
bool is_loopback(const std::string& host);

/// A small HTTP/1.1 server for GET and HEAD: one thread, sockets that never block, a request of at
/// most 8 KiB, one request a connection. A client that is slow or says nothing is dropped and holds
/// nobody up. There is nothing a request could change.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  /// `handler` is called on the server's thread and must be quick.
  HttpServer(HttpOptions options, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Binds and starts. Errors: kBadUsage where the address cannot be bound to, with the cause.
  Status start();
  int port() const { return port_; }
  uint64_t requests() const { return requests_.load(); }

 private:
  struct Connection;
  void run();
  void accept_all();
  void read_some(Connection* connection);
  void write_some(Connection* connection);
  void answer(Connection* connection);
  HttpResponse respond(const std::string& head, HttpRequest* request);

  const HttpOptions options_;
  const Handler handler_;
  int listener_ = -1;
  int wake_[2] = {-1, -1};
  int port_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::atomic<uint64_t> requests_{0};
  std::thread thread_;
};

}  // namespace tracefire::monitor
