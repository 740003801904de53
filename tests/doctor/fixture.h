// SPDX-License-Identifier: Apache-2.0
//
// File trees written down in tests/data/doctor/*.json, and the doctor run over them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace tracefire::test {

using FixtureJson = nlohmann::ordered_json;

/// A tree: absolute path -> content (text, {"symlink": target} or {"empty": true}).
using Tree = std::map<std::string, FixtureJson>;

struct Fixture {
  std::string id;
  Tree files;
  std::map<std::string, std::string> env;
  std::vector<std::string> arguments;
  bool needs_log = false;  ///< only the log shows it
  FixtureJson expect;
};

/// Those of fixtures.json, own.json, kinds.json, variants.json and second.json; each may build on an
/// earlier one ("base", "remove").
std::vector<Fixture> all_fixtures();
const Fixture& fixture(const std::string& id);

/// A folder of its own that is removed at the end.
class TreeOnDisk {
 public:
  explicit TreeOnDisk(const Tree& files);
  ~TreeOnDisk();
  TreeOnDisk(const TreeOnDisk&) = delete;
  TreeOnDisk& operator=(const TreeOnDisk&) = delete;
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

struct Answer {
  int status = -1;
  std::string text;  ///< stdout
  FixtureJson report;
  std::vector<std::string> faults;  ///< kinds of errors and warnings, sorted, each once
  std::set<std::string> notes;      ///< kinds of what is for information alone
  std::string fix;                  ///< of the first fault
  std::string verdict() const { return report.value("verdict", ""); }
};

/// `doctor --root DIR --json` and `more`.
Answer ask_doctor(const std::string& root, const std::map<std::string, std::string>& env = {},
                  const std::vector<std::string>& more = {});

/// What of the expectation does not hold, a line each; empty where all does. `faults_only` leaves
/// out what a changed version or path also changes in the texts.
std::vector<std::string> mismatches(const Fixture& fixture, const Answer& answer,
                                    bool faults_only = false);

}  // namespace tracefire::test
