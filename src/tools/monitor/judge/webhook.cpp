// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/judge/webhook.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "tools/monitor/show/escape.h"

namespace tracefire::monitor {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kTimeout = std::chrono::seconds(3);
constexpr size_t kMostQueued = 64;

/// Waits for an event on a socket; false at the deadline.
bool wait_until(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd p{fd, events, 0};
    const int n = poll(&p, 1, static_cast<int>(left));
    if (n > 0) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

int connect_to(const WebhookAddress& address, Clock::time_point deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &list) != 0) return -1;
  int fd = -1;
  for (const addrinfo* a = list; a != nullptr && fd < 0; a = a->ai_next) {
    const int s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0) continue;
    int failure = 0;
    socklen_t size = sizeof failure;
    if (connect(s, a->ai_addr, a->ai_addrlen) == 0 ||
        (errno == EINPROGRESS && wait_until(s, POLLOUT, deadline) &&
         getsockopt(s, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 && failure == 0)) {
      fd = s;
    } else {
      close(s);
    }
  }
  freeaddrinfo(list);
  return fd;
}

/// "" for a status of 2xx, else what went wrong.
std::string post(const WebhookAddress& address, const std::string& body) {
  const auto deadline = Clock::now() + kTimeout;
  const int fd = connect_to(address, deadline);
  if (fd < 0) return "no connection";
  const bool ipv6 = address.host.find(':') != std::string::npos;
  const std::string host = ipv6 ? "[" + address.host + "]" : address.host;
  const std::string request = "POST " + address.path + " HTTP/1.1\r\nHost: " + host +
                              (address.port == "80" ? "" : ":" + address.port) +
                              "\r\nContent-Type: application/json\r\nUser-Agent: tracefire-monitor"
                              "\r\nConnection: close\r\nContent-Length: " +
                              std::to_string(body.size()) + "\r\n\r\n" + body;
  std::string problem;
  for (size_t done = 0; done < request.size() && problem.empty();) {
    const ssize_t n = ::send(fd, request.data() + done, request.size() - done, MSG_NOSIGNAL);
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      if (!wait_until(fd, POLLOUT, deadline)) problem = "no answer within 3 s";
    } else {
      problem = std::strerror(errno);
    }
  }
  char answer[64] = "";
  size_t got = 0;
  while (problem.empty() && got < 12) {
    const ssize_t n = recv(fd, answer + got, sizeof answer - 1 - got, 0);
    if (n > 0) {
      got += static_cast<size_t>(n);
    } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      if (!wait_until(fd, POLLIN, deadline)) problem = "no answer within 3 s";
    } else {
      break;
    }
  }
  close(fd);
  if (!problem.empty()) return problem;
  const std::string status(answer, got);
  if (status.rfind("HTTP/1.", 0) != 0 || got < 12) return "the answer is not HTTP";
  return status[9] == '2' ? "" : "status " + status.substr(9, 3);
}

}  // namespace

Result<WebhookAddress> parse_webhook(const std::string& url) {
  const auto wrong = [&](const char* why) {
    return error(ErrorCode::kBadUsage, "--webhook: '", escape(url.substr(0, 200), Sink::kLog), "' ",
                 why, ". Expected http://host[:port][/path].");
  };
  const bool plain =
      std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (!plain) return wrong("holds blanks or control characters");
  if (url.rfind("https://", 0) == 0) {
    return wrong("needs TLS, which the monitor does not speak: send to a local relay");
  }
  if (url.rfind("http://", 0) != 0) return wrong("is no http:// address");
  WebhookAddress address;
  const std::string rest = url.substr(7);
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string authority = rest.substr(0, slash);
  if (slash < rest.size()) address.path = rest.substr(slash);
  address.path = address.path.substr(0, address.path.find('#'));
  if (authority.find('@') != std::string::npos) return wrong("holds a user name");
  const size_t bracket = authority.rfind(']');
  const size_t colon = authority.rfind(':');
  if (colon != std::string::npos && (bracket == std::string::npos || colon > bracket)) {
    address.port = authority.substr(colon + 1);
    authority.resize(colon);
  }
  if (authority.size() >= 2 && authority.front() == '[') {
    authority = authority.substr(1, authority.size() - 2);
  }
  address.host = authority;
  const bool digits = !address.port.empty() && address.port.size() <= 5 &&
                      address.port.find_first_not_of("0123456789") == std::string::npos;
  if (address.host.empty()) return wrong("names no host");
  if (!digits || std::stoi(address.port) < 1 || std::stoi(address.port) > 65535) {
    return wrong("has no port from 1 to 65535");
  }
  return address;
}

struct Webhook::State {
  WebhookAddress address;
  Mutex mutex;
  CondVar changed;
  std::deque<std::string> queue TF_GUARDED_BY(mutex);
  bool stop TF_GUARDED_BY(mutex) = false;
  bool done TF_GUARDED_BY(mutex) = false;
};

Webhook::Webhook(WebhookAddress address) : state_(std::make_shared<State>()) {
  state_->address = std::move(address);
  std::thread(&Webhook::run, state_).detach();  // a name look-up may hang; nobody waits for it
}

void Webhook::send(std::string json) {
  MutexLock lock(state_->mutex);
  if (state_->queue.size() >= kMostQueued) {
    say_once("monitor webhook full",
             "the webhook is slower than the alerts come; some are not sent");
    return;
  }
  state_->queue.push_back(std::move(json));
  state_->changed.notify_all();
}

void Webhook::run(std::shared_ptr<State> state) {
  for (;;) {
    std::string body;
    {
      MutexLock lock(state->mutex);
      while (state->queue.empty() && !state->stop) state->changed.wait(state->mutex);
      if (state->queue.empty()) {
        state->done = true;
        state->changed.notify_all();
        return;
      }
      body = std::move(state->queue.front());
      state->queue.pop_front();
    }
    const std::string problem = post(state->address, body);
    if (!problem.empty()) {
      log_line(LogLevel::kWarning, "an alert could not be sent to the webhook at " +
                                       escape(state->address.host, Sink::kLog) + ": " + problem);
    }
  }
}

Webhook::~Webhook() {
  const auto deadline = Clock::now() + kTimeout;
  MutexLock lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
  while (!state_->done && Clock::now() < deadline) {
    state_->changed.wait_for(state_->mutex, deadline - Clock::now());
  }
}

}  // namespace tracefire::monitor
