// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/plan.h"

#include "tools/doctor/derive.h"
#include "tools/doctor/inventory.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

/// A release of a framework in one of its builds.
struct Candidate {
  std::string release, variant;  ///< "2.8", torch's "cu128"
  std::string python;            ///< "3.9-3.13"
  std::vector<Finding> against;  ///< what speaks against it on this machine
  bool python_fits = true;
};

/// "3.9-3.13" holds "3.11".
bool in_range(const std::string& range, const std::string& python) {
  size_t dash = range.find('-');
  if (dash == range.npos || python.empty()) return true;
  return compare_versions(python, range.substr(0, dash)) >= 0 &&
         compare_versions(leading(python, 2), range.substr(dash + 1)) <= 0;
}

/// Rules that can be decided before anything is installed.
bool before_install(const std::string& kind) {
  static const std::set<std::string> kKinds = {
      "driver-too-old", "wsl-driver-old", "cc-too-new", "cc-too-old",       "native-windows",
      "jax-windows",    "rocm",           "apple",      "aarch64-cpu-wheel"};
  return kKinds.count(kind) != 0;
}

std::vector<Finding> speak_against(const Root& root, const Data& data, const Survey& survey,
                                   const Environment& env, Framework framework) {
  Facts base = environment_facts(survey.facts, env, {framework});
  Facts facts = framework_facts(base, root, survey.machine, data, env, {framework}, framework);
  facts.set("fw.install", install_words(framework.id));
  std::vector<Finding> out;
  for (Finding& finding : settle(apply_rules(data, "framework", facts, "", framework.id)))
    if (finding.fault() && before_install(finding.kind)) out.push_back(std::move(finding));
  return out;
}

Candidate consider(const Root& root, const Data& data, const Survey& survey, const Environment& env,
                   const std::string& id, const std::string& release, const std::string& variant) {
  Candidate out;
  out.release = release;
  Framework framework;
  framework.id = id;
  framework.product = product_of(id);
  framework.dist = id == "jax" ? "jaxlib" : id;
  framework.version = release;
  framework.build =
      survey.machine.arch == "aarch64" && id == "tensorflow" ? Build::kCpu : Build::kGpu;
  framework.build_proof = framework.build == Build::kCpu
                              ? "The aarch64 wheels of TensorFlow on PyPI are built without CUDA."
                              : "";
  const Json* entry = data.release(id, release);
  if (entry == nullptr) return out;
  out.python = text_of(*entry, "python");
  out.python_fits = in_range(out.python, env.python);
  const Json* build = entry;
  if (id == "jax") {
    for (std::string major : {"12", "13"})
      if (build == entry && entry->contains(major))
        build = &(*entry)[major], framework.cuda = text_of(*build, "built_cuda").empty()
                                                       ? major
                                                       : text_of(*build, "built_cuda");
  } else {
    framework.cuda = text_of(*entry, "cuda");
    framework.cudnn = text_of(*entry, "cudnn");
  }
  if (id == "torch") {
    out.variant = variant.empty() ? text_of(*entry, "local") : variant;
    framework.variant = out.variant;
    if (!variant.empty() && data.versions().contains("torch_variants") &&
        data.versions()["torch_variants"].contains(variant)) {
      build = &data.versions()["torch_variants"][variant];
      framework.cuda =
          variant.substr(2, variant.size() - 3) + "." + variant.substr(variant.size() - 1);
    }
  }
  framework.sass = texts_of(*build, "sass");
  framework.ptx = texts_of(*build, "ptx");
  out.against = speak_against(root, data, survey, env, framework);
  return out;
}

std::string command(const Environment& env, const std::string& id, const Candidate& candidate,
                    const Data& data) {
  std::string pip = env.prefix.empty() ? "python3 -m pip" : env.pip();
  std::string spec = candidate.release;
  if (split(spec, '.').size() == 2)
    spec = "==" + spec + ".*";
  else
    spec = "==" + spec;
  const Json* entry = data.release(id, candidate.release);
  if (id == "tensorflow") {
    bool extra = entry != nullptr && entry->contains("extra") && (*entry)["extra"].is_boolean() &&
                 (*entry)["extra"].get<bool>();
    if (extra) return pip + " install \"tensorflow[and-cuda]" + spec + "\"";
    return pip + " install \"tensorflow" + spec + "\", and CUDA " + text_of(*entry, "cuda") +
           " with cuDNN " + text_of(*entry, "cudnn") + " on the loader's path";
  }
  if (id == "jax") return pip + " install \"jax[cuda12]" + spec + "\"";
  if (id == "torch" && entry != nullptr && candidate.variant != text_of(*entry, "local"))
    return pip + " install \"torch" + spec + "\" -i https://download.pytorch.org/whl/" +
           candidate.variant;
  return pip + " install \"" + id + spec + "\"";
}

/// The Python for which is planned: the active environment's, else the system's newest.
Environment chosen_environment(const Root& root, const Survey& survey) {
  for (const Surveyed& surveyed : survey.environments)
    if (surveyed.env.active) return surveyed.env;
  for (const Surveyed& surveyed : survey.environments)
    if (surveyed.env.kind == "venv" || surveyed.env.kind == "conda") return surveyed.env;
  Environment env;
  env.interpreter = "python3";
  for (const std::string& name : root.list("/usr/bin", 20000)) {
    std::string version = name.rfind("python3.", 0) == 0 ? name.substr(6) : "";
    if (is_version(version) && compare_versions(version, env.python) > 0) env.python = version;
  }
  if (!env.python.empty()) env.interpreter = "python" + env.python;
  return env;
}

Candidate best_fitting(const Root& root, const Data& data, const Survey& survey,
                       const Environment& env, const std::string& id,
                       std::vector<std::string> releases) {
  std::sort(releases.begin(), releases.end(),
            [](const std::string& a, const std::string& b) { return compare_versions(a, b) > 0; });
  for (const std::string& release : releases)
    for (std::string variant : id == "torch"
                                   ? std::vector<std::string>{"", "cu128", "cu126", "cu118"}
                                   : std::vector<std::string>{""}) {
      Candidate candidate = consider(root, data, survey, env, id, release, variant);
      if (candidate.against.empty() && candidate.python_fits) return candidate;
    }
  return {};
}

}  // namespace

Report make_plan(const Root& root, const Data& data, Machine machine, const std::string& id,
                 const std::string& release, const std::string& python) {
  Survey survey = make_survey(root, data, std::move(machine), {python, "", ""});
  Environment env = chosen_environment(root, survey);
  Report report;
  for (Finding& finding : settle(apply_rules(data, "machine", survey.facts, "", "")))
    if (finding.fault()) report.findings.push_back(std::move(finding));
  std::vector<std::string> releases;
  auto table = data.versions().find(id);
  if (table != data.versions().end())
    for (const auto& [name, entry] : table->items()) releases.push_back(name);
  Candidate best = best_fitting(root, data, survey, env, id, releases);
  std::string product = product_of(id),
              where = env.python.empty() ? "" : " and Python " + env.python;
  Finding plan;
  plan.kind = "plan";
  plan.severity = "info";
  plan.confidence = 0.85;
  if (!release.empty()) {
    bool exact = false;
    const bool known = data.release(id, release, &exact) != nullptr;
    Candidate wanted = consider(root, data, survey, env, id, release, "");
    if (known && !exact)
      plan.evidence.push_back("The tables (of " + text_of(data.versions(), "dated") +
                              ") do not list " + product + " " + release +
                              "; the nearest older release was taken for it.");
    for (Finding& finding : wanted.against) report.findings.push_back(finding);
    if (known && !wanted.python_fits) {
      Finding finding;
      finding.kind =
          compare_versions(env.python, wanted.python.substr(wanted.python.find('-') + 1)) > 0
              ? "python-too-new"
              : "python-too-old";
      finding.severity = "error";
      finding.confidence = 0.9;
      finding.verdict = "cpu-only";
      finding.order = 102;
      finding.evidence = {product + " " + release + " has wheels for Python " + wanted.python +
                          "; this one is " + env.python + "."};
      std::string newest = wanted.python.substr(wanted.python.find('-') + 1);
      finding.fix = "Make an environment with Python " + newest + ": python" + newest +
                    " -m venv ~/" + id + "-env";
      report.findings.push_back(std::move(finding));
    }
    bool fits = known && wanted.against.empty() && wanted.python_fits;
    if (fits) plan.fix = command(env, id, wanted, data);
    plan.evidence.insert(
        plan.evidence.begin(),
        product + " " + release +
            (fits ? " fits this machine."
             : known
                 ? " does not fit this machine."
                 : " is no release that the tables know: it is older than all of them, or none."));
  }
  if (release.empty() || plan.fix.empty()) {
    if (best.release.empty()) {
      if (release.empty() && !releases.empty()) {
        std::string newest = releases[0];
        for (const std::string& name : releases)
          if (compare_versions(name, newest) > 0) newest = name;
        for (Finding& finding : consider(root, data, survey, env, id, newest, "").against)
          report.findings.push_back(finding);
      }
      plan.evidence.push_back("No release of " + product + " in the tables fits " +
                              survey.facts.get("gpu.name") + where + ".");
    } else {
      plan.evidence.push_back("The newest release in the tables that fits " +
                              survey.facts.get("gpu.name") + where + " is " + product + " " +
                              best.release +
                              (best.variant.empty() ? "" : " (" + best.variant + ")") + ".");
      plan.fix = command(env, id, best, data);
    }
  }
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.order < b.order; });
  bool gpu = survey.machine.gpu == Presence::kPresent || survey.machine.wsl;
  report.verdict = gpu ? "gpu-ok" : "cpu-only";
  auto badness = [](const std::string& verdict) {
    return verdict == "gpu-broken"     ? 3
           : verdict == "cpu-only"     ? 2
           : verdict == "gpu-degraded" ? 1
                                       : 0;
  };
  for (const Finding& finding : report.findings)
    if (badness(finding.verdict) > badness(report.verdict)) report.verdict = finding.verdict;
  if (release.empty() && best.release.empty() && gpu && report.findings.empty())
    report.verdict = "cpu-only";
  report.summary = report.findings.empty() ? plan.evidence[0] : report.findings[0].evidence[0];
  report.findings.push_back(std::move(plan));
  std::string verdict = report.verdict;
  report.inventory = inventory_lines(root, survey, [&](const std::string&) { return verdict; });
  for (const std::string& line : root.unread()) report.inventory.push_back(line);
  return report;
}

}  // namespace tracefire::doctor
