// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>

#include "core/base/settings_file.h"

namespace tracefire {
namespace {

/// Settings as they are without files, before and after a test.
struct Fresh {
  Fresh() { reset_settings(); }
  ~Fresh() { reset_settings(); }
};

TEST_CASE("settings files: the user's wins over the system's, whichever is read first") {
  const Fresh fresh;
  CHECK(apply_settings_text("threads = 2\ndeterministic = true\n", "u", SettingSource::kUserFile)
            .ok());
  CHECK(apply_settings_text("threads = 3\ncuda_path = /a\n", "s", SettingSource::kSystemFile).ok());
  CHECK(settings::threads() == 2);
  CHECK(settings::deterministic());
  CHECK(settings::cuda_path() == "/a");
  CHECK(setting_source("cuda_path").value() == SettingSource::kSystemFile);
  CHECK(std::string(setting_source_name(SettingSource::kSystemFile)) == "system file");
}

TEST_CASE("settings files: a file with a mistake changes nothing") {
  const Fresh fresh;
  const Status status =
      apply_settings_text("threads = 2\nthreads_ = 3\n", "the/file", SettingSource::kUserFile);
  REQUIRE_FALSE(status.ok());
  CHECK(status.code() == ErrorCode::kBadSetting);
  CHECK(status.message().find("the/file:2: ") == 0);
  CHECK(status.message().find("Did you mean 'threads'?") != std::string::npos);
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
  CHECK(read_settings_file({"/nonexistent/tracefire/config", SettingSource::kUserFile}).ok());
  CHECK(read_settings_file({"/dev/null/config", SettingSource::kUserFile}).ok());
  const Status device = read_settings_file({"/dev/zero", SettingSource::kUserFile});
  REQUIRE_FALSE(device.ok());
  CHECK(device.code() == ErrorCode::kFileNotFound);
}

}  // namespace
}  // namespace tracefire
