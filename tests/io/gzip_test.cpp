// SPDX-License-Identifier: Apache-2.0
// gzip against files that Python's zlib wrote (tests/io/data/make_samples.py).
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "lib/data/inflate.h"
#include "support/paths.h"
#include "tracefire/data.h"

using namespace tracefire;

namespace {

const char* const kSamples[] = {"stored.csv.gz", "fixed.csv.gz", "dynamic.csv.gz", "members.csv.gz",
                                "header.csv.gz"};
constexpr uint64_t kLimit = 1 << 20;

std::string path_of(const std::string& name) {
  return test::source_dir() + "/tests/io/data/" + name;
}

std::string content_of(const std::string& name) {
  std::ifstream file(path_of(name), std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("gzip: stored, fixed and dynamic blocks, several members, every header field") {
  const std::string plain = content_of("table.csv");
  for (const char* name : kSamples) {
    INFO(name);
    const Result<std::string> text = data::gunzip(content_of(name), kLimit, name);
    REQUIRE(text.ok());
    CHECK(*text == plain);
  }
}

TEST_CASE("gzip: a compressed table is read like the plain one") {
  const data::CsvOptions options{.header = true};
  const data::Table plain = data::read_csv(path_of("table.csv"), options);
  CHECK(plain.rows == 60);
  CHECK(plain.columns == 4);
  for (const char* name : kSamples) {
    const data::Table table = data::read_csv(path_of(name), options);
    CHECK(table.names == plain.names);
    CHECK(table.values == plain.values);
  }
}

TEST_CASE("gzip: every cut and every changed bit is an error or changes nothing") {
  const std::string plain = content_of("table.csv");
  for (const char* name : {"fixed.csv.gz", "dynamic.csv.gz", "header.csv.gz"}) {
    INFO(name);
    const std::string whole = content_of(name);
    size_t wrong = 0;
    for (size_t length = 2; length < whole.size(); ++length) {
      const auto text = data::gunzip(std::string_view(whole).substr(0, length), kLimit, name);
      wrong += text.ok() || text.status().code() != ErrorCode::kBadFile;
    }
    CHECK(wrong == 0);
    for (size_t bit = 16; bit < 8 * whole.size(); ++bit) {
      std::string changed = whole;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
      const auto text = data::gunzip(changed, kLimit, name);
      wrong += text.ok() ? *text != plain : text.status().code() != ErrorCode::kBadFile;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("gzip: a small file that would grow beyond the limit is refused early") {
  // 1 MiB of zeros, compressed a thousandfold by one dynamic block; the limit is 4 KiB.
  const std::string text = content_of("zeros.gz");
  CHECK(text.size() < 2000);
  CHECK(data::gunzip(text, kLimit, "zeros").value().size() == kLimit);
  const auto refused = data::gunzip(text, 4096, "zeros");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status().code() == ErrorCode::kBadFile);
  CHECK(refused.status().message().find("limit") != std::string::npos);
  CHECK(refused.status().message().find("zeros") != std::string::npos);
}
