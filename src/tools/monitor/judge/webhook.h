// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "core/base/status.h"

namespace tracefire::monitor {

struct WebhookAddress {
  std::string host;
  std::string port = "80";
  std::string path = "/";
};
/// "http://host[:port][/path]". Errors: kBadUsage; https is refused with a way out.
Result<WebhookAddress> parse_webhook(const std::string& url);

/// Sends texts by HTTP POST on a thread of its own, one after the other. Nobody waits for it: at
/// most 64 texts queue up, each is given three seconds, and one that fails is told on stderr.
/// No redirect is followed and nothing of the answer but its status is read.
class Webhook {
 public:
  explicit Webhook(WebhookAddress address);
  /// Waits up to three seconds for what is queued.
  ~Webhook();
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  void send(std::string json);

 private:
  struct State;
  static void run(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace tracefire::monitor
