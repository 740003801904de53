// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/active.h"

#include <pwd.h>
#include <unistd.h>

#include "tools/doctor/frameworks.h"
#include "tools/doctor/managers.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

bool is_tensorflow(const std::pair<const std::string, Dist>& entry) {
  return framework_of(entry.first) == "tensorflow" && !contains(entry.first, "io") &&
         !contains(entry.first, "metal") && !contains(entry.first, "estimator") &&
         !contains(entry.first, "datasets") && !contains(entry.first, "hub");
}

/// The tree of another system around a folder, "" where there is none: an unpacked image, a backup.
std::string other_tree(const Root& root, const std::string& prefix) {
  for (std::string dir = prefix; dir != "/"; dir = parent_of(dir))
    for (std::string name : {"/etc/os-release", "/usr/lib/os-release", "/captured"})
      if (root.exists(dir + name)) return dir;
  return "";
}

/// Where bin/activate says that the environment is; "" where it does not say.
std::string written_prefix(const Root& root, const std::string& prefix) {
  std::string script = root.read(prefix + "/bin/activate", 64 << 10).value_or("");
  std::string value = between(script, "\nVIRTUAL_ENV=", "\n");
  value = value.substr(std::min(value.size(), value.find_first_not_of("'\"")));
  value = value.substr(0, value.find_first_of("'\""));
  return value.empty() || value[0] != '/' ? "" : normal_path(value);
}

std::string user_name(uid_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  char buffer[4096];
  bool known = ::getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) == 0 && found != nullptr;
  std::string name = known ? found->pw_name : "";
  bool plain = !name.empty() && name.find_first_not_of(
                                    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789_.-") == std::string::npos;
  return plain ? name : "'#" + std::to_string(uid) + "'";
}

/// The system's Python also sees what its user installed with pip --user.
void mark_user_packages(const Machine& machine, std::vector<Environment>* all) {
  std::string home = machine.variable("HOME");
  std::string minor, proof;
  for (const Environment& env : *all)
    if (env.active && env.kind == "system" && env.prefix == "/usr")
      minor = leading(env.python, 2), proof = env.active_proof;
  if (minor.empty() || !machine.variable("PYTHONNOUSERSITE").empty()) return;
  for (Environment& env : *all)
    if (env.kind == "user" && leading(env.python, 2) == minor &&
        (home.empty() || env.prefix == normal_path(home) + "/.local")) {
      env.active = true;
      env.active_proof = proof;
    }
}

}  // namespace

std::string prefix_of_python(const Root& root, const std::string& python) {
  std::string prefix = parent_of(parent_of(python));
  if (root.exists(prefix + "/pyvenv.cfg") || root.exists(prefix + "/conda-meta")) return prefix;
  std::string target = parent_of(parent_of(root.follow(python)));
  for (const std::string& one : {target, prefix})
    if (root.exists(one + "/pyvenv.cfg") || root.exists(one + "/conda-meta")) return one;
  return target == "/" ? "/usr" : target;
}

void mark_stray(const Root& root, const Machine& machine, std::vector<Environment>* all) {
  const uid_t self = ::geteuid();
  std::string sudo = machine.variable("SUDO_UID");
  for (Environment& env : *all) {
    env.tool = tool_manager(env.prefix);
    std::string tree = other_tree(root, env.prefix);
    std::string written = written_prefix(root, env.prefix);
    if (!tree.empty())
      env.stray = "It lies in " + tree + ", a tree of another system.";
    else if (!written.empty() && written != env.prefix &&
             normal_path(root.follow(written)) != env.prefix)
      env.stray = env.prefix + "/bin/activate names " + written + ": it was copied or moved.";
    if (!root.live()) continue;
    FileFacts facts = root.facts(env.prefix);
    const bool foreign = facts.uid != 0 && facts.uid != self;
    const bool called_by_owner = self == 0 && std::to_string(facts.uid) == sudo;
    if (self == 0 && foreign) env.run_as = "sudo -u " + user_name(facts.uid) + " -H ";
    if (!env.stray.empty()) continue;
    for (std::string_view dir : {"/tmp/", "/var/tmp/", "/dev/shm/"})
      if (env.prefix.rfind(dir, 0) == 0)
        env.stray = "It lies in " + std::string(dir.substr(0, dir.size() - 1)) +
                    ", where any user can put files.";
    if (foreign && !called_by_owner && env.stray.empty())
      env.stray = "It belongs to user " + user_name(facts.uid) + ", not to the one who asks.";
    if ((facts.mode & 002) != 0 && env.stray.empty()) env.stray = "Any user can write to it.";
  }
}

void mark_active(const Root& root, const Machine& machine, std::vector<Environment>* all) {
  auto mark = [&](const std::string& prefix, const std::string& proof, bool needs_framework) {
    if (prefix.empty()) return false;
    std::string wanted = normal_path(prefix);
    if (wanted == "/usr/local" &&  // one with /usr where both are of the system's Python
        std::none_of(all->begin(), all->end(),
                     [&](const Environment& env) { return env.prefix == wanted; }))
      wanted = "/usr";
    for (Environment& env : *all) {
      if (env.prefix != wanted) continue;
      if (needs_framework && !brings_framework(env)) return false;
      env.active = true;
      env.active_proof = proof;
      return true;
    }
    return false;
  };
  if (mark(machine.variable("VIRTUAL_ENV"), "VIRTUAL_ENV names it.", false)) return;
  if (mark(machine.variable("CONDA_PREFIX"), "CONDA_PREFIX names it.", false)) return;
  if (std::string name = machine.variable("CONDA_DEFAULT_ENV"); !name.empty())
    for (const Environment& env : *all)
      if (name_of(env.prefix) == name && name_of(parent_of(env.prefix)) == "envs" &&
          mark(env.prefix, "CONDA_DEFAULT_ENV names it.", false))
        return;
  // A Python without any framework is not the one that programs of a framework run in: then each
  // environment counts. Unless the log tells of just that.
  bool without = false;
  for (std::string_view words :
       {"No matching distribution found for ", "o wheels with a matching", "No module named "})
    without |= contains(machine.log, words);
  ChosenPython project = python_of_project(root, machine);
  if (mark(project.prefix, project.proof, !without)) return;
  if (machine.variable("PATH").empty())
    for (const Environment& env : *all) {
      ChosenPython chosen = python_of_variables(root, machine, env.prefix);
      if (mark(chosen.prefix, chosen.proof, false)) return;
    }
  for (std::string_view dir : split(machine.variable("PATH"), ':')) {
    if (dir.empty() || dir[0] != '/') continue;
    std::string folder = normal_path(dir);
    for (std::string name : {"/python", "/python3"}) {
      std::string path = folder + name;
      if (!root.exists(path)) continue;
      std::string prefix = prefix_of_python(root, path);
      std::string found = "PATH finds " + path + " first.";
      bool managed = false;
      if (ChosenPython chosen = python_of_shims(root, machine, folder, &managed); managed) {
        if (chosen.prefix.empty()) continue;  // "system": what comes later in PATH
        prefix = chosen.prefix;
        found = "PATH finds " + path + " first, and " + chosen.proof;
      }
      mark(prefix, found, !without);
      mark_user_packages(machine, all);
      return;
    }
  }
}

void add_python_path(const Root& root, const Machine& machine, std::vector<Environment>* all) {
  bool any_active = false;
  for (const Environment& env : *all) any_active |= env.active;
  std::vector<std::string> folders;
  for (std::string_view dir : split(machine.variable("PYTHONPATH"), ':'))
    if (!dir.empty() && dir[0] == '/') folders.push_back(normal_path(dir));
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {  // the first one wins
    Environment added;
    read_packages_in(root, *folder, &added);
    if (added.dists.empty()) continue;
    std::string python;
    for (const Environment& env : *all)
      if (env.prefix == *folder) python = env.python;
    std::erase_if(*all, [&](const Environment& env) {
      return env.prefix == *folder && env.kind == "folder";
    });
    if (all->empty()) {
      added.prefix = *folder;
      added.kind = "folder";
      added.python = python;
      added.interpreter = "python3";
      added.sites = {*folder};
      added.active = true;
      added.active_proof = "PYTHONPATH names it.";
      all->push_back(std::move(added));
      any_active = true;
      continue;
    }
    for (Environment& env : *all) {
      if (any_active && !env.active) continue;
      bool own = std::find(env.sites.begin(), env.sites.end(), *folder) != env.sites.end();
      if (!own) env.sites.insert(env.sites.begin(), *folder);
      if (std::any_of(added.dists.begin(), added.dists.end(), is_tensorflow))  // under any name
        std::erase_if(env.dists, is_tensorflow);
      for (const auto& [name, dist] : added.dists) env.dists[name] = dist;
      if (!own) env.python_path = *folder;
    }
  }
}

}  // namespace tracefire::doctor
