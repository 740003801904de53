// SPDX-License-Identifier: Apache-2.0
//
// On a running machine an environment that another user could have put there decides nothing, and
// no command of it is given to root.
#include "tools/doctor/active.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

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

}  // namespace tracefire::doctor
