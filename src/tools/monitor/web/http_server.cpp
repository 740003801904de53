// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/web/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "tools/monitor/web/http_parse.h"

namespace tracefire::monitor {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMostRequest = 8 << 10;

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

/// Nothing is loaded from elsewhere, no script or style stands in the page itself, and no other
/// site may frame it or read from it.
constexpr char kSecurityHeaders[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n";

std::string serialize(const HttpResponse& response, bool head) {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " " +
                     reason_of(response.status) + "\r\nContent-Type: " + response.type +
                     "\r\nContent-Length: " + std::to_string(response.body.size()) + "\r\n" +
                     kSecurityHeaders;
  if (response.status == 405) text += "Allow: GET, HEAD\r\n";
  text += "Connection: close\r\n\r\n";
  return head ? text : text + response.body;
}

}  // namespace

struct HttpServer::Connection {
  int fd = -1;
  Clock::time_point deadline;
  std::string in;
  std::string out;
  size_t sent = 0;
  bool answering = false;
  bool draining = false;  ///< all is sent; waits for the client to close
  bool dead = false;
  ~Connection() {
    if (fd >= 0) close(fd);
  }
};

HttpServer::HttpServer(HttpOptions options, Handler handler)
    : options_(std::move(options)), handler_(std::move(handler)) {}

HttpServer::~HttpServer() {
  if (thread_.joinable()) {
    const char byte = 0;
    while (write(wake_[1], &byte, 1) < 0 && errno == EINTR) {
    }
    thread_.join();
  }
  connections_.clear();
  for (const int fd : {listener_, wake_[0], wake_[1]}) {
    if (fd >= 0) close(fd);
  }
}

Status HttpServer::start() {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const auto failed = [&](const std::string& why) {
    return error(ErrorCode::kBadUsage, "--serve: cannot listen on ", options_.host, ":",
                 options_.port, ": ", why,
                 ". Expected the IP number of this machine and a free port: --serve 127.0.0.1:",
                 options_.port + 1, ".");
  };
  const std::string port = std::to_string(options_.port);
  if (const int code = getaddrinfo(options_.host.c_str(), port.c_str(), &hints, &list); code != 0) {
    return failed(gai_strerror(code));
  }
  listener_ = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (listener_ >= 0) setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool bound = listener_ >= 0 && bind(listener_, list->ai_addr, list->ai_addrlen) == 0 &&
                     listen(listener_, 64) == 0;
  const int saved = errno;
  freeaddrinfo(list);
  if (!bound) return failed(std::strerror(saved));
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                              : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
  if (pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0) return failed(std::strerror(errno));
  thread_ = std::thread(&HttpServer::run, this);
  return {};
}

void HttpServer::accept_all() {
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (connections_.size() >= options_.most_connections) {
      // Make room by dropping who has waited longest without saying a whole request.
      const auto oldest =
          std::min_element(connections_.begin(), connections_.end(),
                           [](const auto& a, const auto& b) { return a->deadline < b->deadline; });
      connections_.erase(oldest);
    }
    auto connection = std::make_unique<Connection>();
    connection->fd = fd;
    connection->deadline =
        Clock::now() + std::chrono::milliseconds(static_cast<int>(options_.patience_seconds * 1e3));
    connections_.push_back(std::move(connection));
  }
}

void HttpServer::read_some(Connection* c) {
  char buffer[4096];
  const ssize_t n = recv(c->fd, buffer, sizeof buffer, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    c->dead = true;
    return;
  }
  if (c->draining) return;  // whatever else comes is thrown away
  c->in.append(buffer, static_cast<size_t>(n));
  if (c->in.find("\r\n\r\n") != std::string::npos || c->in.size() > kMostRequest) answer(c);
}

HttpResponse HttpServer::respond(const std::string& head, HttpRequest* request) {
  const auto plain = [](int status, const char* text) {
    return HttpResponse{status, "text/plain; charset=utf-8", std::string(text) + "\n"};
  };
  ParsedRequest parsed;
  if (!parse_request(head, &parsed)) return plain(400, "This is not a request.");
  request->head = parsed.method == "HEAD";
  request->path = parsed.path;
  request->query = parsed.query;
  if (!host_allowed(parsed.host, options_.names)) {
    return plain(403,
                 "This server is not called by that name. Use its IP number or localhost, or "
                 "start it with --allow-host NAME.");
  }
  if (parsed.method != "GET" && parsed.method != "HEAD") {
    return plain(405, "Only GET and HEAD: nothing can be changed from here.");
  }
  if (parsed.has_body) return plain(413, "A request has no body here.");
  try {
    return handler_(*request);
  } catch (const std::exception&) {
    return plain(503, "The answer could not be made.");
  }
}

void HttpServer::answer(Connection* c) {
  ++requests_;
  const size_t end = c->in.find("\r\n\r\n");
  HttpRequest request;
  HttpResponse response;
  if (end == std::string::npos || end > kMostRequest) {
    response = {431, "text/plain; charset=utf-8", "The request is longer than 8 KiB.\n"};
  } else {
    response = respond(c->in.substr(0, end + 2), &request);
  }
  c->out = serialize(response, request.head);
  c->in.clear();
  c->in.shrink_to_fit();
  c->answering = true;
  c->deadline =
      Clock::now() + std::chrono::milliseconds(static_cast<int>(options_.patience_seconds * 1e3));
  write_some(c);
}

void HttpServer::write_some(Connection* c) {
  while (c->sent < c->out.size()) {
    const ssize_t n = ::send(c->fd, c->out.data() + c->sent, c->out.size() - c->sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      c->dead = true;
      return;
    }
    c->sent += static_cast<size_t>(n);
  }
  // Closing with unread input would reset the connection and could take the answer with it.
  shutdown(c->fd, SHUT_WR);
  c->answering = false;
  c->draining = true;
  c->deadline = std::min(c->deadline, Clock::now() + std::chrono::seconds(1));
}

void HttpServer::run() {
  std::vector<pollfd> fds;
  for (;;) {
    fds.assign({{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}});
    auto next = Clock::now() + std::chrono::seconds(60);
    for (const auto& c : connections_) {
      fds.push_back({c->fd, static_cast<short>(c->answering ? POLLOUT : POLLIN), 0});
      next = std::min(next, c->deadline);
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count();
    poll(fds.data(), fds.size(), static_cast<int>(std::clamp<int64_t>(left + 1, 0, 60000)));
    if (fds[0].revents != 0) return;
    const auto now = Clock::now();
    for (size_t i = 2; i < fds.size(); ++i) {
      Connection* c = connections_[i - 2].get();
      if (fds[i].revents != 0) {
        if (c->answering) {
          write_some(c);
        } else {
          read_some(c);
        }
      }
      if (now >= c->deadline) c->dead = true;
    }
    std::erase_if(connections_, [](const auto& c) { return c->dead; });
    if (fds[1].revents != 0) accept_all();
  }
}

}  // namespace tracefire::monitor
