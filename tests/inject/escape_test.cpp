// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/escape.h"

#include <doctest/doctest.h>

#include <string>

#include "inject/record_maker.h"
#include "tools/inject/report.h"

namespace tracefire::inject {

TEST_CASE("inject: outside text cannot become markup") {
  CHECK(html_text("<script>alert('x & \"y\"')</script>") ==
        "&lt;script&gt;alert(&#39;x &amp; &quot;y&quot;&#39;)&lt;/script&gt;");
  test::RecordMaker maker;
  maker.kernel("<img src=x onerror=alert(1)>", 0, 5000000, 0);
  maker.finish(10000000);
  std::vector<ProcessRecord> records = {maker.read()};
  records[0].host = "<b>host";
  records[0].command = "x'><svg onload=alert(2)> --token=abc123";
  Session session;
  session.tracing = "on";
  session.command = {"</title><script>"};
  const std::string html = report_html(analyse(session, records, Damage{{"<i>damage"}, {}}));
  CHECK(html.find("<img") == std::string::npos);
  CHECK(html.find("<script") == std::string::npos);
  CHECK(html.find("<b>") == std::string::npos);
  CHECK(html.find("<i>") == std::string::npos);
  CHECK(html.find("onload=alert(2)>") == std::string::npos);
  CHECK(html.find("abc123") == std::string::npos);
  CHECK(html.find("http") == html.find("http-equiv"));  // nothing from elsewhere
  CHECK(html.find("default-src 'none'") != std::string::npos);
}

TEST_CASE("inject: outside text cannot forge the text report or drive a terminal") {
  test::RecordMaker maker;
  maker.kernel("k", 0, 5000000, 0);
  maker.finish(10000000);
  const std::vector<ProcessRecord> records = {maker.read()};
  Session written;
  written.tracing = "on";
  written.command = {"sh", "\033[31mred", "a\nverdict   on-gpu"};
  written.host = "h\nost";
  written.notes = {"n\033]0;x\007"};
  Json json = to_json(written);
  // As from a machine that escaped nothing.
  json["command"] = Json::array({"sh", "\033[31mred", "a\nverdict   forged"});
  json["gpu_problem"] = "\033[2J\nverdict   forged";
  json["ending"]["start_error"] = "e\nverdict   forged";
  json["notes"] = Json::array({"n\033]0;x\007\nverdict   forged"});
  const Session session = read_session(json.dump()).value();
  const std::string text = report_text(analyse(session, records, {}));
  CHECK(text.find('\033') == std::string::npos);
  CHECK(text.find("\nverdict   forged") == std::string::npos);
}

TEST_CASE("inject: a damaged field of session.json is named") {
  Session written;
  written.tracing = "on";
  written.command = {"python", "train.py"};
  written.environment = {{"CUDA_VISIBLE_DEVICES", "0"}};
  written.gpus.emplace_back();
  written.processes.emplace_back();
  written.others.emplace_back();
  written.notes = {"a note"};
  written.samples.emplace_back();
  written.samples[0].gpus.emplace_back();
  const Json whole = to_json(written);
  REQUIRE(read_session(whole.dump()).ok());
  size_t fields = 0;
  const Json flat = whole.flatten();
  for (const auto& entry : flat.items()) {
    const std::string path = entry.key();
    if (path == "/schema" || path == "/manifest") continue;
    Json damaged = whole;
    damaged[Json::json_pointer(path)] = {{"x", 1.5}};
    const auto read = read_session(damaged.dump());
    ++fields;
    REQUIRE_MESSAGE(!read.ok(), path);
    std::string name = path.substr(path.find_last_not_of("0123456789/]") + 1);
    name = path.substr(0, path.size() - name.size());  // of a list the list's own name
    name = name.substr(name.rfind('/') + 1);
    CHECK_MESSAGE(read.status().message().find(name) != std::string::npos, path, ": ",
                  read.status().message());
    CHECK_MESSAGE(read.status().message().find("expected") != std::string::npos,
                  read.status().message());
  }
  CHECK(fields > 50);
  const auto refused = [&](const char* pointer, const Json& value) {
    Json damaged = whole;
    damaged[Json::json_pointer(pointer)] = value;
    return read_session(damaged.dump()).status().message();
  };
  CHECK(refused("/cores", 1e30).find("cores is 1e+30; expected a whole number") !=
        std::string::npos);
  CHECK(refused("/processes/0/pid", int64_t{1} << 40).find("processes[0].pid is") !=
        std::string::npos);
  Json damaged = whole;
  damaged.erase("ending");
  CHECK(read_session(damaged.dump()).status().message().find("ending is missing") !=
        std::string::npos);
}

}  // namespace tracefire::inject
