// SPDX-License-Identifier: Apache-2.0
// Runs every file of tests/ir/golden. With TRACEFIRE_UPDATE_GOLDEN=1 the files are written with
// what came out, to be read in the diff and committed.

#include "ir/golden.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/paths.h"

namespace tracefire::test {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST_CASE("golden graphs: every pass gives what its files say") {
  const char* update = std::getenv("TRACEFIRE_UPDATE_GOLDEN");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/tests/ir/golden")) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() > 0);
  for (const auto& file : files) {
    INFO("file: ", file.filename().string());
    const std::string text = read(file);
    const std::string now = run_golden(Golden::parse(text)).str();
    if (update && std::string_view(update) == "1") {
      if (now != text) std::ofstream(file) << now;
      continue;
    }
    CHECK(now == text);
  }
}

TEST_CASE("golden graphs: a file that says something else is noticed") {
  const std::string text =
      "# pass: simplify\n"
      "graph g(%0: float32(4,)) {\n"
      "  %1 = stop_gradient(%0) : float32(4,)\n"
      "  %2 = neg(%1) : float32(4,)\n"
      "  return %2\n"
      "}\n"
      "=== graph\n"
      "nothing\n";
  const Golden now = run_golden(Golden::parse(text));
  CHECK(now.kind == "graph");
  CHECK(now.after ==
        "graph g(%0: float32(4,)) {\n"
        "  %1 = neg(%0) : float32(4,)\n"
        "  return %1\n"
        "}\n");
}

}  // namespace
}  // namespace tracefire::test
