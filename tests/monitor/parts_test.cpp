// SPDX-License-Identifier: Apache-2.0
// Options, addresses, history, bars.
#include <doctest/doctest.h>

#include <cmath>

#include "tools/monitor/judge/webhook.h"
#include "tools/monitor/options.h"
#include "tools/monitor/sample/sampler.h"
#include "tools/monitor/show/format.h"
#include "tools/monitor/show/view_parts.h"
#include "tools/monitor/web/http_parse.h"
#include "tools/monitor/web/http_server.h"

namespace tracefire::monitor {

TEST_CASE("monitor: times, sizes and addresses of the command line") {
  CHECK(parse_time("10s")->count() == 10000);
  CHECK(parse_time("500ms")->count() == 500);
  CHECK(parse_time("2m")->count() == 120000);
  CHECK(parse_time("1.5")->count() == 1500);
  for (const char* wrong : {"", "0", "-1s", "10x", "25h", "nan", "inf", "1 s", "0x10"}) {
    CHECK_FALSE(parse_time(wrong).ok());
  }
  CHECK(*parse_bytes("50MB") == 50'000'000);
  CHECK(*parse_bytes("64MiB") == 64 << 20);
  for (const char* wrong : {"", "1", "-5MB", "5XB", "1e30"}) CHECK_FALSE(parse_bytes(wrong).ok());
  std::string host = "127.0.0.1";
  int port = 1;
  CHECK(parse_address("9000", &host, &port).ok());
  CHECK((host == "127.0.0.1" && port == 9000));
  CHECK(parse_address("0.0.0.0", &host, &port).ok());
  CHECK((host == "0.0.0.0" && port == 9000));
  CHECK(parse_address("[::1]:80", &host, &port).ok());
  CHECK((host == "::1" && port == 80));
  CHECK(parse_address("localhost:81", &host, &port).ok());
  CHECK((host == "127.0.0.1" && port == 81));
  for (const char* wrong : {"70000", "a:b", "a:", "[::1]:x"}) {
    if (std::string(wrong) == "a:") continue;
    CHECK_FALSE(parse_address(wrong, &host, &port).ok());
  }
}

TEST_CASE("monitor: addresses of a webhook") {
  const auto address = parse_webhook("http://relay.example:8080/hook?a=1#part");
  REQUIRE(address.ok());
  CHECK((address->host == "relay.example" && address->port == "8080"));
  CHECK(address->path == "/hook?a=1");
  CHECK(parse_webhook("http://[::1]:9/")->host == "::1");
  CHECK(parse_webhook("http://h")->port == "80");
  for (const char* wrong :
       {"", "h", "ftp://h/", "https://h/", "http://", "http://:80/", "http://h:0/",
        "http://h:99999/", "http://user@h/", "http://h/\r\nX: y", "http://h:80x/"}) {
    CHECK_FALSE(parse_webhook(wrong).ok());
  }
}

TEST_CASE("monitor: history is bounded and answers who waits") {
  History history(5);
  CHECK(history.wait_for(0, std::chrono::milliseconds(1)) == nullptr);
  for (uint64_t i = 1; i <= 20; ++i) {
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->sequence = i;
    snapshot->steady_us = static_cast<int64_t>(i);
    Gpu gpu;
    gpu.uuid = "a";
    snapshot->gpus.push_back(gpu);
    history.add(snapshot);
  }
  const std::vector<Point> points = history.points("a", 100);
  REQUIRE(points.size() == 5);
  CHECK((points.front().steady_us == 16 && points.back().steady_us == 20));
  CHECK(std::isnan(points.back().busy));
  CHECK(history.points("a", 2).size() == 2);
  CHECK(history.points("other", 2).empty());
  CHECK(history.wait_for(19, std::chrono::milliseconds(1))->sequence == 20);
}

namespace {
class Counting : public Source {
 public:
  void read(Snapshot* snapshot) override { snapshot->driver = std::to_string(++reads); }
  int reads = 0;
};
}  // namespace

TEST_CASE("monitor: the sampler feeds several readers [threads]") {
  auto history = std::make_shared<History>();
  Sampler sampler(std::make_shared<Counting>(), history, std::chrono::milliseconds(50));
  sampler.start();
  std::vector<std::thread> readers;
  std::atomic<int> good{0};
  for (int r = 0; r < 4; ++r) {
    readers.emplace_back([&] {
      uint64_t sequence = 0;
      for (int i = 0; i < 5; ++i) {
        const auto snapshot = history->wait_for(sequence, std::chrono::seconds(5));
        if (snapshot == nullptr || snapshot->sequence <= sequence) return;
        sequence = snapshot->sequence;
      }
      ++good;
    });
  }
  for (std::thread& reader : readers) reader.join();
  CHECK(good == 4);
}

TEST_CASE("monitor: bars and sparklines") {
  CHECK(bar(0.5, 4, false) == "##..");
  CHECK(bar(2, 4, false) == "####");
  CHECK(bar(0, 4, true) == "\u2591\u2591\u2591\u2591");
  CHECK(bar(0.25 + 0.125, 4, true) == "\u2588\u258c\u2591\u2591");
  CHECK(sparkline({0.0f, 1.0f}, 4, true) == "  \u2581\u2588");
  CHECK(sparkline({0.0f, NAN, 1.0f}, 3, false) == "_ #");
  CHECK(display_width(sparkline(std::vector<float>(1000, 0.5f), 30, true)) == 30);
}

TEST_CASE("monitor: times and amounts as people read them") {
  CHECK(time_text(0) == "1970-01-01T00:00:00.000Z");
  CHECK(time_text(1796050531'637'000) == "2026-11-30T14:55:31.637Z");
  CHECK(bytes_text(512) == "512 B");
  CHECK(span_text(0.9) == "0 s");
  CHECK(span_text(125) == "2 min");
  CHECK(span_text(3 * 3600 + 20 * 60) == "3 h 20 min");
  CHECK(span_text(5 * 86400 + 4 * 3600) == "5 d 4 h");
  CHECK(bytes_text(1.5 * (1 << 30)) == "1.5 GiB");
  CHECK(rate_text(1.25e9) == "1.2 GB/s");
}

TEST_CASE("monitor: requests") {
  ParsedRequest r;
  CHECK(parse_request("GET /a?b=1&c=2 HTTP/1.1\r\nHost: x\r\n", &r));
  CHECK((r.path == "/a" && query_value(r.query, "c") == "2" && query_value(r.query, "d").empty()));
  CHECK(host_allowed("Gpu.Example:1", {"gpu.example"}));
  CHECK_FALSE(host_allowed("gpu.example.", {"gpu.example"}));
  CHECK_FALSE(host_allowed("", {""}));
}

}  // namespace tracefire::monitor
