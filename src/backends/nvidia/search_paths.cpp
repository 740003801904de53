// SPDX-License-Identifier: Apache-2.0
// Where this process may find NVIDIA libraries.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "backends/nvidia/search.h"
#include "core/base/settings.h"

namespace tracefire::nvidia {
namespace {

namespace fs = std::filesystem;

std::mutex python_mutex;
std::vector<std::string> python_roots_given;

void append(std::vector<std::string>& list, const std::string& path) {
  if (!path.empty() && std::find(list.begin(), list.end(), path) == list.end()) {
    list.push_back(path);
  }
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

void append_list(std::vector<std::string>& list, const std::string& colon_separated) {
  size_t begin = 0;
  while (begin <= colon_separated.size()) {
    const size_t end = std::min(colon_separated.find(':', begin), colon_separated.size());
    append(list, colon_separated.substr(begin, end - begin));
    begin = end + 1;
  }
}

/// Folders of an environment (venv, conda, prefix) that hold packages: lib/python3*/site-packages.
void append_site_packages(std::vector<std::string>& list, const fs::path& prefix) {
  std::error_code ignored;
  for (const char* lib : {"lib", "lib64", "local/lib"}) {
    std::vector<std::string> found;
    for (fs::directory_iterator it(prefix / lib, ignored), end; !ignored && it != end;
         it.increment(ignored)) {
      if (it->path().filename().string().rfind("python3", 0) != 0) continue;
      for (const char* kind : {"site-packages", "dist-packages"}) {
        if (fs::is_directory(it->path() / kind, ignored)) {
          found.push_back((it->path() / kind).string());
        }
      }
    }
    ignored.clear();
    // The newest Python first.
    std::sort(found.rbegin(), found.rend());
    for (const std::string& path : found) append(list, path);
  }
}

/// The package folder that `file` lies in, if it lies in one.
void append_own_packages(std::vector<std::string>& list, const fs::path& file) {
  for (fs::path dir = file.parent_path(); dir.has_relative_path(); dir = dir.parent_path()) {
    const std::string name = dir.filename().string();
    if (name == "site-packages" || name == "dist-packages") append(list, dir.string());
  }
}

void append_near_executable(std::vector<std::string>& list) {
  std::error_code ignored;
  const fs::path executable = fs::read_symlink("/proc/self/exe", ignored);
  if (executable.empty()) return;
  append_own_packages(list, executable);
  append_site_packages(list, executable.parent_path().parent_path());
}

std::vector<std::string> toolkits() {
  std::vector<std::string> found;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"}) append(found, environment(name));
  append(found, "/usr/local/cuda");
  std::error_code ignored;
  std::vector<std::string> versions;
  for (const char* parent : {"/usr/local", "/opt"}) {
    for (fs::directory_iterator it(parent, ignored), end; !ignored && it != end;
         it.increment(ignored)) {
      const std::string name = it->path().filename().string();
      if (name.rfind("cuda-", 0) == 0) versions.push_back(it->path().string());
    }
    ignored.clear();
  }
  std::sort(versions.rbegin(), versions.rend());
  for (const std::string& path : versions) append(found, path);
  append(found, "/opt/cuda");
  return found;
}

}  // namespace

void add_python_roots(const std::vector<std::string>& roots) {
  const std::lock_guard<std::mutex> lock(python_mutex);
  for (const std::string& root : roots) append(python_roots_given, root);
}

SearchOptions SearchOptions::from_environment() {
  SearchOptions options;
  append_list(options.explicit_dirs, settings::cuda_path());
  {
    const std::lock_guard<std::mutex> lock(python_mutex);
    options.python_roots = python_roots_given;
  }
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string prefix = environment(name); !prefix.empty()) {
      append_site_packages(options.python_roots, prefix);
    }
  }
  Dl_info self;
  // A name that is no whole path is a program's argv[0]: it would mean the current folder.
  if (dladdr(reinterpret_cast<void*>(&add_python_roots), &self) != 0 && self.dli_fname != nullptr &&
      self.dli_fname[0] == '/') {
    append_own_packages(options.python_roots, self.dli_fname);
  }
  append_near_executable(options.python_roots);
  options.loader_path = environment("LD_LIBRARY_PATH");
  append_list(options.path_dirs, options.loader_path);
  if (const std::string conda = environment("CONDA_PREFIX"); !conda.empty()) {
    append(options.path_dirs, conda + "/lib");
  }
  options.toolkit_roots = toolkits();
  // WSL first: a Linux driver installed inside WSL must not shadow it. NixOS and containers follow.
  options.driver_dirs = {"/usr/lib/wsl/lib",
                         "/usr/lib/x86_64-linux-gnu",
                         "/usr/lib64",
                         "/usr/local/nvidia/lib64",
                         "/usr/local/nvidia/lib",
                         "/run/opengl-driver/lib",
                         "/usr/lib/x86_64-linux-gnu/nvidia/current"};
  return options;
}

}  // namespace tracefire::nvidia
