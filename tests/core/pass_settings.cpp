// SPDX-License-Identifier: Apache-2.0
// The settings of the pass manager: disabled_passes, dump_directory, verify_graphs.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/settings.h"
#include "core/compile/compile.h"
#include "core/graph/builder.h"

namespace tracefire {
namespace {

CompileOptions on_null() {
  CompileOptions options;
  options.device = {register_device_kind("NULL"), 0};
  return options;
}

GraphPtr small_graph() {
  Builder b(OpTable::instance(), "small/graph");
  const Value x = b.param({DType::kF32, Shape{4}});
  b.result(b.op("exp", {b.op("neg", {b.op("stop_gradient", {x})})}));
  return b.finish().value();
}

TEST_CASE("passes that a program needs cannot be disabled, and others are named") {
  CHECK(pass_names(" fuse ,simplify,, ") == std::vector<std::string>{"fuse", "simplify"});
  CHECK(check_disabled_passes({"fuse", "simplify", "raise_softmax"}).ok());
  for (const char* name : {"inline_calls", "place", "decompose", "nosuch", "Fuse"}) {
    CAPTURE(name);
    const Status status = check_disabled_passes({"fuse", name});
    REQUIRE_FALSE(status.ok());
    CHECK(status.code() == ErrorCode::kBadSetting);
    CHECK(status.message().find(std::string("'") + name + "'") != std::string::npos);
    CHECK(status.message().find("raise_softmax, simplify, fuse") != std::string::npos);
    CHECK_FALSE(set_setting("disabled_passes", name).ok());
    CompileOptions options = on_null();
    options.disabled_passes = {name};
    CHECK(compile(small_graph(), options).status().code() == ErrorCode::kBadSetting);
  }
  CompileOptions options = on_null();
  options.disabled_passes = {};
  for (const auto* list : {&raise_passes(), &lowering_passes()}) {
    for (const Pass& pass : *list) options.disabled_passes.push_back(pass.name);
  }
  CHECK(compile(small_graph(), options).status().code() == ErrorCode::kBadSetting);
  std::erase_if(options.disabled_passes,
                [](const std::string& name) { return !check_disabled_passes({name}).ok(); });
  CHECK(options.disabled_passes.size() >= 3);
  CHECK(compile(small_graph(), options).ok());
}

TEST_CASE("a wrong disabled_passes in the environment is a problem where work begins") {
  setenv("TRACEFIRE_DISABLED_PASSES", "fuse,nosuch", 1);
  reset_settings();
  CHECK(settings_problem().message().find("environment variable TRACEFIRE_DISABLED_PASSES: ") == 0);
  CHECK(settings::disabled_passes().empty());
  unsetenv("TRACEFIRE_DISABLED_PASSES");
  reset_settings();
  CHECK(settings_problem().ok());
}

TEST_CASE("graphs are written where dump_directory says, and a folder that cannot be is an error") {
  char name[] = "/tmp/tracefire_dump_XXXXXX";
  const std::filesystem::path folder = std::string(mkdtemp(name)) + "/new";
  REQUIRE(set_setting("dump_directory", folder.string()).ok());
  REQUIRE(set_setting("verify_graphs", "true").ok());
  CHECK(compile(small_graph(), on_null()).ok());
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string().substr(7));
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    CHECK(text.str().find("graph \"small/graph\"(") == 0);
  }
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"small_graph-fuse.txt", "small_graph-given.txt",
                                          "small_graph-place.txt", "small_graph-simplify.txt"});
  REQUIRE(set_setting("dump_directory", "/proc/nothing").ok());
  CHECK(compile(small_graph(), on_null()).status().code() == ErrorCode::kCannotWrite);
  std::filesystem::remove_all(folder.parent_path());
  reset_settings();
}

}  // namespace
}  // namespace tracefire
