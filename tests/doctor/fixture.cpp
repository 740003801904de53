// SPDX-License-Identifier: Apache-2.0
#include "doctor/fixture.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

#include "support/paths.h"
#include "tools/doctor/doctor.h"

namespace tracefire::test {

namespace fs = std::filesystem;

namespace {

FixtureJson load(const std::string& name) {
  std::ifstream in(data_file("doctor/" + name));
  return FixtureJson::parse(in);
}

Fixture made(const FixtureJson& json, Tree files) {
  Fixture out;
  out.id = json.at("id").get<std::string>();
  for (const auto& [path, content] : json.at("files").items()) files[path] = content;
  out.files = std::move(files);
  for (const auto& [name, value] : json.at("env").items()) out.env[name] = value.get<std::string>();
  if (json.contains("args") && json["args"].is_array())
    for (const auto& argument : json["args"]) out.arguments.push_back(argument.get<std::string>());
  if (json["expect"].contains("args"))
    for (const auto& argument : json["expect"]["args"])
      out.arguments.push_back(argument.get<std::string>());
  out.needs_log = json.value("needs_log", false);
  out.expect = json.at("expect");
  return out;
}

}  // namespace

std::vector<Fixture> all_fixtures() {
  std::vector<Fixture> out;
  std::map<std::string, Tree> bases;
  for (const auto& json : load("fixtures.json")) {
    out.push_back(made(json, {}));
    bases[out.back().id] = out.back().files;
  }
  for (const char* name : {"own.json", "kinds.json", "variants.json", "second.json"})
    for (const auto& json : load(name)) {
      Tree files;
      if (json.contains("base")) files = bases.at(json["base"].get<std::string>());
      if (json.contains("remove"))
        for (const auto& prefix : json["remove"])
          std::erase_if(files, [&](const auto& entry) {
            return entry.first.rfind(prefix.template get<std::string>(), 0) == 0;
          });
      out.push_back(made(json, std::move(files)));
      bases[out.back().id] = out.back().files;
    }
  return out;
}

const Fixture& fixture(const std::string& id) {
  static const std::vector<Fixture> kAll = all_fixtures();
  for (const Fixture& one : kAll)
    if (one.id == id) return one;
  throw std::runtime_error("no fixture " + id);
}

TreeOnDisk::TreeOnDisk(const Tree& files) {
  static int count = 0;
  // Thousands of small files come and go: in memory where the system offers it.
  static const std::string kBase =
      ::access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm/tracefire" : binary_dir() + "/tests";
  root_ = kBase + "_doctor_" + std::to_string(::getpid()) + "_" + std::to_string(++count);
  fs::remove_all(root_);
  fs::create_directories(root_);
  std::set<std::string> made;  // the same folders hold many files
  for (const auto& [path, content] : files) {
    fs::path full = root_ + path;
    if (made.insert(full.parent_path().string()).second) fs::create_directories(full.parent_path());
    if (content.is_object() && content.contains("symlink")) {
      fs::create_symlink(content["symlink"].get<std::string>(), full);
    } else {
      std::ofstream out(full, std::ios::binary);
      if (content.is_string()) out << content.get<std::string>();
    }
  }
}

TreeOnDisk::~TreeOnDisk() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

Answer ask_doctor(const std::string& root, const std::map<std::string, std::string>& env,
                  const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"--root", root, "--json"};
  for (const auto& [name, value] : env) {
    arguments.push_back("--env");
    arguments.push_back(name + "=" + value);
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::ostringstream out, err;
  Answer answer;
  answer.status = doctor::doctor_main(arguments, out, err);
  answer.text = out.str();
  answer.report = FixtureJson::parse(answer.text);
  for (const auto& finding : answer.report.at("findings")) {
    if (finding.at("severity") == "info") {
      answer.notes.insert(finding.at("kind").get<std::string>());
      continue;
    }
    if (answer.faults.empty()) answer.fix = finding.at("fix").get<std::string>();
    answer.faults.push_back(finding.at("kind").get<std::string>());
  }
  std::sort(answer.faults.begin(), answer.faults.end());
  answer.faults.erase(std::unique(answer.faults.begin(), answer.faults.end()), answer.faults.end());
  return answer;
}

std::vector<std::string> mismatches(const Fixture& fixture, const Answer& answer,
                                    bool faults_only) {
  std::vector<std::string> out;
  auto listed = [](const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += name + " ";
    return text;
  };
  std::vector<std::string> wanted;
  for (const auto& kind : fixture.expect.at("finding_kinds"))
    wanted.push_back(kind.get<std::string>());
  std::sort(wanted.begin(), wanted.end());
  if (wanted != answer.faults)
    out.push_back("faults are " + listed(answer.faults) + "and should be " + listed(wanted));
  std::string verdict = fixture.expect.at("verdict").get<std::string>();
  if (verdict != answer.verdict())
    out.push_back("verdict is " + answer.verdict() + " and should be " + verdict);
  int status = verdict == "gpu-ok"         ? 0
               : verdict == "gpu-broken"   ? 1
               : verdict == "gpu-degraded" ? 3
                                           : 4;
  if (answer.status != status) out.push_back("exit status is " + std::to_string(answer.status));
  if (faults_only) return out;
  if (fixture.expect.contains("notes"))
    for (const auto& kind : fixture.expect["notes"])
      if (!answer.notes.count(kind.get<std::string>()))
        out.push_back("has no note " + kind.get<std::string>());
  for (const auto& text : fixture.expect.at("must_mention"))
    if (answer.text.find(text.get<std::string>()) == std::string::npos)
      out.push_back("does not mention " + text.get<std::string>());
  for (const auto& text : fixture.expect.at("fix_contains"))
    if (answer.fix.find(text.get<std::string>()) == std::string::npos)
      out.push_back("fix lacks " + text.get<std::string>() + ": " + answer.fix);
  return out;
}

}  // namespace tracefire::test
