// SPDX-License-Identifier: Apache-2.0
// gzip against files that Python's zlib wrote (tests/io/data/make_samples.py).
#include "lib/data/gzip.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

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

bool contains(const Result<std::string>& failed, const std::string& part) {
  return !failed.ok() && failed.status().message().find(part) != std::string::npos;
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
  // 1 MiB of zeros, compressed a thousandfold by one dynamic block.
  const std::string text = content_of("zeros.gz");
  CHECK(text.size() < 2000);
  CHECK(data::gunzip(text, kLimit, "zeros").value().size() == kLimit);
  for (const uint64_t limit : {uint64_t{0}, uint64_t{1}, uint64_t{4096}, kLimit - 1}) {
    const auto refused = data::gunzip(text, limit, "zeros");
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.status().code() == ErrorCode::kBadFile);
    CHECK(contains(refused, "zeros: "));
    CHECK(contains(refused, "larger than the limit of " + std::to_string(limit) + " bytes"));
    CHECK(contains(refused, "Raise CsvOptions::max_bytes"));
  }
  // The limit is one of the whole file, not of a member.
  const auto second = data::gunzip(text + text, 2 * kLimit - 1, "twice");
  CHECK(contains(second, "byte " + std::to_string(text.size()) + ": the text is larger"));
  CHECK(data::gunzip(text + text, 2 * kLimit, "twice").value().size() == 2 * kLimit);
}

TEST_CASE("gzip: the declared length is checked, not trusted, and the limit is no room to take") {
  const std::string whole = content_of("dynamic.csv.gz");
  for (const char* declared : {"\xff\xff\xff\xff", "\x01\x01\x01\x01", "\x7f\xff\xff\xff"}) {
    const std::string lying = whole.substr(0, whole.size() - 4) + declared;
    const auto text = data::gunzip(lying, UINT64_MAX, "lying");
    REQUIRE_FALSE(text.ok());
    CHECK(text.status().code() == ErrorCode::kBadFile);
    CHECK(
        contains(text, "lying: compressed data, byte 0: what begins here is cut short or damaged"));
  }
  CHECK(data::gunzip(whole, UINT64_MAX, "small").value().capacity() <= 1 << 16);
  CHECK(data::gunzip(content_of("zeros.gz"), UINT64_MAX, "zeros").value().capacity() <= 2 * kLimit);
}

TEST_CASE("gzip: many members, empty ones among them, and what follows them") {
  const std::string empty("\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0\0\0\0\0\0\0\0\0", 20);
  CHECK(data::gunzip(empty, 0, "empty").value().empty());
  const std::string member = content_of("fixed.csv.gz"), plain = content_of("table.csv");
  std::string all, expected;
  for (int i = 0; i < 200; ++i) {
    all += i % 3 == 0 ? empty : member;
    if (i % 3 != 0) expected += plain;
  }
  CHECK(data::gunzip(all, kLimit, "all").value() == expected);
  const auto followed = data::gunzip(all + "more", kLimit, "all");
  REQUIRE_FALSE(followed.ok());
  CHECK(followed.status().code() == ErrorCode::kBadFile);
  CHECK(contains(followed, "byte " + std::to_string(all.size()) + ": what follows is not gzip"));
  const auto cut = data::gunzip(all + member.substr(0, 40), kLimit, "all");
  CHECK(contains(cut, "byte " + std::to_string(all.size()) + ": what begins here is cut short"));
  CHECK(contains(data::gunzip("", kLimit, "none"),
                 "none: compressed data, byte 0: the file is empty"));
}
