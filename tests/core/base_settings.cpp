// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <vector>

#include "core/base/log.h"
#include "core/base/settings.h"

namespace tracefire {
namespace {

/// Sets environment variables for the length of a block, with the settings read again around it.
class Environment {
 public:
  explicit Environment(std::vector<std::pair<std::string, std::string>> variables)
      : variables_(std::move(variables)) {
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    for (const auto& [name, value] : variables_) setenv(name.c_str(), value.c_str(), 1);
    set_log_sink([this](LogLevel, const std::string& line) { lines.push_back(line); });
    reset_settings();
  }
  ~Environment() {
    for (const auto& [name, value] : variables_) unsetenv(name.c_str());
    unsetenv("XDG_CONFIG_HOME");
    reset_settings();
    set_log_sink({});
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  std::vector<std::string> lines;

 private:
  std::vector<std::pair<std::string, std::string>> variables_;
};

TEST_CASE("settings have their defaults") {
  Environment none({});
  CHECK(settings::device_policy() == DevicePolicy::kSoft);
  CHECK(settings::max_pending_nodes() == 256);
  CHECK(settings::max_pinned_bytes() == int64_t{256} << 20);
  CHECK(settings::matmul_precision() == MatmulPrecision::kTf32);
  CHECK_FALSE(settings::log_device_placement());
  CHECK(settings::cpu_wait_above() == 1.0);
  CHECK(setting_source("threads").value() == SettingSource::kDefault);
  CHECK(none.lines.empty());
}

TEST_CASE("every default is a value that its own setting takes") {
  Environment none({});
  for (const SettingRow& row : kSettingTable) {
    CAPTURE(row.name);
    CHECK(set_setting(row.name, row.fallback).ok());
    CHECK(setting_text(row.name).value() == row.fallback);
  }
}

TEST_CASE("a flag wins over the environment, and the program's own call over both") {
  Environment env({{"TRACEFIRE_DEVICE_POLICY", "strict"},
                   {"TRACEFIRE_MAX_PENDING_NODES", "7"},
                   {"TRACEFIRE_LOG_DEVICE_PLACEMENT", "1"},
                   {"TRACEFIRE_GPU_MEMORY_FRACTION", "0.5"},
                   {"TRACEFIRE_CUDA_PATH", "/opt/cuda"}});
  CHECK(settings::device_policy() == DevicePolicy::kStrict);
  CHECK(settings::max_pending_nodes() == 7);
  CHECK(settings::log_device_placement());
  CHECK(settings::gpu_memory_fraction() == 0.5);
  CHECK(settings::cuda_path() == "/opt/cuda");
  uint64_t before = settings_generation();
  CHECK(set_setting("max_pending_nodes", "8", SettingSource::kUserFile).ok());
  CHECK(settings::max_pending_nodes() == 7);
  CHECK(settings_generation() == before);
  CHECK(set_setting("max_pending_nodes", "8", SettingSource::kFlag).ok());
  CHECK(settings::max_pending_nodes() == 8);
  CHECK(set_setting("max_pending_nodes", "9").ok());
  CHECK(settings::max_pending_nodes() == 9);
  CHECK(settings_generation() > before);
  CHECK(env.lines.empty());
}

TEST_CASE("wrong values are refused with what was expected") {
  Environment none({});
  struct Case {
    const char *name, *value, *words;
  };
  for (Case c :
       std::vector<Case>{{"threads", "many", "A whole number of at least 0 and at most 1024"},
                         {"threads", "-1", "A whole number"},
                         {"threads", "3x", "A whole number"},
                         {"threads", "99999999999999999999", "A 64-bit whole number"},
                         {"gpu_memory_fraction", "1e999", "A 64-bit number"},
                         {"gpu_memory_fraction", "1.5", "at most 1"},
                         {"gpu_memory_fraction", "nan", "A number"},
                         {"deterministic", "maybe", "true or false"},
                         {"device_policy", "Soft", "One of soft|strict"},
                         {"device_policy", "", "One of soft|strict"},
                         {"thread", "1", "Did you mean 'threads'?"},
                         {"nothing_like_it_at_all", "1", "tracefire settings"}}) {
    CAPTURE(c.name);
    CAPTURE(c.value);
    Status status = set_setting(c.name, c.value);
    REQUIRE_FALSE(status.ok());
    CHECK(status.code() == ErrorCode::kBadSetting);
    CHECK(status.message().find(c.words) != std::string::npos);
  }
  CHECK(settings::threads() == 0);
  CHECK_FALSE(setting_text("thread").ok());
}

TEST_CASE("a wrong value in the environment is an error where work begins") {
  Environment env({std::pair<std::string, std::string>("TRACEFIRE_THREADS", "lots")});
  CHECK(env.lines.empty());  // nothing is said twice
  const Status problem = settings_problem();
  REQUIRE_FALSE(problem.ok());
  CHECK(problem.code() == ErrorCode::kBadSetting);
  CHECK(problem.message().find(
            "environment variable TRACEFIRE_THREADS: the setting threads cannot be 'lots'. A whole "
            "number of at least 0 and at most 1024") == 0);
  CHECK(settings_problems().size() == 1);
  // Another setting does not mend it, a weaker source neither; the program's own value does.
  CHECK(set_setting("deterministic", "true").ok());
  CHECK(set_setting("threads", "2", SettingSource::kUserFile).ok());
  CHECK_FALSE(set_setting("threads", "-1").ok());
  CHECK_FALSE(settings_problem().ok());
  CHECK(set_setting("threads", "2").ok());
  CHECK(settings_problem().ok());
  CHECK(settings::threads() == 2);
}

TEST_CASE("a variable that is no setting is said once, with the nearest name") {
  Environment env({{"TRACEFIRE_THREAD", "2"},
                   {"TRACEFIRE_LOGDEVICEPLACEMENT", "1"},
                   {"TRACEFIRE_SOMETHING_ELSE_ALTOGETHER", "1"},
                   {"TRACEFIRE_PROVE_DIR", "x"},
                   {"TRACEFIRE_PROVE_LIMT", "1"},
                   {"TRACEFIRE_", "x"}});
  settings::threads();
  settings::threads();
  CHECK(settings_problem().ok());
  REQUIRE(env.lines.size() == 5);
  std::string all;
  for (const std::string& line : env.lines) {
    all += line;
    CHECK(line.find("tracefire: warning: the environment variable TRACEFIRE_") == 0);
  }
  CHECK(all.find("TRACEFIRE_THREAD belongs to no setting and has no effect. Did you mean "
                 "TRACEFIRE_THREADS?") != std::string::npos);
  CHECK(all.find("Did you mean TRACEFIRE_LOG_DEVICE_PLACEMENT?") != std::string::npos);
  CHECK(all.find("ALTOGETHER belongs to no setting and has no effect. `tracefire settings`") !=
        std::string::npos);
  CHECK(all.find("PROVE_DIR") == std::string::npos);
  CHECK(all.find("TRACEFIRE_PROVE_LIMT belongs to no setting and has no effect. Did you mean "
                 "TRACEFIRE_PROVE_LIMIT?") != std::string::npos);
}

TEST_CASE("a setting behind a prefix that is nearly right is said, too") {
  Environment env({{"TRACFIRE_THREADS", "2"},
                   {"tracefire_log_level", "off"},
                   {"Tracefire_Deterministic", "1"},
                   {"TRACEFIRES_THREADS", "2"},
                   {"FIRE_THREADS", "2"},
                   {"TRACER_THREADS_", "2"},
                   {"TRACEFIREX", "2"},
                   {"_THREADS", "2"},
                   {"TRACFIRE_NOTHING_OF_OURS", "2"}});
  settings::threads();
  CHECK(settings_problem().ok());
  std::string all;
  for (const std::string& line : env.lines) all += line;
  CHECK_MESSAGE(env.lines.size() == 4, all);
  CHECK(all.find("variable TRACFIRE_THREADS belongs to no setting and has no effect. Did you mean "
                 "TRACEFIRE_THREADS?") != std::string::npos);
  CHECK(all.find("tracefire_log_level belongs to no setting and has no effect. Did you mean "
                 "TRACEFIRE_LOG_LEVEL?") != std::string::npos);
  CHECK(all.find("Did you mean TRACEFIRE_DETERMINISTIC?") != std::string::npos);
  CHECK(all.find("TRACEFIRES_THREADS") != std::string::npos);
}

TEST_CASE("whoever reads a text may say more about it, and hear of its changes") {
  Environment env({std::pair<std::string, std::string>("TRACEFIRE_CACHE_DIRECTORY", "odd")});
  static int changes;
  changes = 0;
  observe_setting("cache_directory", [] { ++changes; });
  set_setting_check("cache_directory", [](std::string_view value) {
    if (value != "odd" && value != "odder") return Status();
    return error(ErrorCode::kBadSetting, "it is odd");
  });
  CHECK(settings_problem().message() ==
        "environment variable TRACEFIRE_CACHE_DIRECTORY: it is odd");
  CHECK(settings::cache_directory().empty());
  CHECK_FALSE(set_setting("cache_directory", "odder").ok());
  CHECK_FALSE(check_setting("cache_directory", "odder").ok());
  CHECK(changes == 0);
  CHECK(set_setting("cache_directory", "even").ok());
  CHECK(changes == 1);
  CHECK(settings_problem().ok());
  set_setting_check("cache_directory", [](std::string_view) { return Status(); });
  observe_setting("cache_directory", nullptr);
}

TEST_CASE("lines are filtered by level, kept to one line, and said once a key") {
  Environment env({std::pair<std::string, std::string>("TRACEFIRE_LOG_LEVEL", "info")});
  CHECK(log_enabled(LogLevel::kInfo));
  CHECK_FALSE(log_enabled(LogLevel::kDebug));
  CHECK_FALSE(log_enabled(LogLevel::kOff));
  log_line(LogLevel::kDebug, "not this");
  log_line(LogLevel::kInfo, "two\nlines\r \x1b[31m");
  REQUIRE(env.lines.size() == 1);
  CHECK(env.lines[0] == "tracefire: info: two | lines \\x1b[31m");
  CHECK(say_once("base_settings/key", "first"));
  CHECK_FALSE(say_once("base_settings/key", "second"));
  REQUIRE(env.lines.size() == 2);
  CHECK(env.lines[1] == "tracefire: warning: first");
}

}  // namespace
}  // namespace tracefire
