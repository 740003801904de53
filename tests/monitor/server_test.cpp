// SPDX-License-Identifier: Apache-2.0
// The HTTP server under several clients at once; what it refuses is tested in test_server.py.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/monitor/web/http_server.h"

namespace tracefire::monitor {
namespace {

/// Everything that the server answers to `request`.
std::string ask(int port, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(request.size())) {
    char buffer[4096];
    for (ssize_t n = 0; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;) {
      answer.append(buffer, static_cast<size_t>(n));
    }
  }
  close(fd);
  return answer;
}

}  // namespace

TEST_CASE("monitor: many clients are answered at once [threads]") {
  const std::string body(300'000, 'x');  // more than a socket takes in one go
  HttpServer server({}, [&](const HttpRequest& request) {
    return HttpResponse{200, "text/plain", request.path == "/big" ? body : request.query};
  });
  REQUIRE(server.start().ok());
  std::atomic<int> good{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 10; ++i) {
        const std::string query = "q=" + std::to_string(c * 100 + i);
        const std::string small =
            ask(server.port(), "GET /a?" + query + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
        const std::string big = ask(server.port(), "GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
        if (small.ends_with("\r\n\r\n" + query) && big.ends_with("\r\n\r\n" + body)) ++good;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  CHECK(good == 40);
  CHECK(server.requests() == 80);
}

TEST_CASE("monitor: a handler that throws is an answer too") {
  HttpServer server({}, [](const HttpRequest&) -> HttpResponse { throw std::runtime_error("no"); });
  REQUIRE(server.start().ok());
  const std::string answer = ask(server.port(), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(answer.rfind("HTTP/1.1 503 ", 0) == 0);
  CHECK(answer.find("no\n") == std::string::npos);
}

}  // namespace tracefire::monitor
