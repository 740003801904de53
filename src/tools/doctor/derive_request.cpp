// SPDX-License-Identifier: Apache-2.0
//
// Facts that need all environments at once: what is asked for, which environment has a module,
// which interpreter a Jupyter kernel runs.
#include "tools/doctor/derive_request.h"

#include "tools/doctor/fix.h"
#include "tools/doctor/libraries.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

bool has_framework(const Surveyed& surveyed, const std::string& id) {
  for (const Framework& framework : surveyed.frameworks)
    if (framework.id == id) return true;
  return false;
}

/// The environment that has a framework: the active one, else one that counts, else any.
const Surveyed* first_with(const std::vector<Surveyed>& all, const std::string& id) {
  const Surveyed* found = nullptr;
  for (const Surveyed& surveyed : all) {
    if (!has_framework(surveyed, id)) continue;
    if (surveyed.env.active) return &surveyed;
    if (found == nullptr || (!found->env.stray.empty() && surveyed.env.stray.empty()))
      found = &surveyed;
  }
  return found;
}

std::string table_text(const Data& data, const char* table, const std::string& id,
                       const std::string& key, bool* present) {
  *present = false;
  auto it = data.versions().find(table);
  if (it == data.versions().end() || !it->contains(id)) return "";
  const Json& row = (*it)[id];
  if (!row.is_object() || !row.contains(key)) return "";
  *present = true;
  return text_of(row, key);
}

/// The newest and the oldest Python that has wheels of a framework, by the tables.
struct Pythons {
  std::string newest, oldest;
};
Pythons pythons_of(const Data& data, const std::string& id) {
  Pythons out;
  auto table = data.versions().find("python_newest");
  if (table == data.versions().end() || !table->contains(id)) return out;
  for (const auto& [python, version] : (*table)[id].items()) {
    if (!version.is_string()) continue;
    if (out.newest.empty() || compare_versions(python, out.newest) > 0) out.newest = python;
    if (out.oldest.empty() || compare_versions(python, out.oldest) < 0) out.oldest = python;
  }
  return out;
}

/// The Pythons that a release has wheels for.
Pythons pythons_of_release(const Data& data, const std::string& id, const std::string& release) {
  bool exact = false;
  const Json* entry = release.empty() ? nullptr : data.release(id, release, &exact);
  std::string range = entry == nullptr ? "" : text_of(*entry, "python");
  size_t dash = range.find('-');
  return dash == range.npos ? Pythons() : Pythons{range.substr(dash + 1), range.substr(0, dash)};
}

/// Whether pip can have looked in vain for the framework in this environment, which lacks it.
bool searched_there(const Data& data, const Surveyed& surveyed, const std::string& id,
                    const Facts& f) {
  std::string minor = leading(surveyed.env.python, 2);
  if (minor.empty() || has_framework(surveyed, id) || !surveyed.env.stray.empty()) return false;
  std::string newest = pythons_of_release(data, id, f.get("log.wanted_release")).newest;
  if (newest.empty()) newest = pythons_of(data, id).newest;
  return minor == f.get("log.python") || compare_versions(minor, newest) > 0;
}

/// The builds of PyTorch ("cu118" …) that have a wheel for a Python, each once, with spaces around.
std::string torch_builds(const Data& data, const std::string& minor) {
  std::set<std::string> builds;
  auto table = data.versions().find("torch");
  if (table == data.versions().end() || !table->is_object()) return "";
  for (const auto& [version, entry] : table->items()) {
    const std::string range = text_of(entry, "python");
    const size_t dash = range.find('-');
    if (dash == range.npos || compare_versions(minor, range.substr(0, dash)) < 0 ||
        compare_versions(minor, range.substr(dash + 1)) > 0)
      continue;
    for (const std::string& build : texts_of(entry, "builds")) builds.insert(build);
  }
  return builds.empty() ? "" : " " + join({builds.begin(), builds.end()}, " ") + " ";
}

/// The index that fits GPU and driver, or the next older one that has wheels for this Python.
void torch_index_facts(const Data& data, const std::string& minor, Facts* f) {
  const std::string builds = torch_builds(data, minor), wanted = f->get("torch.index");
  f->set("torch.indexes", builds);
  if (builds.empty() || contains(builds, " " + wanted + " ")) return;
  std::string best;
  for (std::string_view build : split(builds, ' '))
    if (build < wanted && build > best && build.size() == wanted.size()) best = build;
  // A GPU that needs the newer CUDA is not served by an older one.
  if (!best.empty() && compare_versions(f->get("gpu.cc"), "10.0") < 0) f->set("torch.index", best);
}

}  // namespace

std::string install_words(const std::string& framework) {
  if (framework == "tensorflow") return "tensorflow[and-cuda]";
  if (framework == "jax") return "jax[cuda12]";
  return framework;
}

void request_facts(const Root& root, const Machine& m, const Data& data,
                   const std::vector<Surveyed>& all, std::string asked, std::string release,
                   Facts* f) {
  std::string wanted = f->get("log.wanted");
  if (asked.empty() && !wanted.empty() && !f->has("log.tensorflow_gpu_removed")) {
    bool any_active = false, vain = first_with(all, wanted) == nullptr;
    for (const Surveyed& surveyed : all) any_active |= surveyed.env.active;
    for (const Surveyed& surveyed : all)
      vain |= any_active ? surveyed.env.active && !has_framework(surveyed, wanted)
                         : searched_there(data, surveyed, wanted, *f);
    if (vain) asked = wanted, release = f->get("log.wanted_release");
  }
  const Surveyed* main = all.empty() ? nullptr : &all[0];
  for (const Surveyed& surveyed : all)
    if (!surveyed.frameworks.empty() && surveyed.env.stray.empty() &&
        (main == nullptr || main->frameworks.empty() || !main->env.stray.empty()))
      main = &surveyed;
  if (main != nullptr && !main->env.stray.empty() && !main->env.active) main = nullptr;
  for (const Surveyed& surveyed : all)
    if (surveyed.env.active) main = &surveyed;
  installer_facts("main.", main == nullptr ? nullptr : &main->env, f);
  if (main != nullptr && !main->frameworks.empty())
    f->set("main.framework", main->frameworks[0].id);
  f->set("main.install", install_words(f->has("main.framework") ? f->get("main.framework")
                                       : f->has("log.of_torch") ? "torch"
                                       : f->has("log.of_jax")   ? "jax"
                                                                : "tensorflow"));
  f->set("main.python", main == nullptr ? "python3" : main->env.interpreter);
  bool gpu_build = false, tensorflow = false, metal = false, jax = false, rocm = false;
  bool known = false, needs = false;  // which framework opens the library that the log misses
  for (const Surveyed& surveyed : all) {
    tensorflow |= has_framework(surveyed, "tensorflow");
    metal |= surveyed.env.dist("tensorflow-metal") != nullptr;
    jax |= has_framework(surveyed, "jax");
    for (const Framework& framework : surveyed.frameworks) {
      gpu_build |= framework.build == Build::kGpu;
      rocm |= framework.build == Build::kRocm;
      known |= !framework.needed.empty();
      for (const Needed& need : framework.needed) needs |= need.soname == f->get("log.library");
    }
  }
  f->flag("some.jax", jax);
  f->flag("some.rocm", rocm);
  f->flag("log.library_foreign", known && !needs && f->has("log.library"));
  f->flag("some.tensorflow", tensorflow);
  f->flag("apple.metal", metal);
  bool maybe = m.gpu == Presence::kPresent ||
               (m.gpu == Presence::kUnknown && (gpu_build || f->has("nvidia_visible") ||
                                                f->has("log.cuinit") || f->has("log.library")));
  f->flag("gpu.maybe", maybe);
  std::string index = "cu128";
  if (f->has("gpu.cc") && compare_versions(f->get("gpu.cc"), "7.5") < 0) index = "cu126";
  if (f->has("driver.version") && !m.wsl &&
      compare_versions(f->get("driver.version"), "525.60.13") < 0)
    index = "cu118";
  f->set("torch.index", index);
  if (std::string module = f->get("log.no_module"); !module.empty()) {
    std::string id = framework_of(module);
    f->set("module.install", install_words(id));
    if (const Surveyed* has = first_with(all, id)) {
      f->set("module.where", has->env.prefix, has->env.prefix + " has it.");
      f->set("module.python", has->env.interpreter);
    }
  }
  if (!asked.empty()) {
    f->set("asked", asked);
    f->set("asked.product", product_of(asked));
    f->set("asked.dist",
           (asked == "jax" ? "jaxlib" : asked) + (release.empty() ? "" : " " + release));
    f->set("asked.release", release);
    f->set("fw.install_asked", install_words(asked));
    f->set("asked.install",
           install_words(asked) + (release.empty()                  ? ""
                                   : split(release, '.').size() > 2 ? "==" + release
                                                                    : "==" + release + ".*"));
    f->flag("asked.anywhere", first_with(all, asked) != nullptr);
    const Surveyed *has = first_with(all, asked), *active = nullptr;
    for (const Surveyed& surveyed : all)
      if (surveyed.env.active) active = &surveyed;
    if (has != nullptr) f->set("asked.python", has->env.interpreter);
    if (has != nullptr && active != nullptr && !has->env.active) {
      f->set("asked.elsewhere", has->env.prefix, has->env.prefix + " has it.");
      f->set("active", active->env.prefix,
             "The active environment is " + active->env.prefix + ": " + active->env.active_proof);
    }
    bool present = false;
    f->set("asked.best", table_text(data, "python_best", asked, "", &present));
    auto best = data.versions().find("python_best");
    f->set("asked.best", best != data.versions().end() && !text_of(*best, asked).empty()
                             ? text_of(*best, asked)
                             : "3.13");
    Pythons range = pythons_of_release(data, asked, release);
    f->set("asked.python_least", range.oldest);
    f->set("asked.python_most", range.newest);
    if (!range.newest.empty() && compare_versions(f->get("asked.best"), range.newest) > 0)
      f->set("asked.best", range.newest);
    f->flag("asked.searched", wanted == asked);
    std::string python = f->get("log.python");
    std::string newest = range.newest.empty() ? pythons_of(data, asked).newest : range.newest;
    if (!python.empty() && !newest.empty() && compare_versions(python, newest) > 0)
      f->set("log.python_too_new", python,
             "The newest Python with a wheel of " + f->get("asked.dist") + " is " + newest + ".");
  }
  kernel_facts(root, m, all, f);
}

void python_facts(const Data& data, const Surveyed& surveyed, Facts* f) {
  std::string minor = f->get("env.minor");
  if (minor.empty()) return;
  torch_index_facts(data, minor, f);
  std::string asked = f->get("asked");
  bool here = !asked.empty() && has_framework(surveyed, asked);
  f->flag("asked.here", here);
  // pip was run here and found nothing, whatever other environments have.
  f->flag("asked.in_vain", !here && f->has("asked.searched"));
  for (std::string id : {"tensorflow", "torch", "jax"}) {
    const auto [newest_python, oldest_python] = pythons_of(data, id);
    bool too_new = compare_versions(minor, newest_python) > 0;
    // A release that is asked for has wheels for some Pythons alone.
    std::string most = id == asked ? f->get("asked.python_most") : "",
                least = id == asked ? f->get("asked.python_least") : "";
    if (!most.empty() && compare_versions(minor, most) > 0) {
      f->set("asked.too_new", "yes",
             product_of(id) + " " + f->get("asked.release") + " has wheels for Python " + least +
                 " to " + most + ".");
      f->flag("asked.newest_fits", !too_new);
    } else if (!least.empty() && compare_versions(minor, least) < 0) {
      f->set("asked.too_old", product_of(id) + " " + f->get("asked.release") +
                                  " has wheels for Python " + least + " to " + most);
    }
    if (too_new && id == asked && !f->has("asked.too_new"))
      f->set("asked.too_new", "yes",
             "The newest Python with a wheel of " + product_of(id) + " is " + newest_python + ".");
    if (too_new && !has_framework(surveyed, id))
      f->set("too_new", (f->has("too_new") ? f->get("too_new") + " or " : "") + product_of(id));
    bool present = false;
    std::string newest = table_text(data, "python_newest", id, minor, &present);
    bool years_old = false;
    auto old = data.versions().find("python_years_old");
    if (old != data.versions().end())
      for (const std::string& python : texts_of(*old, id)) years_old |= python == minor;
    if (id == asked && !too_new && most.empty() &&
        (years_old || compare_versions(minor, oldest_python) < 0))
      f->set("asked.too_old", newest.empty() ? "no " + product_of(id) + " wheel is made for it"
                                             : "the newest " + product_of(id) + " for it is " +
                                                   newest + ", years behind");
    for (const Framework& framework : surveyed.frameworks)
      if (framework.id == id && years_old && !newest.empty() &&
          leading(newest, 2) == leading(framework.version, 2))
        f->set("old." + id, newest,
               "The newest " + product_of(id) + " for Python " + minor + " is " + newest + ".");
  }
}

}  // namespace tracefire::doctor
