// SPDX-License-Identifier: Apache-2.0
//
// Every fuzz entry of tests/fuzz, a short while: its own seeds, texts of the doctor's trees, and
// both damaged. The search itself is libFuzzer's (cmake/Fuzz.cmake).
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "doctor/fixture.h"
#include "support/paths.h"

#define FUZZ_ENTRY(name) extern "C" int tracefire_fuzz_##name(const uint8_t* data, size_t size);
#include "fuzz_entries.inc"
#undef FUZZ_ENTRY

namespace tracefire::test {

namespace {

namespace fs = std::filesystem;

struct Entry {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
};

#define FUZZ_ENTRY(name) {#name, tracefire_fuzz_##name},
const Entry kEntries[] = {
#include "fuzz_entries.inc"
};
#undef FUZZ_ENTRY

std::vector<std::string> seeds_of(const std::string& name) {
  std::vector<std::string> out = {"", "{}", "[", std::string(3, '\0')};
  const fs::path folder = source_dir() + "/tests/fuzz/" + name;
  std::vector<fs::path> files;
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return out;
}

const std::vector<std::string>& texts() {
  static const std::vector<std::string> kTexts = [] {
    std::vector<std::string> out;
    for (const Fixture& fixture : all_fixtures())
      for (const auto& [path, content] : fixture.files)
        if (content.is_string() && content.get_ref<const std::string&>().size() < 4000)
          out.push_back(content.get<std::string>());
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }();
  return kTexts;
}

/// The same at every run.
struct Random {
  uint64_t state = 88172645463325252u;
  size_t below(size_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return limit == 0 ? 0 : static_cast<size_t>(state % limit);
  }
};

std::string damaged(std::string text, const std::vector<std::string>& seeds, Random* random) {
  for (size_t times = 1 + random->below(4); times > 0; --times) {
    const size_t at = random->below(text.size() + 1), kind = random->below(6);
    const std::string& other = seeds[random->below(seeds.size())];
    if (kind == 0 && at < text.size()) text[at] = static_cast<char>(random->below(256));
    if (kind == 1) text.resize(at);
    if (kind == 2) text.insert(at, other.substr(0, 200));
    if (kind == 3 && at < text.size()) text.erase(at, 1 + random->below(16));
    if (kind == 4) text.insert(at, 1 + random->below(40), "[{\",=\\\n 9.-"[random->below(11)]);
    if (kind == 5) text = text.substr(0, at) + other.substr(random->below(other.size() + 1));
  }
  if (text.size() > 8192) text.resize(8192);
  return text;
}

/// In a process of its own, so that an entry that ends it is told by its name. Returns the number
/// of inputs, -1 where it ended early.
int run_apart(const Entry& entry, std::chrono::milliseconds limit) {
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::vector<std::string> seeds = seeds_of(entry.name);
    const size_t own = seeds.size();
    seeds.insert(seeds.end(), texts().begin(), texts().end());
    Random random;
    const auto end = std::chrono::steady_clock::now() + limit;
    int count = 0;
    for (; std::chrono::steady_clock::now() < end; ++count) {
      const bool first = static_cast<size_t>(count) < own;
      const std::string& seed =
          first ? seeds[static_cast<size_t>(count)]
                : seeds[random.below(random.below(2) == 0 ? own : seeds.size())];
      const std::string input = first ? seed : damaged(seed, seeds, &random);
      entry.run(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    }
    const bool told = ::write(pipe_ends[1], &count, sizeof count) == sizeof count;
    ::_exit(told ? 0 : 1);
  }
  ::close(pipe_ends[1]);
  int count = -1, status = 0;
  if (::read(pipe_ends[0], &count, sizeof count) != sizeof count) count = -1;
  ::close(pipe_ends[0]);
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? count : -1;
}

}  // namespace

TEST_CASE("fuzz entries: seeds and damaged texts") {
  texts();
  for (const Entry& entry : kEntries)
    CHECK_MESSAGE(run_apart(entry, std::chrono::milliseconds(300)) > 0, entry.name);
}

TEST_CASE("fuzz entries: ten seconds each [deep]") {
  texts();
  for (const Entry& entry : kEntries)
    CHECK_MESSAGE(run_apart(entry, std::chrono::seconds(10)) > 0, entry.name);
}

}  // namespace tracefire::test
