// SPDX-License-Identifier: Apache-2.0
//
// Which CUDA libraries the running processes have loaded, from /proc/PID/maps: what is loaded and
// what is believed to be loaded are not always the same.
#include <unistd.h>

#include <chrono>

#include "tools/doctor/inventory.h"
#include "tools/doctor/libraries.h"
#include "tools/doctor/text.h"

namespace tracefire::doctor {

namespace {

constexpr size_t kMaxProcesses = 20000, kMaxShown = 32;
constexpr auto kMaxTime = std::chrono::milliseconds(300);

/// "libcudnn.so.9" of "libcudnn.so.9.1.0".
std::string soname_of(const std::string& name) {
  size_t at = name.find(".so.");
  if (at == name.npos) return name;
  size_t dot = name.find('.', at + 4);
  return name.substr(0, dot);
}

std::string version_of(const Root& root, const Survey& survey, const std::string& path) {
  std::string version = version_from_name(root, path);
  if (!version.empty()) return version;
  for (const Surveyed& surveyed : survey.environments)
    for (const std::string& site : surveyed.env.sites)
      if (path.rfind(site + "/", 0) == 0)
        if (std::vector<const Dist*> owners = pip_owners(surveyed.env, soname_of(name_of(path)));
            owners.size() == 1)
          return owners[0]->version;
  return "";
}

}  // namespace

std::vector<std::string> loaded_lines(const Root& root, const Survey& survey) {
  std::vector<std::string> out;
  auto begin = std::chrono::steady_clock::now();
  for (const std::string& pid : root.list("/proc", kMaxProcesses)) {
    if (pid.empty() || pid.find_first_not_of("0123456789") != pid.npos) continue;
    if (out.size() >= kMaxShown || std::chrono::steady_clock::now() - begin > kMaxTime) break;
    std::string path = "/proc/" + pid + "/maps";
    FileFacts file = root.facts(path);
    // Other users' processes are not this user's business.
    if (file.type != FileType::kRegular ||
        (root.live() && ::geteuid() != 0 && file.uid != ::geteuid()))
      continue;
    std::string maps = root.read(path, 4 << 20).value_or("");
    if (!contains(maps, "/libcuda.so") && !contains(maps, "/libcudart")) continue;
    std::map<std::string, std::string> found;  // path -> version
    for (std::string_view line : lines_of(maps, 100000)) {
      size_t slash = line.find('/');
      if (slash == line.npos) continue;
      std::string file_path(line.substr(slash));
      std::string name = name_of(file_path);
      for (std::string stem : {"libcuda.so", "libcudart.so", "libcudnn.so", "libcublas.so",
                               "libcublasLt.so", "libnccl.so"})
        if (name.rfind(stem, 0) == 0) found.emplace(file_path, "");
    }
    std::string comm(trim(root.read("/proc/" + pid + "/comm", 64).value_or("")));
    std::vector<std::string> parts;
    for (auto& [file_path, version] : found) {
      bool gone = contains(file_path, " (deleted)");
      version = gone ? "" : version_of(root, survey, file_path);
      parts.push_back(file_path + (version.empty() ? "" : " (" + version + ")"));
      if (parts.size() >= 8) break;
    }
    if (!parts.empty())
      out.push_back("Process " + pid + (comm.empty() ? "" : " (" + comm + ")") + " has loaded " +
                    join(parts, ", ") + ".");
  }
  return out;
}

}  // namespace tracefire::doctor
