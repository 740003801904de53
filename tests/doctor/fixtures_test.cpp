// SPDX-License-Identifier: Apache-2.0
//
// Every tree of tests/data/doctor gets exactly its faults, with and without the framework's log,
// and also when paths, versions and neighbours change.
#include <doctest/doctest.h>

#include <functional>

#include "doctor/fixture.h"

namespace tracefire::test {

namespace {

constexpr const char* kLog = "/captured/framework.log";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// Replaces in paths, contents, link targets and variables.
Fixture with(Fixture fixture, const std::string& from, const std::string& to) {
  Tree files;
  for (auto& [path, content] : fixture.files) {
    FixtureJson changed = content;
    if (content.is_string()) changed = replaced(content.get<std::string>(), from, to);
    if (content.is_object() && content.contains("symlink"))
      changed["symlink"] = replaced(content["symlink"].get<std::string>(), from, to);
    files[replaced(path, from, to)] = changed;
  }
  fixture.files = std::move(files);
  for (auto& [name, value] : fixture.env) value = replaced(value, from, to);
  return fixture;
}

void check(const Fixture& fixture, const std::string& how, bool faults_only) {
  TreeOnDisk tree(fixture.files);
  Answer answer = ask_doctor(tree.root(), fixture.env, fixture.arguments);
  for (const std::string& problem : mismatches(fixture, answer, faults_only))
    FAIL_CHECK(fixture.id << how << ": " << problem);
}

bool about_python(const Fixture& fixture) {
  for (const auto& kind : fixture.expect.at("finding_kinds"))
    if (kind.get<std::string>().rfind("python-", 0) == 0) return true;
  return fixture.id.find("py3") != std::string::npos;
}

bool mentions(const Fixture& fixture, const std::string& part) {
  for (const auto& [path, content] : fixture.files)
    if (path.find(part) != path.npos) return true;
  return false;
}

bool has_venv(const Fixture& fixture) { return fixture.files.count("/opt/venv/pyvenv.cfg") != 0; }

/// A change that must not change what is found.
struct Change {
  std::string how;
  std::function<bool(Fixture*)> apply;  ///< false where it does not apply
};

void add_layouts(std::vector<Change>* out);

std::vector<Change> changes() {
  std::vector<Change> out;
  add_layouts(&out);
  out.push_back({" without log", [](Fixture* fixture) {
                   return !fixture->needs_log && fixture->files.erase(kLog) != 0;
                 }});
  out.push_back({" in another venv", [](Fixture* fixture) {
                   if (!has_venv(*fixture)) return false;
                   *fixture = with(*fixture, "/opt/venv", "/srv/app/.venv-2");
                   return true;
                 }});
  out.push_back({" in conda", [](Fixture* fixture) {
                   if (!has_venv(*fixture)) return false;
                   fixture->files.erase("/opt/venv/pyvenv.cfg");
                   *fixture = with(*fixture, "/opt/venv", "/opt/miniforge3/envs/ml");
                   fixture->files["/opt/miniforge3/envs/ml/conda-meta/history"] =
                       "==> 2026-01-01 <==\n";
                   return true;
                 }});
  out.push_back({" in an environment of poetry", [](Fixture* fixture) {
                   if (!has_venv(*fixture)) return false;
                   *fixture = with(*fixture, "/opt/venv",
                                   "/data/ada/.cache/pypoetry/virtualenvs/app-x1Y2-py3");
                   return true;
                 }});
  out.push_back({" in a project of uv", [](Fixture* fixture) {
                   if (!has_venv(*fixture)) return false;
                   *fixture = with(*fixture, "/opt/venv", "/data/ada/projects/app/.venv");
                   fixture->files["/data/ada/projects/app/.venv/pyvenv.cfg"] = replaced(
                       fixture->files["/data/ada/projects/app/.venv/pyvenv.cfg"].get<std::string>(),
                       "version =", "uv = 0.8.3\nversion_info =");
                   return true;
                 }});
  out.push_back({" in dist-packages", [](Fixture* fixture) {
                   if (!has_venv(*fixture) || fixture->env.count("VIRTUAL_ENV") != 0 ||
                       fixture->env.count("PATH") != 0 || mentions(*fixture, "/kernels/"))
                     return false;
                   fixture->files.erase("/opt/venv/pyvenv.cfg");
                   *fixture = with(*fixture, "/opt/venv/lib", "/usr/local/lib");
                   *fixture = with(*fixture, "site-packages", "dist-packages");
                   return true;
                 }});
  for (std::string minor : {"3.10", "3.12"})
    out.push_back({" on Python " + minor, [minor](Fixture* fixture) {
                     if (!has_venv(*fixture) || about_python(*fixture)) return false;
                     *fixture = with(*fixture, "python3.11", "python" + minor);
                     fixture->files["/opt/venv/pyvenv.cfg"] =
                         "home = /usr/bin\nversion = " + minor + ".4\n";
                     return true;
                   }});
  out.push_back({" with other patch versions", [](Fixture* fixture) {
                   Fixture before = *fixture;
                   for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
                            {"550.54.15", "550.163.01"},
                            {"535.183.01", "535.247.01"},
                            {"580.65.06", "580.95.05"},
                            {"570.124.06", "570.195.03"},
                            {"2.20.0", "2.20.1"},
                            {"2.6.0", "2.6.1"},
                            {"2.18.0", "2.18.1"},
                            {"9.10.2.21", "9.10.1.4"},
                            {"1.26.4", "1.26.3"},
                            {"3.11.9", "3.11.2"}})
                     *fixture = with(*fixture, from, to);
                   return fixture->files != before.files;
                 }});
  out.push_back({" beside another environment", [](Fixture* fixture) {
                   if (!has_venv(*fixture)) return false;
                   fixture->files["/srv/tools/venv/pyvenv.cfg"] =
                       "home = /usr/bin\nversion = 3.12.3\n";
                   for (std::string name : {"requests-2.32.3", "black-24.4.2", "numpy-2.2.1"}) {
                     std::string folder =
                         "/srv/tools/venv/lib/python3.12/site-packages/" + name + ".dist-info";
                     size_t dash = name.find('-');
                     fixture->files[folder + "/METADATA"] =
                         "Metadata-Version: 2.1\nName: " + name.substr(0, dash) +
                         "\nVersion: " + name.substr(dash + 1) + "\n";
                   }
                   return true;
                 }});
  return out;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// One environment, and nothing that its path or neighbours are about.
bool alone(const Fixture& fixture) {
  int environments = 0;
  bool packages = false;
  for (const auto& [path, content] : fixture.files)
    environments += ends_with(path, "/pyvenv.cfg") || path.find("/conda-meta/") != path.npos ||
                    path.find("/dist-packages/") != path.npos ||
                    path.find("/kernels/") != path.npos;
  for (const auto& [path, content] : fixture.files)
    packages |= path.rfind("/opt/venv/lib/", 0) == 0;
  return environments == 1 && packages && has_venv(fixture) && fixture.arguments.empty();
}

/// Moves what distributions say about themselves; `change` gets the folder and its METADATA.
bool for_each_dist(
    Fixture* fixture,
    const std::function<bool(const std::string& folder, std::string* metadata)>& change) {
  bool any = false;
  const Tree before = fixture->files;
  for (const auto& [path, content] : before) {
    if (!ends_with(path, ".dist-info/METADATA") || !content.is_string()) continue;
    std::string metadata = content.get<std::string>();
    if (!change(path.substr(0, path.size() - 9), &metadata)) continue;
    if (fixture->files.count(path) != 0) fixture->files[path] = metadata;
    any = true;
  }
  return any;
}

/// Ways in which the same packages lie in an environment.
void add_layouts(std::vector<Change>* out) {
  out->push_back({" with direct_url.json and an installer", [](Fixture* fixture) {
                    return for_each_dist(fixture, [&](const std::string& folder, std::string*) {
                      fixture->files[folder + "/direct_url.json"] =
                          "{\"url\": \"file:///srv/src\", \"dir_info\": {\"editable\": true}}";
                      fixture->files[folder + "/INSTALLER"] = "uv\n";
                      fixture->files[folder + "/REQUESTED"] = "";
                      return true;
                    });
                  }});
  out->push_back({" with METADATA without Version", [](Fixture* fixture) {
                    return for_each_dist(fixture, [](const std::string&, std::string* metadata) {
                      const size_t at = metadata->find("\nVersion: ");
                      if (at == metadata->npos) return false;
                      metadata->erase(at + 1, metadata->find('\n', at + 1) - at);
                      return true;
                    });
                  }});
  out->push_back(
      {" as egg-info", [](Fixture* fixture) {
         return for_each_dist(fixture, [&](const std::string& folder, std::string* metadata) {
           if (fixture->files.count(folder + "/WHEEL") != 0) return false;
           const std::string egg = folder.substr(0, folder.size() - 10) + "-py3.11.egg-info";
           fixture->files[egg + "/PKG-INFO"] = *metadata;
           fixture->files.erase(folder + "/METADATA");
           fixture->files.erase(folder + "/RECORD");
           return true;
         });
       }});
  out->push_back(
      {" with packages behind a link", [](Fixture* fixture) {
         if (!has_venv(*fixture)) return false;
         const std::string site = "/opt/venv/lib/python3.11/site-packages";
         if (fixture->files.lower_bound(site + "/") == fixture->files.end() ||
             fixture->files.lower_bound(site + "/")->first.rfind(site + "/", 0) != 0)
           return false;
         Tree files;
         for (const auto& [path, content] : fixture->files)
           files[path.rfind(site + "/", 0) == 0 ? "/data/packages" + path.substr(site.size())
                                                : path] = content;
         files[site] = {{"symlink", "/data/packages"}};
         fixture->files = std::move(files);
         return true;
       }});
  out->push_back({" among uv's tools", [](Fixture* fixture) {
                    if (!has_venv(*fixture) || mentions(*fixture, "/pipx/") ||
                        mentions(*fixture, "/uv/tools/"))
                      return false;
                    *fixture = with(*fixture, "/opt/venv", "/opt/ada/.local/share/uv/tools/app");
                    fixture->files
                        ["/opt/ada/.local/share/uv/python/cpython-3.11.9-linux-x86_64-gnu/lib/"
                         "python3.11/site-packages/pip-24.0.dist-info/METADATA"] =
                        "Metadata-Version: 2.1\nName: pip\nVersion: 24.0\n";
                    return true;
                  }});
  out->push_back({" as the active one by PATH", [](Fixture* fixture) {
                    // A Python without a framework makes no environment active.
                    for (const auto& kind : fixture->expect.at("finding_kinds"))
                      if (kind == "module-not-found") return false;
                    if (!alone(*fixture) || about_python(*fixture) ||
                        fixture->env.count("VIRTUAL_ENV") != 0 || fixture->env.count("PATH") != 0)
                      return false;
                    fixture->env["PATH"] = "/opt/venv/bin:/usr/bin";
                    fixture->files["/opt/venv/bin/python"] = {{"symlink", "/usr/bin/python3"}};
                    fixture->files["/usr/bin/python3"] = "";
                    // Another environment with a fault of its own, which nobody uses.
                    const std::string other = "/srv/old/venv";
                    fixture->files[other + "/pyvenv.cfg"] = "home = /usr/bin\nversion = 3.11.4\n";
                    fixture->files[other + "/bin/python"] = {{"symlink", "/usr/bin/python3"}};
                    fixture->files[other +
                                   "/lib/python3.11/site-packages/"
                                   "tensorflow_cpu-2.15.0.dist-info/METADATA"] =
                        "Metadata-Version: 2.1\nName: tensorflow-cpu\nVersion: 2.15.0\n";
                    return true;
                  }});
}

/// Every fixture under every change, or of all these pairs the one in `of` whose turn it is: by its
/// names alone, so that a run repeats and every pair has its turn.
void check_changed(uint32_t of) {
  const std::vector<Fixture> all = all_fixtures();
  for (const Change& change : changes()) {
    int changed = 0;
    for (Fixture fixture : all) {
      uint32_t turn = 2166136261u;
      for (char c : fixture.id + change.how)
        turn = (turn ^ static_cast<unsigned char>(c)) * 16777619u;
      if ((turn >> 8) % of != 0 || !change.apply(&fixture)) continue;
      ++changed;
      check(fixture, change.how, true);
    }
    CHECK_MESSAGE(changed > static_cast<int>(10 / of), change.how);
  }
}

}  // namespace

TEST_CASE("doctor: every fixture has exactly its faults") {
  for (const Fixture& fixture : all_fixtures()) check(fixture, "", false);
}

TEST_CASE("doctor: paths, versions, neighbours and a missing log change nothing") {
  check_changed(10);
}

TEST_CASE("doctor: every fixture under every change [deep]") { check_changed(1); }

}  // namespace tracefire::test
