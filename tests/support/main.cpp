// SPDX-License-Identifier: Apache-2.0
//
// The main function of every test program, and the reporter that scripts/run_tests reads.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdio>
#include <iostream>
#include <string_view>

#include "support/skip.h"

namespace tracefire::test {
namespace {

/// `--reporters=console,lines` adds one line before and one after each case:
///
///     @case NAME
///     @end passed|failed SECONDS FILE:LINE
///     @skipped NAME
struct LineReporter : doctest::IReporter {
  explicit LineReporter(const doctest::ContextOptions& options) : options_(options) {}

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData& data) override {
    current_ = &data;
    line("@case %s\n", data.m_name);
  }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    std::cout.flush();
    std::printf("\n@end %s %.6f %s:%u\n", stats.failure_flags ? "failed" : "passed", stats.seconds,
                current_->m_file.c_str(), current_->m_line);
    std::fflush(stdout);
  }
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData& data) override {
    // A case that a filter left out is not reported; one decorated with doctest::skip() is.
    if (data.m_skip && !options_.no_skip) line("@skipped %s\n", data.m_name);
  }

 private:
  static void line(const char* format, const char* name) {
    std::cout.flush();
    std::printf("\n");
    std::printf(format, name);
    std::fflush(stdout);
  }

  const doctest::ContextOptions& options_;
  const doctest::TestCaseData* current_ = nullptr;
};

REGISTER_REPORTER("lines", 0, LineReporter);

}  // namespace

void skip(std::string_view reason) {
  std::cout.flush();
  std::printf("\nSKIP: %.*s\n", static_cast<int>(reason.size()), reason.data());
  std::fflush(stdout);
}

}  // namespace tracefire::test
