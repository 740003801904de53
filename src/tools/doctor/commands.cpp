// SPDX-License-Identifier: Apache-2.0
//
// Commands of the system that runs the driver, from data/systems.json.
#include "tools/doctor/derive.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

using Commands = std::map<std::string, std::string>;

struct System {
  std::string name;     ///< a row of the table
  std::string version;  ///< VERSION_ID, "" where it is not known
  bool guessed = false;
  Commands commands;
};

/// The row of a distribution, by its own name or by what it is like.
std::string row_of(const Machine& m, const Data& data) {
  auto find = [&](const std::string& name) {
    return !name.empty() && data.systems().contains(name) && data.systems()[name].is_object() &&
           data.systems()[name].contains("driver");
  };
  const std::string id = lower(m.os_id), like = lower(m.os_like);
  if (find(id)) return id;
  if (auto it = data.systems().find("like"); it != data.systems().end())
    if (std::string same = text_of(*it, id); find(same)) return same;
  for (std::string_view part : split(like, ' '))
    if (find(std::string(part))) return std::string(part);
  return "other";
}

/// In a container the files tell the image's system; the kernel is the host's. Sets the release
/// where the kernel's version tells it.
std::string row_of_kernel(const Machine& m, const Data& data, std::string* version) {
  auto it = data.systems().find("kernels");
  if (it == data.systems().end() || !it->is_array()) return "";
  for (const Json& row : *it) {
    if (!row.is_array() || row.size() < 2 || !row[0].is_string() || !row[1].is_string() ||
        !contains(m.kernel, row[0].get<std::string>()))
      continue;
    const std::string name = row[1].get<std::string>();
    if (row.size() > 2 && row[2].is_object())
      for (const auto& [kernel, release] : row[2].items())
        if (m.kernel.rfind(kernel, 0) == 0 && release.is_string())
          *version = release.get<std::string>();
    if (const size_t at = m.kernel.find(".el"); at != m.kernel.npos)  // .el9_5, .el10_0
      *version = m.kernel.substr(at + 3, m.kernel.compare(at + 3, 2, "10") == 0 ? 2 : 1);
    return data.systems().contains(name) && data.systems()[name].is_object() ? name : "";
  }
  return "";
}

void add(const Json& from, Commands* to) {
  for (const auto& [name, value] : from.items())
    if (value.is_string()) (*to)[name] = value.get<std::string>();
}

System system_of(const Machine& m, const Data& data) {
  System out;
  const bool container = !m.container.empty() && !m.wsl;
  out.name = container ? row_of_kernel(m, data, &out.version) : row_of(m, data);
  if (!container) out.version = m.os_version;
  if (out.name.empty()) out.name = "ubuntu", out.guessed = true;
  add(data.systems()[out.name], &out.commands);
  if (auto it = data.systems()[out.name].find("versions"); it != data.systems()[out.name].end())
    for (const auto& [version, row] : it->items())
      if (out.version == version || out.version.rfind(version + ".", 0) == 0)
        add(row, &out.commands);
  return out;
}

std::string suse_repository(const Machine& m) {
  const std::string base = "https://download.nvidia.com/";
  const std::string id = lower(m.os_id);
  if (contains(id, "tumbleweed")) return base + "opensuse/tumbleweed";
  if (id.rfind("sle", 0) == 0) {  // 15.6 is sle15sp6
    const size_t dot = m.os_version.find('.');
    return base + "suse/sle" + m.os_version.substr(0, dot) +
           (dot == std::string::npos ? "" : "sp" + m.os_version.substr(dot + 1));
  }
  return base + "opensuse/leap/" + (m.os_version.empty() ? "15.6" : m.os_version);
}

std::string made(std::string text, const Machine& m, const Data& data, const System& system,
                 const Facts& f, const std::string& branch) {
  const bool arm = m.arch == "aarch64";
  std::string run;
  if (auto it = data.systems().find("run_versions"); it != data.systems().end())
    run = text_of(*it, branch).empty() ? text_of(*it, text_of(data.systems(), "recommended_branch"))
                                       : text_of(*it, branch);
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"{kernel}", m.container.empty() ? f.get("kernel") : "$(uname -r)"},
           {"{branch}", branch},
           {"{run_version}", run},
           {"{run_arch}", arm ? "aarch64" : "x86_64"},
           {"{repo_arch}", arm ? "sbsa" : "x86_64"},
           {"{major}", leading(system.version.empty() ? "9" : system.version, 1)},
           {"{suse_repo}", suse_repository(m)}})
    text = replace_all(std::move(text), name, value);
  return text;
}

std::string driver_of(const System& system, const Machine& m, const Data& data, const Facts& f,
                      const std::string& branch, int least) {
  auto has = [&](const char* name) { return system.commands.count(name) != 0; };
  auto get = [&](const char* name) { return has(name) ? system.commands.at(name) : std::string(); };
  // A GPU that newer branches no longer know, where the plain package is the newest branch.
  const bool old_gpu = f.has("driver.last_branch") && has("driver_old");
  const int own = has("own_branch") ? major_of(get("own_branch")) : 1000;
  const bool repository =
      has("driver_nvidia") && (!has("nvidia_branch") || major_of(get("nvidia_branch")) >= least);
  if (old_gpu) return made(get("driver_old"), m, data, system, f, branch);
  if (own >= std::max(least, major_of(branch)))
    return made(get("driver"), m, data, system, f, branch);
  if (repository) return made(get("driver_nvidia"), m, data, system, f, branch);
  if (own >= least) return made(get("driver"), m, data, system, f, get("own_branch"));
  return made(text_of(data.systems(), "driver_run"), m, data, system, f, branch);
}

}  // namespace

std::string driver_command(const Machine& m, const Data& data, const Facts& f, int least) {
  return driver_of(system_of(m, data), m, data, f, f.get("driver.recommended"), least);
}

void command_facts(const Machine& m, const Data& data, Facts* f) {
  const System system = system_of(m, data);
  const std::string branch = f->get("driver.recommended"), loaded = f->get("driver.branch");
  for (const auto& [name, text] : system.commands) {
    if (name.rfind("driver", 0) == 0 || contains(name, "_branch")) continue;
    const bool keeps = name == "fabric" || name == "hold" || name == "open" || name == "libs";
    std::string use = keeps && !loaded.empty() ? loaded : branch;
    if (name == "open" && major_of(use) < 570)
      use = branch;  // the first whose open modules know every open-only GPU
    f->set("cmd." + name, made(text, m, data, system, *f, use));
  }
  f->set("system", system.name);
  f->set("cmd.driver", driver_of(system, m, data, *f, branch, 0));
  f->set("cmd.driver_floor", f->get("cmd.driver"));
  if (const std::string known = f->get("driver.branch_for_gpu"); !known.empty())
    f->set("cmd.driver_for_gpu", driver_of(system, m, data, *f, known, 0));
  // Python is the image's.
  if (!m.container.empty() && !m.wsl) {
    System image;
    image.name = row_of(m, data);
    image.version = m.os_version;
    add(data.systems()[image.name], &image.commands);
    for (const char* name : {"python", "venv"})
      f->set(std::string("cmd.") + name,
             image.commands.count(name) == 0 ? "" : image.commands.at(name));
    f->set("on_host", system.guessed ? "On the host (as on Ubuntu): " : "On the host: ");
  }
}

}  // namespace tracefire::doctor
