// SPDX-License-Identifier: Apache-2.0
//
// Python environments (venv, conda, system, user) and what is installed in each, found by walking
// the tree; nothing is run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/doctor/machine.h"
#include "tools/doctor/read/packages.h"
#include "tools/doctor/root.h"

namespace tracefire::doctor {

/// One installed distribution.
struct Dist {
  std::string name;  ///< as its METADATA writes it
  std::string version;
  std::string folder;  ///< its dist-info, "" for a conda package
  std::string site;    ///< the folder of packages that holds it
  std::vector<Requirement> requirements;
  std::string build;  ///< conda's build string
  std::string wheel;  ///< its WHEEL file, of frameworks only: the tags tell system and processor
};

struct Environment {
  std::string prefix;       ///< "/opt/venv"
  std::string kind;         ///< "venv", "conda", "system", "user", "folder" (pip --target)
  std::string python;       ///< version, "" where nothing tells it
  std::string interpreter;  ///< path for commands: "/opt/venv/bin/python"
  std::vector<std::string> sites;
  std::map<std::string, Dist> dists;  ///< by normal name; pip's
  std::map<std::string, Dist> conda;  ///< by name; conda's
  bool active = false;
  std::string active_proof;
  std::string tool;    ///< "pipx" where it is the private environment of one tool, "" else
  std::string stray;   ///< why it is none that this machine's programs run in, "" for others
  std::string run_as;  ///< "sudo -u ada -H " where root must not run what it holds
  /// What changes its packages: "pip", "uv", "conda", "pixi", "poetry", "pdm", "pipx", "managed"
  /// where the system lets nothing in (PEP 668), "ensurepip" where pip is to be made first.
  std::string installer;
  std::string project;      ///< the folder of the project of poetry, pdm or pixi, pipx' name of it
  std::string python_path;  ///< a folder of PYTHONPATH whose packages come first

  const Dist* dist(const std::string& normal_name) const {
    auto it = dists.find(normal_name);
    return it == dists.end() ? nullptr : &it->second;
  }
  /// "/opt/venv/bin/python -m pip"
  std::string pip() const { return run_as + interpreter + " -m pip"; }
};

struct EnvironmentSearch {
  std::vector<Environment> environments;
  std::string incomplete;  ///< a sentence where the walk was cut short
};

/// `wanted` is what --python gave: an interpreter, an environment or a folder of packages; then
/// that one alone is read.
EnvironmentSearch find_environments(const Root& root, const Machine& machine,
                                    const std::string& wanted);

/// Whether the system's Python ("3.12", "" for any) takes no packages from pip (PEP 668).
bool system_is_managed(const Root& root, const Machine& machine, const std::string& python);

/// Adds what is installed in a folder of packages and, by its .pth files, in the folders they name.
void read_packages_in(const Root& root, const std::string& site, Environment* env);

/// The environment whose interpreter is `path`, null where none is.
const Environment* environment_of_interpreter(const Root& root,
                                              const std::vector<const Environment*>& all,
                                              const std::string& path);

}  // namespace tracefire::doctor
