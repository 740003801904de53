// SPDX-License-Identifier: Apache-2.0
//
// The libraries that TensorFlow opens on native Windows, which it could use GPUs on until 2.10:
// CUDA and cuDNN of one release each, by the names of their DLLs, from the folders of PATH.
#include "tools/doctor/derive.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

struct Dlls {
  const char* from;  ///< first release of TensorFlow that opens them
  const char* runtime;
  const char* cudnn;
};
constexpr Dlls kDlls[] = {{"2.4", "cudart64_110.dll", "cudnn64_8.dll"},
                          {"2.1", "cudart64_101.dll", "cudnn64_7.dll"},
                          {"1.13", "cudart64_100.dll", "cudnn64_7.dll"},
                          {"1.5", "cudart64_90.dll", "cudnn64_7.dll"}};

/// "/Program Files/x" of "C:\\Program Files\\x": the tree is one drive.
std::string tree_path(std::string_view windows) {
  std::string path = replace_all(std::string(trim(windows)), "\\", "/");
  if (path.size() > 1 && path[1] == ':') path = path.substr(2);
  return normal_path(path.empty() || path[0] != '/' ? "/" + path : path);
}

/// A file of `dir`, whatever the case of its letters. "" where none is.
std::string file_in(const Root& root, const std::string& dir, const std::string& name) {
  for (const std::string& entry : root.list(dir, 20000))
    if (lower(entry) == name) return dir + "/" + entry;
  return "";
}

}  // namespace

void windows_library_facts(const Root& root, const Machine& m, const Environment& env,
                           const Framework& fw, Facts* f) {
  if (fw.id != "tensorflow" || compare_versions(fw.version, "2.11") >= 0) return;
  const Dlls* needed = nullptr;
  for (const Dlls& row : kDlls)
    if (needed == nullptr && compare_versions(fw.version, row.from) >= 0) needed = &row;
  if (needed == nullptr) return;
  std::vector<std::string> way = {env.prefix + "/Library/bin", "/Windows/System32"}, toolkits;
  std::string path = m.variable("PATH").empty() ? m.variable("Path") : m.variable("PATH");
  for (std::string_view dir : split(path, ';'))
    if (!trim(dir).empty()) way.push_back(tree_path(dir));
  const std::string home = "/Program Files/NVIDIA GPU Computing Toolkit/CUDA";
  for (const std::string& name : root.list(home)) toolkits.push_back(home + "/" + name + "/bin");
  // The installer puts its folder onto PATH; the tree alone does not tell PATH.
  if (path.empty()) way.insert(way.end(), toolkits.begin(), toolkits.end());
  std::vector<std::string> missing;
  std::string elsewhere, other;
  for (std::string name : {needed->runtime, needed->cudnn}) {
    std::string found;
    for (const std::string& dir : way)
      if (found.empty()) found = file_in(root, dir, name);
    if (!found.empty()) continue;
    missing.push_back(name);
    for (const std::string& dir : toolkits)
      if (elsewhere.empty() && !file_in(root, dir, name).empty()) elsewhere = dir;
    const std::string stem = name.substr(0, name.find("64_") + 3);
    for (const std::vector<std::string>& dirs : {way, toolkits})
      for (const std::string& dir : dirs)
        for (const std::string& entry : root.list(dir, 20000))
          if (other.empty() && lower(entry).rfind(stem, 0) == 0 && lower(entry) != name)
            other = dir + "/" + entry;
  }
  if (missing.empty()) return;
  f->set("fw.windows_dlls", "yes");
  f->set("fw.missing", join(missing, ", "),
         fw.product + " " + fw.version + " (" + fw.dist + " " + fw.version + ") opens " +
             join(missing, ", ") + ", which PATH does not lead to.");
  if (!elsewhere.empty())
    f->set("fw.off_path", missing[0], "There is a copy in " + elsewhere + ", which PATH lacks.");
  else if (!other.empty())
    f->set("fw.wrong_major", missing[0], "Another version is there: " + other + ".");
  else
    f->set("fw.off_path", missing[0],
           "No folder of PATH and no CUDA toolkit of this tree has them.");
}

}  // namespace tracefire::doctor
