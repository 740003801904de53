// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "core/base/status.h"
#include "support/paths.h"
#include "tracefire/data.h"

using namespace tracefire;

namespace {

/// Code and text of what `work` throws, or 0 and "".
template <class Work>
std::pair<int, std::string> failure_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return {error.number(), error.what()};
  }
  return {0, ""};
}

std::pair<int, std::string> failure(std::string_view text, const data::CsvOptions& options = {}) {
  return failure_of([&] { data::parse_csv(text, options, "t.csv"); });
}

template <class Work>
int code_of(Work work) {
  return failure_of(work).first;
}

}  // namespace

TEST_CASE("csv: numbers, blanks, quotes, ends of lines, a mark of UTF-8") {
  const data::Table table =
      data::parse_csv("\xef\xbb\xbf 1, -2.5 ,\"3e2\"\r\n\r\n+4,nan,-inf\n  \n5,6,7", {}, "t.csv");
  CHECK(table.rows == 3);
  CHECK(table.columns == 3);
  REQUIRE(table.values.size() == 9);
  CHECK(table.values[0] == 1);
  CHECK(table.values[1] == -2.5);
  CHECK(table.values[2] == 300);
  CHECK(table.values[3] == 4);
  CHECK(std::isnan(table.values[4]));
  CHECK(table.values[5] == -INFINITY);
  CHECK(table.values[8] == 7);
  CHECK(table.names.empty());
}

TEST_CASE("csv: a header, another separator, columns as tensors") {
  const data::Table table = data::parse_csv("a\t\"b c\"\tkind\n0.5\t1\t2\n1.5\t3\t0\n",
                                            {.header = true, .separator = '\t'}, "t.tsv");
  CHECK(table.names == std::vector<std::string>{"a", "b c", "kind"});
  CHECK(table.column("b c") == 1);
  CHECK(table.floats(0, 2).values<float>() == std::vector<float>{0.5f, 1, 1.5f, 3});
  CHECK(table.floats(0, 2).sizes() == std::vector<int64_t>{2, 2});
  CHECK(table.labels(-1).values<int32_t>() == std::vector<int32_t>{2, 0});
  CHECK(code_of([&] { table.labels(0); }) == 402);  // 0.5 is no label
  CHECK(code_of([&] { table.labels(3); }) == 301);
  CHECK(code_of([&] { table.floats(1, 3); }) == 301);
  CHECK(code_of([&] { table.column("knid"); }) == 301);
}

TEST_CASE("csv: every error names file, line and column, and what was there") {
  struct Case {
    const char* text;
    int code;
    std::vector<const char*> parts;
  };
  const Case cases[] = {
      {"1,2\n3,x4\n", 402, {"t.csv", "line 2", "column 2", "'x4'", "number"}},
      {"1,2\n\n3,\n", 402, {"line 3", "column 2", "empty"}},
      {"1,2\n3\n", 403, {"line 2", "1 fields", "expected 2"}},
      {"1,2\n3,4,5\n", 403, {"line 2", "more than 2"}},
      {"1,\"2\n", 402, {"line 1", "column 2", "quote"}},
      {"1,\"2\"3\n", 402, {"line 1", "column 2", "quote"}},
      {"1e999\n", 402, {"line 1", "column 1", "range"}},
      {"+-1\n", 402, {"'+-1'"}},
      {"1 2\n", 402, {"'1 2'"}},
      {"", 115, {"t.csv", "no row"}},
      {"\n \n", 115, {"no row"}},
  };
  for (const Case& c : cases) {
    const auto failed = failure(c.text);
    const std::string& text = failed.second;  // INFO cannot hold a structured binding in Clang 14
    INFO(c.text, " -> ", text);
    CHECK(failed.first == c.code);
    for (const char* part : c.parts) CHECK(text.find(part) != std::string::npos);
  }
  CHECK(failure("a,b\n", {.header = true}).first == 115);
  const auto twice = failure("a,b, a\n1,2,3\n", {.header = true});
  CHECK(twice.first == 402);
  CHECK(twice.second.find("line 1: two columns are called 'a'") != std::string::npos);
  CHECK(data::parse_csv(",,b\n1,2,3\n", {.header = true}).column("b") == 2);  // without names
  CHECK(failure("1,2\n", {.separator = '.'}).first == 503);
  CHECK(failure("1,2\n3,4\n", {.max_bytes = 5}).first == 402);
  // bytes that are no text are shown as such, never passed on
  CHECK(failure(std::string("\x01\x02,\xff\n", 5)).second.find("'\?\?'") != std::string::npos);
}

TEST_CASE("csv: files that are not there, or are folders") {
  CHECK(code_of([] { data::read_csv("no/such/file.csv"); }) == 401);
  CHECK(code_of([] { data::read_csv(test::source_dir() + "/tests"); }) == 401);
  // The system would read the file whose name ends at the NUL.
  const std::string cut = test::source_dir() + "/LICENSE" + std::string(1, '\0') + ".csv";
  const auto [code, text] = failure_of([&] { data::read_csv(cut); });
  CHECK(code == 401);
  CHECK(text.find("LICENSE\\0.csv' holds a NUL byte") != std::string::npos);
}

TEST_CASE("digits: 1,797 rows, every pixel in 0 ... 1, as many of each digit as the file has") {
  const data::Dataset digits = data::digits();
  CHECK(digits.x.sizes() == std::vector<int64_t>{1797, 64});
  const std::vector<float> x = digits.x.values<float>();
  CHECK(*std::min_element(x.begin(), x.end()) == 0);
  CHECK(*std::max_element(x.begin(), x.end()) == 1);
  // The first row of the file: 0,0,5,13,9,1 ...
  CHECK(x[2] == 5.0f / 16);
  CHECK(x[3] == 13.0f / 16);
  std::vector<int> count(10, 0);
  for (int32_t label : digits.y.values<int32_t>()) ++count.at(static_cast<size_t>(label));
  // NumPy: np.bincount(sklearn.datasets.load_digits().target)
  CHECK(count == std::vector<int>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180});

  const auto [train, test] = data::split_every(digits, 5);
  CHECK(train.rows() == 1437);
  CHECK(test.rows() == 360);
  const std::vector<int32_t> all = digits.y.values<int32_t>(), held = test.y.values<int32_t>();
  for (size_t i = 0; i < held.size(); ++i) CHECK(held[i] == all[5 * i]);
  CHECK(train.y.values<int32_t>()[4] == all[6]);
}

TEST_CASE("rows and splits refuse what cannot be") {
  const data::Dataset two{Tensor::of<float>({1, 2}, {2, 1}), Tensor::of<int32_t>({0, 1}, {2})};
  CHECK(data::take_rows(two, {1, 0}).y.values<int32_t>() == std::vector<int32_t>{1, 0});
  CHECK(code_of([&] { data::take_rows(two, {2}); }) == 301);
  CHECK(code_of([&] { data::split_every(two, 1); }) == 103);
  CHECK(code_of([&] { data::split_every({Tensor::of<float>({1}, {1, 1}), {}}, 5); }) == 115);
  CHECK(code_of([&] { data::take_rows({two.x, Tensor::of<int32_t>({0}, {1})}, {0}); }) == 101);
  CHECK(code_of([] { data::Dataset().rows(); }) == 115);
}
