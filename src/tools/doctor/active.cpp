// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/active.h"

#include <pwd.h>
#include <unistd.h>

#include "tools/doctor/frameworks.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

bool has_framework(const Environment& env) {
  for (const auto& [name, dist] : env.dists)
    if (brings_framework(name)) return true;
  for (std::string name :
       {"tensorflow", "tensorflow-base", "pytorch", "libtorch", "jax", "jaxlib", "keras"})
    if (env.conda.count(name) != 0) return true;
  return false;
}

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

std::string first_line(const std::optional<std::string>& text) {
  std::string_view view = text ? std::string_view(*text) : std::string_view();
  return std::string(trim(view.substr(0, view.find_first_of("\n"))));
}

/// The version that pyenv runs: PYENV_VERSION, the nearest .python-version, its own file. Sets
/// `proof`.
std::string pyenv_version(const Root& root, const Machine& machine, const std::string& home,
                          std::string* proof) {
  std::string version = machine.variable("PYENV_VERSION");
  *proof = "PYENV_VERSION is " + version + ".";
  if (!version.empty()) return version.substr(0, version.find(':'));
  std::string folder = machine.variable("PWD");
  char here[4096];
  if (folder.empty() && root.live() && ::getcwd(here, sizeof here) != nullptr) folder = here;
  if (!folder.empty() && folder[0] == '/')
    for (std::string dir = normal_path(folder);; dir = parent_of(dir)) {
      std::string file = (dir == "/" ? "" : dir) + "/.python-version";
      version = first_line(root.read(file, 4096));
      *proof = file + " says " + version + ".";
      if (!version.empty()) return version;
      if (dir == "/") break;
    }
  version = first_line(root.read(home + "/version", 4096));
  *proof = home + "/version says " + version + ".";
  return version.empty() ? "system" : version;
}

/// The folder of a version; "3.11" is the newest 3.11.x. "" where there is none.
std::string pyenv_prefix(const Root& root, const std::string& home, const std::string& version) {
  if (version.empty() || version == "system" || contains(version, "..")) return "";
  std::string folder = home + "/versions/", best;
  if (root.exists(folder + version)) return normal_path(root.follow(folder + version));
  for (const std::string& name : root.list(folder, 1000))
    if (name.rfind(version + ".", 0) == 0 && (best.empty() || compare_versions(name, best) > 0))
      best = name;
  return best.empty() ? "" : folder + best;
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
      if (needs_framework && !has_framework(env)) return false;
      env.active = true;
      env.active_proof = proof;
      return true;
    }
    return false;
  };
  if (mark(machine.variable("VIRTUAL_ENV"), "VIRTUAL_ENV names it.", false)) return;
  if (mark(machine.variable("CONDA_PREFIX"), "CONDA_PREFIX names it.", false)) return;
  std::string proof;
  if (std::string version = machine.variable("PYENV_VERSION");
      !version.empty() && machine.variable("PATH").empty()) {
    std::string home = machine.variable("PYENV_ROOT");
    if (home.empty() && !machine.variable("HOME").empty())
      home = machine.variable("HOME") + "/.pyenv";
    for (const Environment& env : *all)
      if (size_t at = env.prefix.find("/.pyenv/versions/"); home.empty() && at != std::string::npos)
        home = env.prefix.substr(0, at) + "/.pyenv";
    version = pyenv_version(root, machine, home, &proof);
    if (mark(pyenv_prefix(root, home, version), proof, false)) return;
  }
  for (std::string_view dir : split(machine.variable("PATH"), ':')) {
    if (dir.empty() || dir[0] != '/') continue;
    std::string folder = normal_path(dir);
    for (std::string name : {"/python", "/python3"}) {
      std::string path = folder + name;
      if (!root.exists(path)) continue;
      std::string prefix = prefix_of_python(root, path);
      std::string found = "PATH finds " + path + " first.";
      std::string home = parent_of(folder);
      if (name_of(folder) == "shims" && root.exists(home + "/versions")) {  // pyenv's
        std::string version = pyenv_version(root, machine, home, &proof);
        prefix = pyenv_prefix(root, home, version);
        if (prefix.empty()) continue;  // "system": what comes later in PATH
        found = "PATH finds pyenv's " + path + " first, and " + proof;
      }
      // A Python without any framework is not the one that programs of a framework run in: then
      // each environment counts.
      mark(prefix, found, true);
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
