// SPDX-License-Identifier: Apache-2.0
#include "backends/nvidia/search.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "core/base/loader_trap.h"

namespace tracefire::nvidia {
namespace {

namespace fs = std::filesystem;

/// 13 for "libnvrtc.so.13" and "libnvrtc.so.13.0.88" with stem "libnvrtc.so"; 0 for anything else.
int major_of(const std::string& file_name, std::string_view stem) {
  if (file_name.size() < stem.size() + 2 || file_name.compare(0, stem.size(), stem) != 0 ||
      file_name[stem.size()] != '.') {
    return 0;
  }
  int number = 0;
  for (size_t i = stem.size() + 1; i < file_name.size() && file_name[i] != '.'; ++i) {
    if (std::isdigit(static_cast<unsigned char>(file_name[i])) == 0) return 0;
    number = number * 10 + (file_name[i] - '0');
  }
  return number;
}

/// Files of a library in `dir`, whatever their major.
std::vector<std::string> majors_in(const std::string& dir, std::string_view stem) {
  std::set<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator it(dir, ignored), end; !ignored && it != end; it.increment(ignored)) {
    const std::string name = it->path().filename().string();
    if (const int major = major_of(name, stem); major != 0) {
      names.insert(std::string(stem) + "." + std::to_string(major));
    }
  }
  return {names.begin(), names.end()};
}

/// Folders below a root of Python packages that hold NVIDIA libraries: nvidia/cu13/lib and so on.
std::vector<std::string> package_dirs(const std::string& root) {
  std::vector<std::string> dirs;
  std::error_code ignored;
  for (fs::directory_iterator it(fs::path(root) / "nvidia", ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    const fs::path lib = it->path() / "lib";
    std::error_code no_lib;
    if (fs::is_directory(lib, no_lib)) dirs.push_back(lib.string());
  }
  std::sort(dirs.begin(), dirs.end());
  return dirs;
}

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

int64_t ask_version(Library library, void* handle) {
  const std::string name(facts(library).version_symbol);
  void* function = name.empty() ? nullptr : dlsym(handle, name.c_str());
  if (function == nullptr) return 0;
  switch (library) {
    case Library::kDriver:
    case Library::kNccl:
    case Library::kCupti: {
      int version = 0;
      return reinterpret_cast<int (*)(int*)>(function)(&version) == 0 ? version : 0;
    }
    case Library::kNvrtc: {
      int major = 0;
      int minor = 0;
      if (reinterpret_cast<int (*)(int*, int*)>(function)(&major, &minor) != 0) return 0;
      return major * 1000 + minor * 10;
    }
    default:
      return static_cast<int64_t>(reinterpret_cast<size_t (*)()>(function)());
  }
}

bool is_stub(const std::string& file) {
  std::error_code ignored;
  const std::string real = fs::canonical(file, ignored).string();
  return file.find("/stubs/") != std::string::npos || real.find("/stubs/") != std::string::npos;
}

const char* outcome_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOpened:
      return "opened";
    case Outcome::kAbsent:
      return "not there";
    case Outcome::kOtherMajor:
      return "another major version";
    case Outcome::kUnloadable:
      return "cannot be loaded";
    case Outcome::kStub:
      return "a stub to link against, not the driver";
  }
  return "";
}

}  // namespace

void* OpenLibrary::symbol(const char* name) const {
  return handle == nullptr ? nullptr : dlsym(handle, name);
}

std::vector<std::string> loaded_libraries(std::string_view stem) {
  struct Query {
    std::string_view stem;
    std::vector<std::string> found;
  } query{stem, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* q = static_cast<Query*>(data);
        const std::string path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        const std::string name = fs::path(path).filename().string();
        if (name == q->stem || major_of(name, q->stem) != 0) q->found.push_back(path);
        return 0;
      },
      &query);
  return query.found;
}

int Search::loaded_major(Library library) const {
  if (options_.loaded == nullptr) return 0;
  const std::string_view stem = facts(library).stem;
  for (const std::string& path : options_.loaded(stem)) {
    if (const int major = major_of(fs::path(path).filename().string(), stem); major != 0) {
      return major;
    }
  }
  return 0;
}

std::vector<Search::Place> Search::places(Library library) const {
  std::vector<Place> list;
  for (const std::string& dir : options_.explicit_dirs) {
    for (const char* below : {"", "/lib64", "/lib", "/extras/CUPTI/lib64"}) {
      list.push_back({"TRACEFIRE_CUDA_PATH", dir + below});
    }
    for (const std::string& lib : package_dirs(dir)) list.push_back({"TRACEFIRE_CUDA_PATH", lib});
  }
  if (facts(library).part_of_driver) {
    for (const std::string& dir : options_.driver_dirs) list.push_back({"driver folder", dir});
    return list;
  }
  for (const std::string& root : options_.python_roots) {
    const std::vector<std::string> libs = package_dirs(root);
    for (const std::string& lib : libs) list.push_back({"Python package", lib});
    if (libs.empty()) list.push_back({"Python package", root + "/nvidia/*/lib"});
  }
  for (const std::string& dir : options_.path_dirs) list.push_back({"LD_LIBRARY_PATH", dir});
  for (const std::string& root : options_.toolkit_roots) {
    for (const char* below : {"/lib64", "/lib", "/extras/CUPTI/lib64"}) {
      list.push_back({"CUDA toolkit", root + below});
    }
  }
  return list;
}

bool Search::try_file(Library library, const std::string& origin, const std::string& file,
                      OpenLibrary* found) {
  const bool plain_name = file.find('/') == std::string::npos;
  if (!plain_name && facts(library).part_of_driver && is_stub(file)) {
    record({library, origin, file, Outcome::kStub, ""});
    return false;
  }
  NamedTrap trap;
  void* handle = open_library(file.c_str(), options_.loader_path.c_str(), &trap);
  if (trap.why != nullptr) {
    const std::string path = trap.path;
    record({library, origin, path, Outcome::kUnloadable, path + ": " + trap.why});
    return false;
  }
  if (handle == nullptr) {
    const char* words = dlerror();
    const std::string text = words == nullptr ? "" : words;
    // A plain name that no folder of the loader holds is simply absent.
    const bool absent =
        plain_name && text.rfind(file, 0) == 0 && text.find("No such file") != std::string::npos;
    record({library, origin, file, absent ? Outcome::kAbsent : Outcome::kUnloadable,
            absent ? "" : text});
    return false;
  }
  *found = {library, handle, file, origin, ask_version(library, handle)};
  link_map* map = nullptr;
  if (plain_name && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name != nullptr &&
      map->l_name[0] != '\0') {
    found->path = map->l_name;
  }
  record({library, origin, found->path, Outcome::kOpened,
          found->version == 0 ? "" : version_text(library, found->version)});
  return true;
}

bool Search::try_dir(Library library, const Place& place, int number, OpenLibrary* found) {
  const std::string_view stem = facts(library).stem;
  const std::string file = place.dir + "/" + std::string(stem) + "." + std::to_string(number);
  std::error_code ignored;
  if (fs::exists(file, ignored)) return try_file(library, place.origin, file, found);
  const std::vector<std::string> others = majors_in(place.dir, stem);
  if (others.empty()) {
    record({library, place.origin, place.dir, Outcome::kAbsent, ""});
  } else {
    record({library, place.origin, place.dir, Outcome::kOtherMajor, joined(others, ", ")});
  }
  return false;
}

Result<OpenLibrary> Search::open(Library library, int cuda_major) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const size_t first = attempts_.size();
  const int number = soname_number(library, cuda_major);
  const std::string name = soname(library, cuda_major);
  const std::string_view stem = facts(library).stem;
  OpenLibrary found;
  // The driver is where the loader says, also when it is loaded already.
  if (options_.loaded != nullptr && !facts(library).part_of_driver) {
    for (const std::string& path : options_.loaded(stem)) {
      const int major = major_of(fs::path(path).filename().string(), stem);
      if (major == number || major == 0) {
        if (try_file(library, "already loaded", path, &found)) return found;
      } else {
        record({library, "already loaded", path, Outcome::kOtherMajor,
                std::string(stem) + "." + std::to_string(major)});
      }
    }
  }
  bool loader_asked = !options_.loader;
  for (const Place& place : places(library)) {
    // The loader knows best where the driver is, except that WSL's own folder comes before it.
    if (!loader_asked && place.origin == "driver folder" &&
        place.dir.find("/wsl/") == std::string::npos) {
      loader_asked = true;
      if (try_file(library, "loader", name, &found)) return found;
    }
    if (try_dir(library, place, number, &found)) return found;
  }
  if (!loader_asked && try_file(library, "loader", name, &found)) return found;
  return missing(library, cuda_major, first);
}

Status Search::missing(Library library, int cuda_major, size_t first_attempt) const {
  const std::string name = soname(library, cuda_major);
  std::vector<std::string> others;
  std::vector<std::string> broken;
  std::vector<std::string> searched;
  for (size_t i = first_attempt; i < attempts_.size(); ++i) {
    const Attempt& a = attempts_[i];
    if (a.outcome == Outcome::kOtherMajor) others.push_back(a.path + " (" + a.detail + ")");
    if (a.outcome == Outcome::kUnloadable) broken.push_back(a.detail);
    searched.push_back(a.path);
  }
  const std::string cure = how_to_install(library, cuda_major);
  if (!broken.empty()) {
    return error(ErrorCode::kLibraryNotFound, name,
                 " is there but cannot be loaded: ", joined(broken, "; "),
                 ". Expected a library whose own dependencies are found too. ", cure);
  }
  if (!others.empty()) {
    return error(ErrorCode::kLibraryWrongVersion,
                 "found only another major version: ", joined(others, "; "), ". Expected ", name,
                 ". ", cure);
  }
  return error(ErrorCode::kLibraryNotFound, name,
               " was not found. Searched: ", joined(searched, ", "), ". ", cure);
}

std::vector<Attempt> Search::attempts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return attempts_;
}

std::string Search::report() const {
  std::string text;
  for (const Attempt& a : attempts()) {
    text += std::string(facts(a.library).stem) + "  [" + a.origin + "]  " + a.path + ": " +
            outcome_text(a.outcome) + (a.detail.empty() ? "" : " (" + a.detail + ")") + "\n";
  }
  return text;
}

}  // namespace tracefire::nvidia
