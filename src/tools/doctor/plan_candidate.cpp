// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/plan_candidate.h"

#include "tools/doctor/derive.h"
#include "tools/doctor/fix.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

bool python_in(const KnownRelease& release, const std::string& python) {
  if (python.empty() || release.least.empty()) return true;
  return compare_versions(leading(python, 2), release.least) >= 0 &&
         (release.newest.empty() || compare_versions(leading(python, 2), release.newest) <= 0);
}

/// "12.8" of "cu128".
std::string cuda_of_build(const std::string& build) {
  if (build.size() < 5 || build.rfind("cu", 0) != 0) return "";
  return build.substr(2, build.size() - 3) + "." + build.substr(build.size() - 1);
}

/// The layer that a rule is about, "" for rules about what is installed already.
std::string words_for(const std::string& kind, const Facts& facts) {
  if (kind == "driver-too-old" || kind == "wsl-driver-old")
    return "the driver " + facts.get("driver.version") + " (it needs " +
           facts.get("fw.driver_floor") + " or newer)";
  if (kind == "driver-new-gpu-old-cuda")
    return "the GPU " + facts.get("fw.bad_gpu") + " (it needs CUDA " +
           facts.get("fw.cuda_before_gpu") + " or newer; the release is built for " +
           facts.get("fw.cuda") + ")";
  if (kind == "cc-too-new" || kind == "cc-too-old")
    return "the GPU " + facts.get("fw.bad_gpu") + " (compute capability " + facts.get("fw.bad_cc") +
           ", for which it has no code)";
  if (kind == "native-windows" || kind == "jax-windows")
    return "the system (native Windows, where it has no GPU support)";
  if (kind == "apple") return "the system (macOS, for which there is no CUDA)";
  if (kind == "rocm") return "the GPU (AMD's; the build is for NVIDIA's)";
  if (kind == "aarch64-cpu-wheel")
    return "the processor (aarch64, for which the wheel is built without CUDA)";
  return "";
}

/// Nothing is installed yet, so it is in no environment.
std::string before_install(std::string text, const Environment& env) {
  text = replace_all(std::move(text), " in " + env.prefix + " ", " ");
  return replace_all(std::move(text), " is installed in " + env.prefix, " is asked for");
}

}  // namespace

std::vector<KnownRelease> Planner::releases(const std::string& id) const {
  std::vector<KnownRelease> out;
  auto range = [](KnownRelease* release, const std::string& text) {
    const size_t dash = text.find('-');
    release->least = text.substr(0, dash);
    if (dash != text.npos) release->newest = text.substr(dash + 1);
  };
  auto list = data_.releases().find(id);
  if (list != data_.releases().end() && list->is_object())
    for (const auto& [version, pythons] : list->items()) {
      KnownRelease release{version, "", ""};
      if (pythons.is_string()) range(&release, pythons.get<std::string>());
      out.push_back(std::move(release));
    }
  // Newer tables may tell the needs of a minor alone.
  auto table = data_.versions().find(id);
  if (table != data_.versions().end() && table->is_object())
    for (const auto& [version, entry] : table->items()) {
      bool listed = text_of(entry, "python").empty();
      for (const KnownRelease& release : out)
        listed |= release.version == version || leading(release.version, 2) == version;
      if (listed) continue;
      KnownRelease release{version, "", ""};
      range(&release, text_of(entry, "python"));
      out.push_back(std::move(release));
    }
  std::stable_sort(out.begin(), out.end(), [](const KnownRelease& a, const KnownRelease& b) {
    return compare_versions(a.version, b.version) > 0;
  });
  return out;
}

const Json* Planner::needs(const std::string& id, const std::string& version) const {
  bool exact = false;
  const Json* entry = data_.release(id, version, &exact);
  if (entry == nullptr || exact) return entry;
  // An older patch of the same minor tells the same; another minor does not.
  auto table = data_.versions().find(id);
  for (const auto& [name, value] : table->items())
    if (&value == entry && leading(name, 2) == leading(version, 2)) return entry;
  return nullptr;
}

std::vector<std::string> Planner::builds(const std::string& id, const std::string& version) const {
  if (id == "keras") {
    if (major_of(version) < 3) return {"tensorflow"};
    std::vector<std::string> out = {"tensorflow", "jax", "torch"};
    const std::string wanted = framework_of(survey_.machine.variable("KERAS_BACKEND"));
    if (auto at = std::find(out.begin(), out.end(), wanted); at != out.end())
      std::rotate(out.begin(), at, at + 1);
    return out;
  }
  const Json* entry = needs(id, version);
  if (id == "torch" && entry != nullptr) {
    std::vector<std::string> out = texts_of(*entry, "builds");
    if (out.empty()) out = {text_of(*entry, "local")};
    return out;
  }
  if (id == "jax") {
    std::vector<std::string> out;
    for (std::string major : {"12", "13", "11"})
      if (entry != nullptr && entry->contains(major)) out.push_back("cuda" + major);
    if (!out.empty()) return out;
  }
  return {""};
}

Planner::Planner(const Root& root, const Data& data, const Survey& survey, Environment env)
    : root_(root), data_(data), survey_(survey), env_(std::move(env)) {
  for (const Surveyed& surveyed : survey.environments) {
    if (env_.prefix.empty() || surveyed.env.prefix != env_.prefix) continue;
    for (const Framework& framework : surveyed.frameworks)
      if (CudnnNeed need = cudnn_need(data, &surveyed.env, framework); need.by_pip())
        neighbours_.push_back(std::move(need));
  }
}

Facts Planner::facts() const {
  Facts out = survey_.facts;
  installer_facts("", env_.prefix.empty() ? nullptr : &env_, &out);
  if (env_.prefix.empty()) {
    out.set("pip", env_.interpreter + " -m pip");
    out.set("pip.base", env_.interpreter);
  }
  // The releases that are planned for are PyPI's.
  if (out.get("pip.by") == "conda") out.set("pip.by", "pip");
  return out;
}

std::vector<CudnnNeed> Planner::neighbours_of(const std::string& id) const {
  std::vector<CudnnNeed> out = neighbours_;
  std::erase_if(out, [&](const CudnnNeed& need) { return need.id == id; });  // it is replaced
  return out;
}

std::vector<std::string> Planner::clashes(const Framework& framework) const {
  const CudnnNeed own = cudnn_need(data_, nullptr, framework);
  std::vector<std::string> out;
  for (const CudnnNeed& other : neighbours_of(framework.id))
    if (std::string clash = clash_between(other, own); !clash.empty()) out.push_back(clash);
  return out;
}

Framework Planner::as_framework(const std::string& id, const std::string& version,
                                const std::string& build, const Json& needs) const {
  Framework framework;
  framework.id = id;
  framework.product = product_of(id);
  framework.dist = id == "jax" ? "jaxlib" : id;
  framework.version = version;
  const bool cpu_wheel = survey_.machine.arch == "aarch64" && id == "tensorflow";
  framework.build = cpu_wheel ? Build::kCpu : Build::kGpu;
  if (cpu_wheel)
    framework.build_proof = "The aarch64 wheels of TensorFlow on PyPI are built without CUDA.";
  framework.cuda = text_of(needs, "cuda");
  framework.cudnn = text_of(needs, "cudnn");
  const Json* code = &needs;
  if (id == "jax" && build.size() == 6 && needs.contains(build.substr(4))) {
    code = &needs[build.substr(4)];
    framework.cuda = text_of(*code, "built_cuda");
    framework.cudnn = text_of(*code, "cudnn");
    if (framework.cuda.empty()) framework.cuda = build.substr(4);
  }
  if (id == "torch" && !build.empty()) {
    framework.variant = build;
    framework.cuda = cuda_of_build(build);
    auto variants = data_.versions().find("torch_variants");
    if (build != text_of(needs, "local") && variants != data_.versions().end() &&
        variants->contains(build))
      code = &(*variants)[build];
  }
  framework.sass = texts_of(*code, "sass");
  framework.ptx = texts_of(*code, "ptx");
  return framework;
}

std::vector<Obstacle> Planner::obstacles(const std::string& id, const std::string& version,
                                         const std::string& build, const Json& needs) {
  const std::string key = id + " " + leading(version, id == "jax" ? 4 : 2) + " " + build;
  if (auto it = seen_.find(key); it != seen_.end()) return it->second;
  const Framework framework = as_framework(id, version, build, needs);
  Facts base = environment_facts(survey_.facts, env_, {framework});
  Facts facts = framework_facts(base, root_, survey_.machine, data_, env_, {framework}, framework);
  facts.set("fw.install", install_words(id));
  facts.set("plan", "yes");
  std::vector<Obstacle> out;
  for (Finding& finding : settle(apply_rules(data_, "framework", facts, "", id))) {
    Obstacle obstacle;
    obstacle.words = words_for(finding.kind, facts);
    if (!finding.fault() || obstacle.words.empty()) continue;
    obstacle.curable = finding.kind == "driver-too-old" || finding.kind == "wsl-driver-old";
    if (facts.has("fw.no_driver_for_gpu")) obstacle.curable = false;
    for (std::string& sentence : finding.evidence)
      sentence = before_install(std::move(sentence), env_);
    obstacle.finding = std::move(finding);
    out.push_back(std::move(obstacle));
  }
  return seen_[key] = out;
}

void Planner::choose_backend(Candidate* keras) {
  const std::string& id = keras->build;
  Candidate first, best;
  for (const KnownRelease& release : releases(id)) {
    const Json* entry = needs(id, release.version);
    if (entry == nullptr) continue;
    bool takes = true;
    if (id == "tensorflow") {
      const std::vector<std::string> conditions = texts_of(*entry, "keras");
      takes = !conditions.empty();  // a release without one has a Keras of its own
      for (const std::string& condition : conditions) takes &= meets(keras->version, condition);
    }
    if (!takes) continue;
    for (const std::string& build : builds(id, release.version)) {
      Candidate one = consider(id, release, build);
      if (first.version.empty()) first = one;
      if (one.fits()) best = std::move(one);
      if (!best.version.empty()) break;
    }
    if (!best.version.empty()) break;
  }
  const Candidate& chosen = best.version.empty() ? first : best;
  keras->needs_known = !chosen.version.empty();
  keras->backend_release = chosen.version;
  keras->backend_build = chosen.build;
  keras->against = chosen.against;
  keras->clashes = chosen.clashes;
  if (!chosen.python_fits) {
    keras->python_fits = false;
    keras->least = chosen.least;
    keras->newest = chosen.newest;
  }
}

Candidate Planner::consider(const std::string& id, const KnownRelease& release,
                            const std::string& build) {
  Candidate out;
  out.id = id;
  out.version = release.version;
  out.build = build;
  out.least = release.least;
  out.newest = release.newest;
  out.python_fits = python_in(release, env_.python);
  if (id == "keras") {
    choose_backend(&out);
    out.python_fits = out.python_fits && python_in(release, env_.python);
    return out;
  }
  const Json* entry = needs(id, release.version);
  out.needs_known = entry != nullptr;
  if (entry != nullptr) out.against = obstacles(id, release.version, build, *entry);
  if (entry != nullptr && !neighbours_.empty())
    out.clashes = clashes(as_framework(id, release.version, build, *entry));
  return out;
}

Candidate Planner::newest(const std::string& id, const std::string& conditions,
                          const std::string& build, bool alone) {
  const bool shared = !alone && !neighbours_of(id).empty();
  for (const KnownRelease& release : releases(id)) {
    if (!meets(release.version, conditions)) continue;
    // Beside libraries of pip nobody is sent to a release that wants a toolkit of the system.
    if (shared && conditions.empty() && id == "tensorflow" && !has_extra(release.version)) continue;
    for (const std::string& one : builds(id, release.version)) {
      if (!build.empty() && one != build) continue;
      Candidate candidate = consider(id, release, one);
      if (alone ? candidate.fits_machine() : candidate.fits()) return candidate;
    }
  }
  return {};
}

bool Planner::has_extra(const std::string& version) const {
  const Json* entry = needs("tensorflow", version);
  return entry != nullptr && entry->contains("extra") && (*entry)["extra"].is_boolean() &&
         (*entry)["extra"].get<bool>();
}

std::string Planner::own_environment(const Candidate& candidate, const std::string& python) const {
  const std::string folder = "~/" + candidate.id + "-env";
  return "python" + (python.empty() ? "3" : leading(python, 2)) + " -m venv " + folder + " && " +
         command(candidate, folder + "/bin/python -m pip", true);
}

std::string Planner::command(const Candidate& candidate, const std::string& pip, bool alone) const {
  const std::string& version = candidate.version;
  const std::string spec = (is_version(version) && split(version, '.').size() == 2)
                               ? "==" + version + ".*"
                               : "==" + version;
  const Json* entry = needs(candidate.id, version);
  if (candidate.id == "keras") {
    Candidate backend;
    backend.id = candidate.build;
    backend.version = candidate.backend_release;
    backend.build = candidate.backend_build;
    std::string out = command(backend, pip, alone);
    const std::string install = " install ";
    const size_t at = out.find(install);
    if (at == out.npos) return out;
    out.insert(at + install.size(), "\"keras" + spec + "\" ");
    if (backend.id != "tensorflow") out += " && export KERAS_BACKEND=" + backend.id;
    return out;
  }
  if (candidate.id == "tensorflow") {
    // The extra of releases before 2.20 pins versions that are not those of what is there: it takes
    // the libraries that are there, and what they lack.
    if (has_extra(version) && compare_versions(version, "2.20") < 0 && !alone &&
        !neighbours_of("tensorflow").empty())
      return pip + " install \"tensorflow" + spec + "\" nvidia-cuda-nvcc-cu12 nvidia-curand-cu12";
    if (has_extra(version)) return pip + " install \"tensorflow[and-cuda]" + spec + "\"";
    // These had their GPU build under a name of its own.
    const std::string minor = leading(version, 2);
    const std::string name =
        minor == "1.13" || minor == "1.14" || minor == "2.0" ? "tensorflow-gpu" : "tensorflow";
    if (entry == nullptr) return pip + " install \"" + name + spec + "\"";
    return pip + " install \"" + name + spec + "\", and CUDA " + text_of(*entry, "cuda") +
           " with cuDNN " + text_of(*entry, "cudnn") + " on the loader's path";
  }
  if (candidate.id == "jax") {
    const std::string extra = candidate.build.empty() ? "cuda12" : candidate.build;
    // Older ones took CUDA's libraries under another name, and their plug-in from elsewhere.
    if (compare_versions(version, "0.4.30") < 0)
      return pip + " install \"jax[" + extra + "_pip]" + spec +
             "\" -f https://storage.googleapis.com/jax-releases/jax_cuda_releases.html";
    return pip + " install \"jax[" + extra + "]" + spec + "\"";
  }
  const std::string index = "https://download.pytorch.org/whl/" + candidate.build;
  const bool standard = entry != nullptr && candidate.build == text_of(*entry, "local") &&
                        survey_.machine.platform == "linux" && survey_.machine.arch != "aarch64";
  if (candidate.build.empty() || standard) return pip + " install \"torch" + spec + "\"";
  if (compare_versions(version, "1.11") < 0)
    return pip + " install \"torch" + spec + "+" + candidate.build + "\" -f " + index +
           "/torch_stable.html";
  return pip + " install \"torch" + spec + "\" -i " + index;
}

}  // namespace tracefire::doctor
