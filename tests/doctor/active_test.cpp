// SPDX-License-Identifier: Apache-2.0
//
// On a running machine an environment that another user could have put there decides nothing, and
// no command of it is given to root.
#include "tools/doctor/active.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "doctor/fixture.h"
#include "support/paths.h"
#include "support/skip.h"

namespace tracefire::doctor {

namespace {

Environment at(const std::string& prefix) {
  Environment env;
  env.prefix = prefix;
  env.kind = "venv";
  env.interpreter = prefix + "/bin/python";
  return env;
}

}  // namespace

TEST_CASE("doctor: an environment in a folder of all users is left out") {
  Root root("");
  std::vector<Environment> all = {at("/tmp/x/venv"), at("/var/tmp/venv"), at("/dev/shm/venv")};
  mark_stray(root, Machine{}, &all);
  for (const Environment& env : all)
    CHECK_MESSAGE(env.stray.find("any user can put files") != std::string::npos, env.prefix);
}

TEST_CASE("doctor: another user's environment is left out and never run by root") {
  if (::geteuid() != 0) return test::skip("only root can give files away");
  std::string prefix = test::binary_dir() + "/tests/doctor_foreign_" + std::to_string(::getpid());
  std::filesystem::create_directories(prefix + "/bin");
  REQUIRE(::chown(prefix.c_str(), 54321, 54321) == 0);
  Root root("");
  std::vector<Environment> all = {at(prefix)};
  mark_stray(root, Machine{}, &all);
  CHECK(all[0].stray.find("54321") != std::string::npos);
  CHECK(all[0].pip() == "sudo -u '#54321' -H " + prefix + "/bin/python -m pip");
  // sudo's caller is asked for his own.
  Machine called;
  called.env["SUDO_UID"] = "54321";
  all = {at(prefix)};
  mark_stray(root, called, &all);
  CHECK(all[0].stray.empty());
  std::filesystem::permissions(prefix, std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  mark_stray(root, called, &all);
  CHECK(all[0].stray == "Any user can write to it.");
  std::filesystem::remove_all(prefix);
}

TEST_CASE("doctor: what variables name is read before the rest of the tree") {
  // The search ends after some seconds or folders; on a slow disk that must not hide the
  // environment that is in use.
  test::Tree files;
  const std::string deep = "/srv/a/b/c/d/e/f/g/venv";
  for (std::string prefix : {std::string("/opt/venv"), std::string("/data/project/.venv"), deep}) {
    files[prefix + "/pyvenv.cfg"] = "home = /usr/bin\nversion = 3.11.2\n";
    files[prefix + "/lib/python3.11/site-packages/keras-3.15.1.dist-info/METADATA"] =
        "Metadata-Version: 2.1\nName: keras\nVersion: 3.15.1\n";
  }
  test::TreeOnDisk tree(files);
  Root root(tree.root());
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    Machine machine;
    machine.env[variable] = deep;
    EnvironmentSearch search = find_environments(root, machine, "");
    REQUIRE(search.environments.size() == 3);
    CHECK(search.environments[0].prefix == deep);
    CHECK(search.environments[0].active);
    CHECK(search.environments[0].dists.count("keras") == 1);
  }
}

}  // namespace tracefire::doctor
