// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/escape.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "inject/record_maker.h"
#include "tools/inject/report.h"

namespace tracefire::inject {

TEST_CASE("inject: outside text cannot steer a terminal") {
  CHECK(printable("plain text, größer 漢字") == "plain text, größer 漢字");
  CHECK(printable("\x1b[31mred\x07") == "\\x1b[31mred\\x07");
  CHECK(printable("a\nb\tc") == "a\\x0ab\\x09c");
  CHECK(printable("\xff\xc3(") == "\\xff\\xc3(");
  CHECK(printable("\xe2\x80\xae"
                  "gpj") == "\\xe2\\x80\\xaegpj");        // turns the direction round
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");           // not the shortest form
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half a surrogate pair
  CHECK(printable(std::string(100, 'x'), 10) == "xxxxxxxxxx…");
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += static_cast<char>(random());
    const std::string out = printable(text);
    for (const char c : out) REQUIRE(static_cast<unsigned char>(c) >= ' ');
    CHECK(printable(out) == out);
  }
}

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
  const std::string html = report_html(analyse(session, records, "<i>damage"));
  CHECK(html.find("<img") == std::string::npos);
  CHECK(html.find("<script") == std::string::npos);
  CHECK(html.find("<b>") == std::string::npos);
  CHECK(html.find("<i>") == std::string::npos);
  CHECK(html.find("onload=alert(2)>") == std::string::npos);
  CHECK(html.find("abc123") == std::string::npos);
  CHECK(html.find("http") == html.find("http-equiv"));  // nothing from elsewhere
  CHECK(html.find("default-src 'none'") != std::string::npos);
}

TEST_CASE("inject: secrets are left out") {
  CHECK(redacted("python train.py --lr 0.1 --batch=32") == "python train.py --lr 0.1 --batch=32");
  CHECK(redacted("run --api-key abc --x 1") == "run --api-key [redacted] --x 1");
  CHECK(redacted("--hf_token=hf_abcdefghijklmnop") == "--hf_token=[redacted]");
  CHECK(redacted("WANDB_API_KEY=12345 go") == "WANDB_API_KEY=[redacted] go");
  CHECK(redacted("git clone https://me:pw@host/x") == "git clone https://[redacted]@host/x");
  CHECK(redacted("curl -H x ghp_0123456789abcdefghij end") == "curl -H x [redacted] end");
  CHECK(redacted("0123456789abcdef0123456789abcdef") == "[redacted]");
  CHECK(redacted("https://host/path@2x.png") == "https://host/path@2x.png");
  CHECK(redacted_words({"x", "--password", "a b", "-v"}) ==
        std::vector<std::string>{"x", "--password", "[redacted]", "-v"});
  CHECK(names_a_secret("AWS_SECRET_ACCESS_KEY"));
  CHECK_FALSE(names_a_secret("CUDA_VISIBLE_DEVICES"));
}

}  // namespace tracefire::inject
