// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/survey.h"

#include "tools/doctor/derive.h"
#include "tools/doctor/inventory.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

int badness(const std::string& verdict) {
  return verdict == "gpu-broken"     ? 3
         : verdict == "cpu-only"     ? 2
         : verdict == "gpu-degraded" ? 1
                                     : 0;
}

std::string worse(const std::string& a, const std::string& b) {
  return badness(b) > badness(a) ? b : a;
}

/// A build for ROCm that uses this machine's AMD GPU, in the environments that count; null where
/// there is none. `environment` is the one that is asked about, "" for all.
const Framework* rocm_in_use(const Survey& survey, const std::string& environment) {
  if (survey.machine.gpu == Presence::kPresent || !survey.facts.has("gpu.amd") ||
      !survey.facts.has("kfd"))
    return nullptr;
  bool any_active = false;
  for (const Surveyed& surveyed : survey.environments) any_active |= surveyed.env.active;
  for (const Surveyed& surveyed : survey.environments)
    for (const Framework& framework : surveyed.frameworks)
      if (framework.build == Build::kRocm &&
          (!environment.empty() ? surveyed.env.prefix == environment
           : any_active         ? surveyed.env.active
                                : surveyed.env.stray.empty()))
        return &framework;
  return nullptr;
}

/// What holds where nothing is found: a machine without a GPU computes on the CPU.
std::string plain_verdict(const Survey& survey, const std::string& environment) {
  return survey.machine.gpu == Presence::kPresent || survey.machine.wsl ||
                 rocm_in_use(survey, environment) != nullptr
             ? "gpu-ok"
             : "cpu-only";
}

std::string verdict_of(const std::vector<Finding>& findings, const Survey& survey,
                       const std::string& environment) {
  std::string verdict = plain_verdict(survey, environment);
  for (const Finding& finding : findings)
    if (environment.empty() ? finding.fault()
                            : (finding.environment.empty() && finding.fault()) ||
                                  (finding.environment == environment && finding.own_fault()))
      verdict = worse(verdict, finding.verdict.empty() ? "gpu-degraded" : finding.verdict);
  return verdict;
}

std::string summary_of(const Survey& survey, const std::vector<Finding>& findings,
                       const std::string& verdict) {
  const Finding* first = findings.empty() || !findings[0].fault() ? nullptr : &findings[0];
  if (first != nullptr) {
    size_t more = 0;
    for (const Finding& finding : findings) more += finding.fault() && finding.kind != first->kind;
    std::string tail = more == 0   ? ""
                       : more == 1 ? " One more fault is listed below."
                                   : " " + std::to_string(more) + " more faults are listed below.";
    return first->evidence[0] + tail;
  }
  if (const Framework* rocm = rocm_in_use(survey, ""))
    return "No fault was found: the GPU is AMD's, and " + rocm->product + " " + rocm->version +
           " is built for it (ROCm).";
  if (verdict == "cpu-only" && survey.facts.has("gpu.amd"))
    return "The GPU is AMD's, and no framework that is built for it (ROCm) was found, so "
           "everything runs on the CPU; nothing is at fault.";
  if (verdict == "cpu-only" && survey.machine.platform == "darwin")
    return "There is no CUDA for macOS, so nothing runs on an NVIDIA GPU; nothing is at fault.";
  if (verdict == "cpu-only")
    return "No NVIDIA GPU was found, so everything runs on the CPU; nothing is at fault.";
  std::string ready;
  bool any_active = false;
  for (const Surveyed& surveyed : survey.environments) any_active |= surveyed.env.active;
  for (const Surveyed& surveyed : survey.environments)
    for (const Framework& framework : surveyed.frameworks)
      if (framework.build == Build::kGpu &&
          (any_active ? surveyed.env.active : surveyed.env.stray.empty()))
        ready += (ready.empty() ? "" : ", ") + framework.product + " " + framework.version;
  return ready.empty() ? "The GPU's driver is in order; no framework with GPU support is installed."
                       : "No fault was found: the driver is in order, and " + ready + " can use " +
                             survey.facts.get("gpu.name") + ".";
}

}  // namespace

Survey make_survey(const Root& root, const Data& data, Machine machine, const Question& question) {
  Survey survey;
  survey.machine = std::move(machine);
  EnvironmentSearch search = find_environments(root, survey.machine, question.python);
  if (!search.incomplete.empty())
    root.note_unread("The whole tree", search.incomplete.substr(0, search.incomplete.size() - 1));
  // A wheel for another system: the tree is of that system, whatever else it lacks. A running
  // machine knows its own.
  for (const Environment& env : root.live() ? std::vector<Environment>() : search.environments)
    for (const auto& [name, dist] : env.dists) {
      if (name == "tensorflow-intel" || contains(dist.wheel, "-win_"))
        survey.machine.platform = "windows";
      if (name == "tensorflow-macos" || contains(dist.wheel, "-macosx_"))
        survey.machine.platform = "darwin";
    }
  for (Environment& env : search.environments) {
    Surveyed surveyed;
    surveyed.frameworks = find_frameworks(root, survey.machine, data, env);
    surveyed.env = std::move(env);
    survey.environments.push_back(std::move(surveyed));
  }
  // What a tool brings for itself counts where nothing else has a framework.
  bool own = false;
  for (const Surveyed& surveyed : survey.environments)
    own |= !surveyed.frameworks.empty() && surveyed.env.tool.empty() && surveyed.env.stray.empty();
  for (Surveyed& surveyed : survey.environments)
    if (Environment& env = surveyed.env; own && !env.tool.empty() && env.stray.empty())
      env.stray = "It is the private environment of one tool (" + env.tool + ").";
  std::vector<Environment> environments;
  for (const Surveyed& surveyed : survey.environments) environments.push_back(surveyed.env);
  survey.facts = machine_facts(root, survey.machine, data, environments);
  request_facts(root, survey.machine, data, survey.environments, question.framework,
                question.release, &survey.facts);
  return survey;
}

Report make_report(const Root& root, const Data& data, const Survey& survey,
                   const Question& question, std::vector<Finding> live_findings,
                   std::vector<std::string> live_lines) {
  Report report;
  std::vector<Finding> findings = apply_rules(data, "machine", survey.facts, "", "");
  bool any_active = false;
  for (const Surveyed& surveyed : survey.environments) any_active |= surveyed.env.active;
  auto add = [&](std::vector<Finding> more, bool counts) {
    for (Finding& finding : more) {
      if (!counts) {
        finding.own_severity = finding.severity;
        finding.severity = "info";
      }
      findings.push_back(std::move(finding));
    }
  };
  for (const Surveyed& surveyed : survey.environments) {
    Facts env_facts = environment_facts(survey.facts, surveyed.env, surveyed.frameworks);
    python_facts(data, surveyed, &env_facts);
    const bool stray = !surveyed.env.stray.empty() && !surveyed.env.active;
    bool counts = surveyed.env.active || (!any_active && !stray);
    // A kernel that runs a build without CUDA: the environment that has CUDA was meant.
    if (survey.facts.get("kernel.cpu") == surveyed.env.prefix) counts = false;
    auto found = [&](std::vector<Finding> more, bool decides) {
      for (Finding& finding : more)
        if (stray && surveyed.env.tool.empty()) finding.fix.clear();  // nothing is to be run there
      add(std::move(more), decides);
    };
    found(apply_rules(data, "environment", env_facts, surveyed.env.prefix, ""), counts);
    for (const Framework& framework : surveyed.frameworks)
      if (framework.id == "keras")  // asked for Keras: what it computes with counts too
        keras_facts(root, survey.machine, data, surveyed.env, surveyed.frameworks, framework,
                    &env_facts);
    for (const Framework& framework : surveyed.frameworks) {
      Facts facts = framework_facts(env_facts, root, survey.machine, data, surveyed.env,
                                    surveyed.frameworks, framework);
      facts.set("fw.install", install_words(framework.id));
      if (std::string newest = env_facts.get("old." + framework.id); !newest.empty())
        facts.set("fw.python_old", newest, env_facts.evidence("old." + framework.id));
      // Where no backend is named, the program takes one of those that are there.
      const char* backend = env_facts.has("keras.unset") ? "keras.other" : "keras.backend";
      bool asked = question.framework.empty() || question.framework == framework.id ||
                   (question.framework == "keras" && framework.id == env_facts.get(backend));
      found(apply_rules(data, "framework", facts, surveyed.env.prefix, framework.id),
            counts && asked);
    }
  }
  // Where the device layer has a known fault, a trial that fails is its consequence.
  bool explained = false;
  for (const Finding& finding : settle(findings))
    explained |= finding.fault() && finding.environment.empty() &&
                 (finding.verdict == "gpu-broken" || finding.verdict == "cpu-only");
  add(std::move(live_findings), !explained);
  report.findings = settle(std::move(findings));
  report.verdict = verdict_of(report.findings, survey, "");
  report.summary = summary_of(survey, report.findings, report.verdict);
  auto verdict_for = [&](const std::string& prefix) {
    return verdict_of(report.findings, survey, prefix);
  };
  report.inventory = inventory_lines(root, survey, verdict_for);
  report.inventory.insert(report.inventory.end(), live_lines.begin(), live_lines.end());
  for (const std::string& line : root.unread()) report.inventory.push_back(line);
  return report;
}

}  // namespace tracefire::doctor
