// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/managers.h"

#include <unistd.h>

#include "tools/doctor/active.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

constexpr size_t kSmall = 64 << 10;

/// Where the managers differ.
struct Manager {
  const char* variable;               ///< names a version
  const char* versions;               ///< folder of installed ones below its home
  std::vector<std::string> files;     ///< of a project, the first that is there counts
  std::vector<std::string> defaults;  ///< below the user's home
};

const Manager kPyenv = {"PYENV_VERSION", "/versions", {"/.python-version"}, {}};
const Manager kAsdf = {
    "ASDF_PYTHON_VERSION", "/installs/python", {"/.tool-versions"}, {"/.tool-versions"}};
const Manager kMise = {
    "MISE_PYTHON_VERSION",
    "/installs/python",
    {"/mise.toml", "/.mise.toml", "/.config/mise.toml", "/.tool-versions", "/.python-version"},
    {"/.config/mise/config.toml", "/.tool-versions"}};

const Manager* manager_of(const Root& root, const std::string& home) {
  if (root.exists(home + "/versions")) return &kPyenv;
  if (!root.exists(home + "/installs/python")) return nullptr;
  return contains(name_of(home), "mise") || contains(name_of(home), "rtx") ? &kMise : &kAsdf;
}

/// The working folder, "" where nothing tells it.
std::string working_folder(const Root& root, const Machine& machine) {
  std::string folder = machine.variable("PWD");
  char here[4096];
  if (folder.empty() && root.live() && ::getcwd(here, sizeof here) != nullptr) folder = here;
  return folder.empty() || folder[0] != '/' ? "" : normal_path(folder);
}

/// The folder and those above it, to the top.
std::vector<std::string> upwards(const std::string& folder) {
  std::vector<std::string> out;
  for (std::string dir = folder; !dir.empty(); dir = parent_of(dir)) {
    out.push_back(dir == "/" ? "" : dir);
    if (dir == "/" || out.size() > 64) break;
  }
  return out;
}

/// The first version that a file names: a bare line, "python 3.11.9", or python = "3.12" of TOML.
std::string version_in(const std::string& file, const std::string& text) {
  for (std::string_view line : lines_of(text, 1000)) {
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (name_of(file) == ".python-version") return std::string(line);
    if (line.rfind("python", 0) != 0) continue;
    std::string rest(trim(line.substr(6)));
    if (name_of(file) == ".tool-versions") return rest.substr(0, rest.find_first_of(" \t"));
    if (rest.empty() || rest[0] != '=') continue;
    const size_t quote = rest.find_first_of("\"'");
    if (quote == rest.npos) continue;
    return rest.substr(quote + 1, rest.find(rest[quote], quote + 1) - quote - 1);
  }
  return "";
}

/// What was chosen, and where that is written; "" where nothing chooses.
std::string chosen_version(const Root& root, const Machine& machine, const Manager& manager,
                           const std::string& home, std::string* proof) {
  std::string version = machine.variable(manager.variable);
  *proof = std::string(manager.variable) + " is " + version + ".";
  if (!version.empty()) return version.substr(0, version.find_first_of(": "));
  std::vector<std::string> files;
  for (const std::string& dir : upwards(working_folder(root, machine)))
    for (const std::string& name : manager.files) files.push_back(dir + name);
  std::string user = machine.variable("HOME");
  if (user.empty())  // the folder that holds .asdf or .local/share/mise
    user = home.substr(0, std::min(home.find("/.asdf"), home.find("/.local/")));
  for (const std::string& name : manager.defaults) files.push_back(user + name);
  if (&manager == &kPyenv) files.push_back(home + "/version");
  for (const std::string& file : files) {
    const bool plain = file == home + "/version";
    version = version_in(plain ? "/.python-version" : file, root.read(file, kSmall).value_or(""));
    *proof = file + " says " + version + ".";
    if (!version.empty()) return version;
  }
  return "";
}

/// The folder of a version; "3.11" is the newest 3.11.x, "latest" the newest. "" where there is
/// none.
std::string prefix_of_version(const Root& root, const std::string& folder,
                              const std::string& version) {
  if (version.empty() || version == "system" || contains(version, "..") || contains(version, "/"))
    return "";
  if (version != "latest" && root.exists(folder + "/" + version))
    return normal_path(root.follow(folder + "/" + version));
  std::string best;
  for (const std::string& name : root.list(folder, 1000)) {
    const bool fits = version == "latest" ? is_version(name) : name.rfind(version + ".", 0) == 0;
    if (fits && (best.empty() || compare_versions(name, best) > 0)) best = name;
  }
  return best.empty() ? "" : normal_path(root.follow(folder + "/" + best));
}

}  // namespace

ChosenPython python_of_shims(const Root& root, const Machine& machine, const std::string& folder,
                             bool* managed) {
  const std::string home = parent_of(folder);
  const Manager* manager = name_of(folder) == "shims" ? manager_of(root, home) : nullptr;
  *managed = manager != nullptr;
  if (manager == nullptr) return {};
  ChosenPython out;
  const std::string version = chosen_version(root, machine, *manager, home, &out.proof);
  out.prefix = prefix_of_version(root, home + manager->versions, version);
  return out;
}

ChosenPython python_of_variables(const Root& root, const Machine& machine,
                                 const std::string& hint) {
  for (const Manager* manager : {&kPyenv, &kAsdf, &kMise}) {
    if (machine.variable(manager->variable).empty()) continue;
    const std::string user = machine.variable("HOME");
    std::vector<std::string> homes;
    for (const char* name : {"PYENV_ROOT", "ASDF_DATA_DIR", "MISE_DATA_DIR"})
      if (!machine.variable(name).empty()) homes.push_back(machine.variable(name));
    for (const char* name : {"/.pyenv", "/.asdf", "/.local/share/mise"})
      if (!user.empty()) homes.push_back(user + name);
    if (size_t at = hint.find(std::string(manager->versions) + "/"); at != hint.npos)
      homes.push_back(hint.substr(0, at));
    ChosenPython out;
    for (const std::string& home : homes) {
      if (!root.exists(home + manager->versions)) continue;
      const std::string version = chosen_version(root, machine, *manager, home, &out.proof);
      out.prefix = prefix_of_version(root, home + manager->versions, version);
      if (!out.prefix.empty()) return out;
    }
  }
  return {};
}

ChosenPython python_of_project(const Root& root, const Machine& machine) {
  const std::string named = machine.variable("UV_PROJECT_ENVIRONMENT");
  if (!named.empty() && named[0] == '/')
    return {normal_path(named), "UV_PROJECT_ENVIRONMENT names it."};
  for (const std::string& dir : upwards(working_folder(root, machine))) {
    const std::string project = dir.empty() ? "/" : dir;
    const std::string pdm(trim(root.read(dir + "/.pdm-python", 4096).value_or("")));
    if (!pdm.empty() && pdm[0] == '/')
      return {prefix_of_python(root, pdm), project + "/.pdm-python names it."};
    const bool pixi = root.exists(dir + "/pixi.toml") || root.exists(dir + "/pixi.lock");
    if (pixi && root.exists(dir + "/.pixi/envs/default"))
      return {dir + "/.pixi/envs/default", "It is the environment of the project " + project + "."};
    std::string venv = dir + "/" + (named.empty() ? ".venv" : named);
    if (!root.exists(venv + "/pyvenv.cfg")) continue;
    for (const char* file : {"/uv.lock", "/pyproject.toml", "/poetry.lock", "/Pipfile"})
      if (root.exists(dir + file))
        return {normal_path(venv), "It is the environment of the project " + project + "."};
  }
  return {};
}

std::string tool_manager(const std::string& prefix) {
  static constexpr std::pair<const char*, const char*> kFolders[] = {
      {"/pipx/venvs/", "pipx"},
      {"/uv/tools/", "uv tool"},
      {"/.tox/", "tox"},
      {"/.nox/", "nox"},
      {"/pre-commit/", "pre-commit"},
      {"/hatch/env/", "hatch"},
      {"/platformio/penv", "PlatformIO"},
      {"/.platformio/penv", "PlatformIO"}};
  for (const auto& [folder, name] : kFolders)
    if (contains(prefix, folder)) return name;
  return "";
}

}  // namespace tracefire::doctor
