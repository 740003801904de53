// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/settings_file.h"

namespace tracefire {
namespace {

/// The user's settings file, with this text while it lives.
class UserFile {
 public:
  explicit UserFile(const std::string& text) {
    char folder[] = "/tmp/tracefire_settings_XXXXXX";
    folder_ = mkdtemp(folder);
    std::filesystem::create_directories(folder_ + "/tracefire");
    std::ofstream(path()) << text;
    setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
    reset_settings();
  }
  ~UserFile() {
    unsetenv("XDG_CONFIG_HOME");
    std::filesystem::remove_all(folder_);
    reset_settings();
  }
  UserFile(const UserFile&) = delete;
  UserFile& operator=(const UserFile&) = delete;
  std::string path() const { return folder_ + "/tracefire/config"; }

 private:
  std::string folder_;
};

TEST_CASE("settings files: the library reads the user's, and the environment wins over it") {
  setenv("TRACEFIRE_MAX_PENDING_NODES", "5", 1);
  {
    const UserFile file("threads = 2\nmax_pending_nodes = 7\n");
    CHECK(settings_problem().ok());
    CHECK(settings::threads() == 2);
    CHECK(settings::max_pending_nodes() == 5);
    CHECK(setting_source("threads").value() == SettingSource::kUserFile);
    CHECK(setting_source("max_pending_nodes").value() == SettingSource::kEnvironment);
  }
  unsetenv("TRACEFIRE_MAX_PENDING_NODES");
  reset_settings();
}

TEST_CASE("settings files: a file with a mistake changes nothing and is a problem") {
  const UserFile file("threads = 2\nthreads_ = 3\n");
  const Status problem = settings_problem();
  REQUIRE_FALSE(problem.ok());
  CHECK(problem.code() == ErrorCode::kBadSetting);
  CHECK(problem.message().find(file.path() + ":2: ") == 0);
  CHECK(problem.message().find("Did you mean 'threads'?") != std::string::npos);
  CHECK(settings::threads() == 0);
}

TEST_CASE("settings files: the system's is looked for first, and only absolute folders count") {
  const char* home = std::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  const char* folder = std::getenv("XDG_CONFIG_HOME");
  const std::string folder_before = folder == nullptr ? "" : folder;
  const auto paths = [] {
    std::vector<std::string> out;
    for (const SettingsFile& file : settings_files()) out.push_back(file.path);
    return out;
  };
  setenv("HOME", "/h", 1);
  unsetenv("XDG_CONFIG_HOME");
  CHECK(paths() ==
        std::vector<std::string>{"/etc/tracefire/config", "/h/.config/tracefire/config"});
  setenv("XDG_CONFIG_HOME", "/x", 1);
  CHECK(paths() == std::vector<std::string>{"/etc/tracefire/config", "/x/tracefire/config"});
  setenv("XDG_CONFIG_HOME", "x", 1);
  CHECK(paths() ==
        std::vector<std::string>{"/etc/tracefire/config", "/h/.config/tracefire/config"});
  unsetenv("HOME");
  CHECK(paths() == std::vector<std::string>{"/etc/tracefire/config"});
  home == nullptr ? unsetenv("HOME") : setenv("HOME", before.c_str(), 1);
  folder == nullptr ? unsetenv("XDG_CONFIG_HOME")
                    : setenv("XDG_CONFIG_HOME", folder_before.c_str(), 1);
}

TEST_CASE("settings files: one that is not there is no error") {
  std::string warning;
  CHECK(read_settings_file("/nonexistent/tracefire/config", &warning).value().empty());
  CHECK(read_settings_file("/dev/null/config", &warning).value().empty());
  CHECK(warning.empty());
  const Status device = read_settings_file("/dev/zero", &warning).status();
  REQUIRE_FALSE(device.ok());
  CHECK(device.code() == ErrorCode::kFileNotFound);
}

}  // namespace
}  // namespace tracefire
