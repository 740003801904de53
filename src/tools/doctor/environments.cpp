// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/environments.h"

#include <chrono>

#include "tools/doctor/active.h"
#include "tools/doctor/frameworks.h"
#include "tools/doctor/managers.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

// A disk that has to be read first gives some two thousand folders a second, memory a hundred
// thousand: the likely places come first, so that what is cut off is deep in other trees.
constexpr size_t kMaxFolders = 100000;
constexpr auto kMaxTime = std::chrono::seconds(5);
constexpr size_t kMaxDepth = 13;
constexpr size_t kMaxEnvironments = 64;

/// A folder of packages and what its path tells.
struct Site {
  std::string path, prefix, python;
};

/// "3.11" of "python3.11", "" where it is none.
std::string python_of(std::string_view name) {
  if (name.rfind("python", 0) != 0) return "";
  std::string version(name.substr(6));
  return is_version(version) && contains(version, ".") ? version : "";
}

bool skipped(const std::string& path) {
  static const std::set<std::string> kPaths = {
      "/proc",           "/sys",       "/dev",        "/captured",     "/boot",
      "/lib/modules",    "/usr/share", "/usr/src",    "/usr/include",  "/var/lib",
      "/var/cache",      "/var/log",   "/lost+found", "/lib/firmware", "/usr/lib/firmware",
      "/usr/lib/modules"};
  static const std::set<std::string> kNames = {"node_modules",  ".git",          "__pycache__",
                                               "site-packages", "dist-packages", "pkgs",
                                               "conda-meta",    "CMakeFiles"};
  return kPaths.count(path) != 0 || kNames.count(name_of(path)) != 0;
}

/// "torch-2.6.0.dist-info": in a folder of any name it tells that packages are installed there.
bool is_framework_info(const std::string& name) {
  const std::string ending = name.size() < 10 ? "" : name.substr(name.size() - 10);
  if (ending != ".dist-info" && ending.substr(ending.empty() ? 0 : 1) != ".egg-info") return false;
  for (std::string_view start : {"tensorflow", "tf_nightly", "intel_tensorflow",
                                 "nvidia_tensorflow", "torch-", "jax", "keras-", "tracefire"})
    if (name.rfind(start, 0) == 0) return true;
  return false;
}

/// The environments that variables, the working folder and PATH name: they decide what programs
/// run in, so they are read whatever becomes of the search.
std::vector<std::string> named_prefixes(const Root& root, const Machine& machine) {
  std::vector<std::string> out;
  auto add = [&](const std::string& prefix) {
    if (!prefix.empty() && prefix[0] == '/' && out.size() < kMaxEnvironments)
      out.push_back(normal_path(prefix));
  };
  add(machine.variable("VIRTUAL_ENV"));
  add(machine.variable("CONDA_PREFIX"));
  add(python_of_project(root, machine).prefix);
  for (std::string_view dir : split(machine.variable("PATH"), ':')) {
    if (dir.empty() || dir[0] != '/') continue;
    for (const char* name : {"/python", "/python3"})
      if (std::string path = normal_path(dir) + name; root.exists(path))
        add(prefix_of_python(root, path));
  }
  for (const std::string& folder : {machine.variable("PWD"), machine.variable("HOME")})
    for (const char* name : {"/.venv", "/venv", "/env"})
      if (!folder.empty()) add(folder + name);
  if (std::string home = machine.variable("HOME"); !home.empty()) add(home + "/.local");
  for (const char* prefix : {"/usr", "/usr/local"}) add(prefix);
  return out;
}

/// Finds every folder of packages, the likely places first.
class Walk {
 public:
  explicit Walk(const Root& root) : root_(root) {}

  std::vector<Site> sites;
  std::vector<Site> bare;  ///< environments and systems, known by less than a folder of packages
  std::vector<std::string> conda_prefixes;
  std::string incomplete;

  /// All environments, those of `first` before the others.
  void run(const std::vector<std::string>& first) {
    std::vector<std::string> level;
    for (const std::string& prefix : first) {
      look(prefix, &level);
      enter(prefix, &level);
    }
    level.insert(level.begin(), {"/opt", "/usr/lib", "/usr/local", "/home", "/root", "/"});
    descend(std::move(level));
  }
  /// The one environment that is asked for.
  void run_only(const std::string& prefix) { descend({prefix}); }

 private:
  void descend(std::vector<std::string> level) {
    for (size_t depth = 0; depth < kMaxDepth && !level.empty() && incomplete.empty(); ++depth) {
      std::vector<std::string> next;
      for (const std::string& folder : level) {
        look(folder, &next);
        if (!incomplete.empty()) break;
      }
      level = std::move(next);
    }
  }

  /// The packages of an environment, before anything else in it.
  void enter(const std::string& prefix, std::vector<std::string>* next) {
    for (const char* lib : {"/lib", "/lib64", "/Lib"}) {
      std::vector<std::string> below;
      look((prefix == "/" ? "" : prefix) + lib, &below);
      for (const std::string& folder : below)
        if (name_of(folder).rfind("python", 0) == 0) look(folder, next);
      next->insert(next->end(), below.begin(), below.end());
    }
  }

  void look(const std::string& folder, std::vector<std::string>* next) {
    if (!seen_.insert(folder).second || skipped(folder)) return;
    if (seen_.size() > kMaxFolders || std::chrono::steady_clock::now() - begin_ > kMaxTime) {
      incomplete = "The search for environments stopped after " + std::to_string(seen_.size()) +
                   " folders; name one with --python to read it.";
      return;
    }
    std::vector<std::string> names = root_.list_folders(folder, 10000);
    const bool is_environment = names.size() < 32 && root_.exists(folder + "/pyvenv.cfg");
    if (bare.size() < kMaxEnvironments) {
      if (is_environment) bare.push_back({"", folder, ""});
      look_for_bare(folder, names);
    }
    if (std::any_of(names.begin(), names.end(), is_framework_info)) {  // pip install --target
      if (sites.size() < kMaxEnvironments * 2) sites.push_back({folder, folder, ""});
      return;
    }
    for (const std::string& name : names) {
      std::string path = (folder == "/" ? "" : folder) + "/" + name;
      if (name == "conda-meta") conda_prefixes.push_back(folder);
      if (name == "site-packages" || name == "dist-packages") {
        if (sites.size() < kMaxEnvironments * 2) sites.push_back(site_at(path));
        continue;
      }
      // Of caches only the one in which poetry keeps its environments.
      if (name == ".cache") path += "/pypoetry/virtualenvs";
      next->push_back(path);
    }
    if (is_environment) enter(folder, next);
    // Packages may lie on another disk, behind a link.
    if (python_of(name_of(folder)).empty() && name_of(folder) != "Lib") return;
    for (const char* name : {"site-packages", "dist-packages"})
      if (std::string path = folder + "/" + name;
          !root_.link(path).empty() && sites.size() < kMaxEnvironments * 2)
        sites.push_back(site_at(path));
  }

  /// /usr/lib/python3.14 without packages, like pyvenv.cfg alone: pip fails there just the same.
  void look_for_bare(const std::string& folder, const std::vector<std::string>& names) {
    const std::string base = name_of(folder);
    if (base != "lib" && base != "lib64") return;
    std::string newest;
    for (const std::string& name : names)
      if (std::string python = python_of(name);
          !python.empty() && (newest.empty() || compare_versions(python, newest) > 0))
        newest = python;
    if (!newest.empty() && folder != "/lib" && folder != "/lib64")
      bare.push_back({"", parent_of(folder), newest});
  }

  static Site site_at(const std::string& path) {
    Site site{path, parent_of(path), ""};
    std::string above = name_of(site.prefix);
    if (above == "python3") {  // /usr/lib/python3/dist-packages
      site.prefix = parent_of(parent_of(site.prefix));
    } else if (!python_of(above).empty()) {  // PREFIX/lib/python3.N/site-packages
      site.python = python_of(above);
      site.prefix = parent_of(parent_of(site.prefix));
    } else if (above == "Lib") {  // Windows
      site.prefix = parent_of(site.prefix);
    }
    return site;
  }

  const Root& root_;
  std::set<std::string> seen_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

void read_dists(const Root& root, const std::string& site, const std::vector<std::string>& names,
                Environment* env) {
  for (const std::string& name : names) {
    bool info = name.size() > 10 && name.substr(name.size() - 10) == ".dist-info";
    bool egg = name.size() > 9 && name.substr(name.size() - 9) == ".egg-info";
    if (!info && !egg) continue;
    std::string folder = site + "/" + name;
    Dist dist;
    dist.folder = folder;
    dist.site = site;
    DistMetadata metadata = parse_metadata(
        root.read(folder + (info ? "/METADATA" : "/PKG-INFO"), 256 << 10).value_or(""));
    if (metadata.name.empty() && egg)
      metadata = parse_metadata(root.read(folder, 256 << 10).value_or(""));
    // A METADATA that cannot be read: the folder's name tells name and version.
    std::string stem = name.substr(0, name.size() - (info ? 10 : 9));
    if (metadata.name.empty()) metadata.name = stem.substr(0, stem.find('-'));
    if (metadata.version.empty() && stem.find('-') != stem.npos) {
      std::string rest = stem.substr(stem.find('-') + 1);
      metadata.version = rest.substr(0, rest.find('-'));
    }
    dist.name = metadata.name;
    dist.version = metadata.version;
    for (const std::string& line : metadata.requires_dist)
      dist.requirements.push_back(parse_requirement(line));
    std::string key = normal_name(dist.name);
    if (key.empty()) continue;
    if (framework_of(key) == "tensorflow" || key == "torch" || key == "jaxlib")
      dist.wheel = root.read(folder + "/WHEEL", 16 << 10).value_or("");
    auto [it, inserted] = env->dists.emplace(key, dist);
    // Two versions side by side: a broken upgrade. The newer one is what its files are of.
    if (!inserted && compare_versions(dist.version, it->second.version) > 0) it->second = dist;
  }
}

/// DIR of a line `import site; site.addsitedir('DIR')`; "" where a line is none.
std::string added_site(std::string_view line) {
  static constexpr std::string_view kCall = "site.addsitedir(";
  const size_t at = line.find(kCall);
  if (line.rfind("import ", 0) != 0 || at == line.npos) return "";
  line.remove_prefix(at + kCall.size());
  const size_t end = line.empty() ? line.npos : line.find(line[0], 1);
  if (end == line.npos || (line[0] != '\'' && line[0] != '"')) return "";
  return std::string(line.substr(1, end - 1));
}

/// Folders that a .pth file adds to the way of imports.
std::vector<std::string> folders_of_pth(const Root& root, const std::string& site,
                                        const std::string& name) {
  std::vector<std::string> out;
  std::string text = root.read(site + "/" + name, 16 << 10).value_or("");
  for (std::string_view line : lines_of(text, 64)) {
    line = trim(line);
    if (line.empty() || line[0] == '#') continue;
    const bool code = line.rfind("import ", 0) == 0;
    std::string path = code ? added_site(line) : std::string(line);
    if (path.empty()) continue;
    path = normal_path(path[0] == '/' ? path : site + "/" + path);
    if (path != "/" && root.facts(path).type == FileType::kFolder) out.push_back(path);
  }
  return out;
}

void read_conda(const Root& root, const std::string& prefix, Environment* env) {
  for (const std::string& name : root.list(prefix + "/conda-meta", 20000)) {
    if (name.size() < 6 || name.substr(name.size() - 5) != ".json") continue;
    // NAME-VERSION-BUILD.json: enough, unless the content says more.
    std::string stem = name.substr(0, name.size() - 5);
    size_t build_at = stem.rfind('-');
    size_t version_at =
        build_at == stem.npos || build_at == 0 ? stem.npos : stem.rfind('-', build_at - 1);
    CondaPackage package;
    if (version_at != stem.npos)
      package = {normal_name(stem.substr(0, version_at)),
                 stem.substr(version_at + 1, build_at - version_at - 1), stem.substr(build_at + 1)};
    static const std::set<std::string> kWanted = {
        "tensorflow",     "tensorflow-base", "tensorflow-cpu",   "tensorflow-gpu",
        "tensorflow-mkl", "pytorch",         "libtorch",         "pytorch-cpu",
        "pytorch-gpu",    "jaxlib",          "tensorflow-eigen", "jax",
        "python"};
    if (package.name.empty() || kWanted.count(package.name) != 0) {
      CondaPackage content =
          parse_conda_meta(root.read(prefix + "/conda-meta/" + name, 4 << 20).value_or(""));
      if (!content.name.empty()) package = content;
    }
    if (package.name.empty()) continue;
    Dist dist;
    dist.name = package.name;
    dist.version = package.version;
    dist.build = package.build;
    env->conda[package.name] = dist;
  }
  if (auto it = env->conda.find("python"); it != env->conda.end()) env->python = it->second.version;
}

Environment* environment_at(std::vector<Environment>* all, const std::string& prefix,
                            const std::string& python) {
  for (Environment& env : *all)
    if (env.prefix == prefix &&
        (python.empty() || env.python.empty() || leading(env.python, 2) == python))
      return &env;
  all->push_back({});
  all->back().prefix = prefix;
  all->back().python = python;
  return &all->back();
}

/// "3.11" of a wheel's "Tag: cp311-cp311-manylinux_2_17_x86_64", "" without one.
std::string python_of_wheels(const Environment& env) {
  for (const auto& [name, dist] : env.dists) {
    std::string digits = between(dist.wheel, "Tag: cp", "-");
    if (digits.size() >= 2 && digits.find_first_not_of("0123456789") == std::string::npos)
      return digits.substr(0, 1) + "." + digits.substr(1);
  }
  return "";
}

/// What changes the packages of an environment that was described.
void choose_installer(const Root& root, const Machine& machine, Environment* env) {
  const std::string& prefix = env->prefix;
  env->installer = "pip";
  if (env->kind == "conda") {
    for (const char* name : {"tensorflow", "tensorflow-base", "pytorch", "libtorch", "jaxlib"})
      if (env->conda.count(name) != 0) env->installer = "conda";
    // What another tool puts there, pixi takes out again at its next start.
    if (const size_t at = prefix.find("/.pixi/envs/"); at != prefix.npos) {
      env->installer = "pixi";
      env->project = prefix.substr(0, at);
    }
    return;
  }
  if (env->kind == "system" || env->kind == "user") {
    bool own_python = false;  // built beside the distribution's, as in the images of python
    for (const std::string& site : env->sites)
      own_python |= site.rfind("/usr/local/", 0) == 0 && name_of(site) == "site-packages";
    if ((prefix == "/usr" || prefix == "/usr/local" || env->kind == "user") && !own_python &&
        system_is_managed(root, machine, leading(env->python, 2)))
      env->installer = "managed";
    return;
  }
  if (env->kind != "venv") return;
  auto config = parse_assignments(root.read(prefix + "/pyvenv.cfg", 64 << 10).value_or(""));
  const std::string above = parent_of(prefix);
  const bool project = name_of(prefix) == ".venv";
  if (tool_manager(prefix) == "pipx") {
    env->installer = "pipx";
    env->project = name_of(prefix);
  } else if (project && root.exists(above + "/poetry.lock")) {
    env->installer = "poetry";
    env->project = above;
  } else if (project && root.exists(above + "/pdm.lock")) {
    env->installer = "pdm";
    env->project = above;
  } else if (!config["uv"].empty() && env->dist("pip") == nullptr) {
    env->installer = "uv";
  } else if (root.live() && env->dist("pip") == nullptr) {
    env->installer = "ensurepip";
  }
}

void describe(const Root& root, const Machine& machine, Environment* env) {
  auto config = parse_assignments(root.read(env->prefix + "/pyvenv.cfg", 64 << 10).value_or(""));
  const bool has_config = !config.empty();
  std::string full = config["version"].empty() ? config["version_info"] : config["version"];
  if (!full.empty()) env->python = leading(full, 3);
  bool windows = machine.platform == "windows" || root.exists(env->prefix + "/Scripts");
  if (has_config)
    env->kind = "venv";
  else if (env->sites.size() >= 1 && env->sites[0] == env->prefix)
    env->kind = "folder";
  else if (root.exists(env->prefix + "/conda-meta"))
    env->kind = "conda";
  else if (env->prefix == "/usr" || env->prefix == "/usr/local")
    env->kind = "system";
  else if (name_of(env->prefix) == ".local")
    env->kind = "user";
  else
    env->kind = "system";
  if (env->kind == "folder") {
    env->python = python_of_wheels(*env);
    env->interpreter = env->python.empty() ? "python3" : "python" + env->python;
    return;
  }
  std::string minor = leading(env->python, 2);
  if (env->python.empty()) {
    for (std::string base : {env->prefix, std::string("/usr")}) {
      std::string target = name_of(root.follow(base + "/bin/python3"));
      if (env->python.empty()) env->python = minor = python_of(target);
    }
    for (const std::string& name : root.list("/usr/lib"))
      if (env->python.empty() && env->prefix == "/usr" && !python_of(name).empty())
        env->python = minor = python_of(name);
  }
  if (windows)
    env->interpreter = env->prefix + "/Scripts/python.exe";
  else if (env->kind == "system" || env->kind == "user")
    env->interpreter = minor.empty() ? "python3" : "python" + minor;
  else
    env->interpreter = env->prefix + "/bin/python";
  if (env->kind == "system" && env->prefix != "/usr" && env->prefix != "/usr/local")
    env->interpreter =
        env->prefix + "/bin/python" + (root.exists(env->prefix + "/bin/python") ? "" : "3");
}

/// The system's Python sees both /usr and /usr/local; a user's packages come before them.
void merge_system(std::vector<Environment>* all) {
  for (size_t i = 0; i < all->size(); ++i) {
    Environment& local = (*all)[i];
    if (local.prefix != "/usr/local") continue;
    for (size_t k = 0; k < all->size(); ++k) {
      Environment& base = (*all)[k];
      if (base.prefix != "/usr" || (!base.python.empty() && !local.python.empty() &&
                                    leading(base.python, 2) != leading(local.python, 2)))
        continue;
      for (auto& [name, dist] : base.dists) local.dists.emplace(name, dist);
      local.sites.insert(local.sites.end(), base.sites.begin(), base.sites.end());
      local.prefix = "/usr";
      if (local.python.empty()) local.python = base.python;
      base.prefix.clear();
      break;
    }
  }
  std::erase_if(*all, [](const Environment& env) { return env.prefix.empty(); });
}

/// What an environment sees besides its own packages.
void add_seen(const Root& root, std::vector<Environment>* all) {
  for (Environment& env : *all) {
    auto config = parse_assignments(root.read(env.prefix + "/pyvenv.cfg", 64 << 10).value_or(""));
    bool system = lower(config["include-system-site-packages"]) == "true";
    if (!system && env.kind != "user") continue;
    std::string home = system ? parent_of(config["home"]) : "/usr";
    for (const Environment& base : *all)
      if ((base.prefix == "/usr" || base.prefix == home) && &base != &env &&
          leading(base.python, 2) == leading(env.python, 2))
        for (const auto& [name, dist] : base.dists) env.dists.emplace(name, dist);
  }
}

}  // namespace

bool system_is_managed(const Root& root, const Machine& machine, const std::string& python) {
  for (const std::string& name : root.list("/usr/lib", 20000))
    if (std::string version = python_of(name);
        !version.empty() && (python.empty() || version == python) &&
        root.exists("/usr/lib/" + name + "/EXTERNALLY-MANAGED"))
      return true;
  if (root.exists("/usr/local/bin/python3")) return false;
  const std::string id = lower(machine.os_id);
  return (id == "debian" && compare_versions(machine.os_version, "12") >= 0) ||
         (id == "ubuntu" && compare_versions(machine.os_version, "23.04") >= 0) || id == "arch";
}

void read_packages_in(const Root& root, const std::string& site, Environment* env) {
  std::vector<std::string> names = root.list(site, 20000);
  read_dists(root, site, names, env);
  size_t pth = 0;
  for (const std::string& name : names) {
    if (name.size() < 5 || name.substr(name.size() - 4) != ".pth" || ++pth > 16) continue;
    for (const std::string& folder : folders_of_pth(root, site, name)) {
      if (std::find(env->sites.begin(), env->sites.end(), folder) != env->sites.end()) continue;
      if (folder == site || env->sites.size() > 32) continue;
      Environment added;
      read_dists(root, folder, root.list(folder, 20000), &added);
      if (added.dists.empty()) continue;
      env->sites.push_back(folder);
      for (const auto& [key, dist] : added.dists) env->dists.emplace(key, dist);
    }
  }
}

EnvironmentSearch find_environments(const Root& root, const Machine& machine,
                                    const std::string& wanted) {
  EnvironmentSearch out;
  Walk walk(root);
  std::string only = wanted.empty() ? "" : normal_path(wanted);
  if (!only.empty()) {
    std::string name = name_of(only);
    if (name == "python" || (name.rfind("python", 0) == 0 && is_version(name.substr(6))))
      only = prefix_of_python(root, only);
    if (name == "site-packages" || name == "dist-packages")
      only = parent_of(parent_of(parent_of(only)));
    if (name == "bin") only = parent_of(only);
  }
  if (only.empty())
    walk.run(named_prefixes(root, machine));
  else
    walk.run_only(only);
  out.incomplete = walk.incomplete;
  for (const Site& site : walk.sites) {
    if (out.environments.size() >= kMaxEnvironments) break;
    Environment* env = environment_at(&out.environments, site.prefix, site.python);
    env->sites.push_back(site.path);
    read_packages_in(root, site.path, env);
  }
  for (const Site& site : walk.bare) {
    bool known = site.prefix.empty() || out.environments.size() >= kMaxEnvironments;
    for (const Environment& env : out.environments)
      known |= env.prefix == site.prefix || (site.prefix == "/usr" && env.prefix == "/usr/local");
    if (!known) environment_at(&out.environments, site.prefix, site.python);
  }
  for (const std::string& prefix : walk.conda_prefixes)
    read_conda(root, prefix, environment_at(&out.environments, prefix, ""));
  for (Environment& env : out.environments) describe(root, machine, &env);
  merge_system(&out.environments);
  add_seen(root, &out.environments);
  if (!only.empty()) {
    std::erase_if(out.environments, [&](const Environment& env) { return env.prefix != only; });
    for (Environment& env : out.environments)
      env.active = true, env.active_proof = "--python names it.";
  } else {
    mark_active(root, machine, &out.environments);
  }
  mark_stray(root, machine, &out.environments);
  for (Environment& env : out.environments) choose_installer(root, machine, &env);
  add_python_path(root, machine, &out.environments);
  return out;
}

const Environment* environment_of_interpreter(const Root& root,
                                              const std::vector<const Environment*>& all,
                                              const std::string& path) {
  std::string prefix = parent_of(parent_of(path));
  for (const Environment* env : all)
    if (env->prefix == prefix) return env;
  std::string target = root.follow(path);
  for (const Environment* env : all)
    if (env->prefix == parent_of(parent_of(target))) return env;
  return nullptr;
}

}  // namespace tracefire::doctor
