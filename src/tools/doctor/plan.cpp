// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/plan.h"

#include "tools/doctor/fix.h"
#include "tools/doctor/inventory.h"
#include "tools/doctor/plan_candidate.h"
#include "tools/doctor/text.h"
#include "tools/doctor/version.h"

namespace tracefire::doctor {

namespace {

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

std::string range_of(const Candidate& candidate) {
  return candidate.newest.empty() ? candidate.least + " or newer"
                                  : candidate.least + "-" + candidate.newest;
}

/// "PyTorch 2.8.0 (cu126)", "Keras 3.15.1 with JAX 0.11.2 (cuda12)".
std::string named(const Candidate& candidate) {
  std::string out = product_of(candidate.id) + " " + candidate.version;
  std::string build = candidate.build;
  if (candidate.id == "keras") {
    out += " with " + product_of(candidate.build) + " " + candidate.backend_release;
    build = candidate.backend_build;
  }
  return build.empty() ? out : out + " (" + build + ")";
}

/// Makes the report of one question.
class Plan {
 public:
  Plan(const Root& root, const Data& data, const Survey& survey, const std::string& id,
       const PlanSpec& spec)
      : data_(data),
        survey_(survey),
        id_(id),
        product_(product_of(id)),
        spec_(spec),
        planner_(root, data, survey, chosen_environment(root, survey)),
        any_python_(root, data, survey, without_python(planner_.env())) {}

  void answer(Report* report);

 private:
  static Environment without_python(Environment env) {
    env.python.clear();
    return env;
  }
  std::string tables() const { return "table dated " + text_of(data_.releases(), "dated"); }
  Finding finding(const char* kind, std::string sentence) const;
  void unknown_release();
  void unknown_build(const std::string& version);
  void refuse(const Candidate& wanted);
  void refuse_beside(const Candidate& wanted);
  std::string python_fix(const Candidate& wanted, bool only_python) const;
  void say_best();
  Candidate wanted_release();
  void say_seen();

  const Data& data_;
  const Survey& survey_;
  const std::string id_, product_;
  const PlanSpec& spec_;
  Planner planner_, any_python_;
  Candidate best_;                 ///< the newest that fits, whatever was asked for
  Candidate alone_;                ///< the newest that fits in an environment of its own
  std::vector<Finding> findings_;  ///< what speaks against what was asked for
  std::vector<std::string> told_;  ///< sentences of the plan
  std::string fix_;
};

Finding Plan::finding(const char* kind, std::string sentence) const {
  Finding out;
  out.kind = kind;
  out.severity = "error";
  out.confidence = 0.9;
  out.verdict = "cpu-only";
  out.order = 102;
  out.evidence = {std::move(sentence)};
  if (!best_.version.empty())
    out.fix = "Install the newest release that fits: " + planner_.command(best_, planner_.pip());
  return out;
}

void Plan::unknown_release() {
  const std::vector<KnownRelease> all = planner_.releases(id_);
  std::string sentence = spec_.exact ? product_ + " " + spec_.shown + " is an unknown release"
                                     : "No known release of " + product_ + " is " + spec_.shown;
  std::vector<std::string> near;
  const std::string minor = leading(spec_.shown, 2);
  for (const KnownRelease& one : all)
    if (spec_.exact && leading(one.version, 2) == minor && near.size() < 8)
      near.push_back(one.version);
  if (!near.empty()) sentence += "; of " + minor + " there are " + join(near, ", ");
  sentence += ": the newest known is " + all.front().version + ", the oldest " +
              all.back().version + " (" + tables() + ").";
  findings_.push_back(finding("release-unknown", sentence));
}

void Plan::unknown_build(const std::string& version) {
  const std::vector<std::string> builds = planner_.builds(id_, version);
  std::string sentence = product_ + " " + version + " has no build " + spec_.build;
  sentence += builds.size() == 1 && builds[0].empty() ? "; it has one build alone"
                                                      : "; it has " + join(builds, ", ");
  findings_.push_back(finding("release-unknown", sentence + " (" + tables() + ")."));
}

std::string Plan::python_fix(const Candidate& wanted, bool only_python) const {
  const std::string as_it_is = best_.version.empty() ? "" : planner_.command(best_, planner_.pip());
  if (!only_python && !as_it_is.empty()) return "Install the newest release that fits: " + as_it_is;
  std::string python = wanted.newest;
  if (auto it = data_.versions().find("python_best"); it != data_.versions().end())
    if (const std::string good = text_of(*it, id_);
        !good.empty() && (python.empty() || compare_versions(good, python) < 0) &&
        compare_versions(good, wanted.least) >= 0)
      python = good;
  const std::string folder = "~/" + id_ + "-env";
  return "Make an environment with Python " + python + ": python" + python + " -m venv " + folder +
         " && " + planner_.command(wanted, folder + "/bin/python -m pip") +
         (as_it_is.empty() ? ""
                           : "; or install the newest release that fits as it is: " + as_it_is);
}

/// A finding for each layer that does not fit, and one sentence that names all of them.
void Plan::refuse(const Candidate& wanted) {
  std::vector<std::string> layers;
  bool only_python = true;
  for (const Obstacle& obstacle : wanted.against) only_python &= obstacle.curable;
  if (!wanted.python_fits) {
    const std::string& python = planner_.env().python;
    layers.push_back("Python " + python + " (its wheels are for Python " + range_of(wanted) + ")");
    const bool high =
        !wanted.newest.empty() && compare_versions(leading(python, 2), wanted.newest) > 0;
    Finding out = finding(high ? "python-too-new" : "python-too-old",
                          product_ + " " + wanted.version + " has wheels for Python " +
                              range_of(wanted) + "; this one is " + python + ".");
    out.fix = python_fix(wanted, only_python);
    findings_.push_back(std::move(out));
  }
  for (const Obstacle& obstacle : wanted.against) {
    layers.push_back(obstacle.words);
    Finding out = obstacle.finding;
    if (!best_.version.empty()) {
      const std::string command = planner_.command(best_, planner_.pip());
      const bool keep = obstacle.curable && only_python;
      out.fix = keep ? out.fix + "; or install the newest release that fits as it is: " + command
                     : "Install the newest release that fits: " + command;
    }
    findings_.push_back(std::move(out));
  }
  for (const std::string& clash : wanted.clashes)
    layers.push_back("the environment " + planner_.env().prefix + " (" + clash + ")");
  std::string all;
  for (size_t i = 0; i < layers.size(); ++i)
    all += (i == 0 ? "" : i + 1 == layers.size() ? " and " : ", ") + layers[i];
  told_.push_back(named(wanted) + " does not fit this machine. What does not fit: " + all + ".");
}

/// The machine would do; what is in the environment does not.
void Plan::refuse_beside(const Candidate& wanted) {
  const std::string where = planner_.env().prefix;
  Finding out = finding("two-frameworks", named(wanted) + " cannot share " + where + ": " +
                                              join(wanted.clashes, "; ") + ".");
  out.order = 110;
  fix_ = "Install it in an environment of its own: " +
         planner_.own_environment(wanted, planner_.env().python);
  if (!best_.version.empty())
    fix_ += "; or install the newest release that fits beside what is there: " +
            planner_.command(best_, planner_.pip());
  out.fix = fix_;
  told_.push_back(named(wanted) + " fits this machine, but not the environment " + where + ": " +
                  join(wanted.clashes, "; ") + ".");
  findings_.push_back(std::move(out));
}

void Plan::say_best() {
  const std::string& python = planner_.env().python;
  std::string here = survey_.facts.get("gpu.name");
  if (here.empty()) here = "this machine";
  if (const std::string driver = survey_.facts.get("driver.version"); !driver.empty())
    here += (python.empty() ? " and driver " : ", driver ") + driver;
  if (!python.empty()) here += " and Python " + python;
  if (!best_.version.empty()) {
    told_.push_back("The newest release in the tables that fits " + here + " is " + named(best_) +
                    ".");
    fix_ = planner_.command(best_, planner_.pip());
    return;
  }
  if (!alone_.version.empty()) {
    told_.push_back("The newest release in the tables that fits " + here + " is " + named(alone_) +
                    ", in an environment of its own: " + join(alone_.clashes, "; ") + ".");
    fix_ = planner_.own_environment(alone_, python);
    return;
  }
  told_.push_back("No release of " + product_ + " in the tables fits " + here + ".");
  Candidate other = any_python_.newest(id_, "", "");
  if (python.empty() || other.version.empty()) return;
  told_.push_back("With another Python " + named(other) + " fits: its wheels are for Python " +
                  range_of(other) + ".");
  fix_ = python_fix(other, true);
}

/// The release that is taken for what was asked.
Candidate Plan::wanted_release() {
  const std::string build = id_ == "keras" ? "" : spec_.build;
  Candidate fitting;
  if (!spec_.exact || !build.empty()) {
    fitting = planner_.newest(id_, spec_.conditions, build);
  } else {
    // One release: what pip installs of it is its default build.
    for (const KnownRelease& release : planner_.releases(id_)) {
      if (!meets(release.version, spec_.conditions)) continue;
      Candidate one = planner_.consider(id_, release, planner_.builds(id_, release.version)[0]);
      if (one.fits()) return one;
      if (one.fits_machine() && fitting.version.empty()) fitting = std::move(one);
    }
  }
  if (!fitting.version.empty()) return fitting;
  if (!spec_.exact || !build.empty())  // the machine would do
    if (Candidate one = planner_.newest(id_, spec_.conditions, build, true); !one.version.empty())
      return one;
  // None fits: the newest for this Python says most, else the newest of all.
  Candidate newest;
  for (const KnownRelease& release : planner_.releases(id_)) {
    if (!meets(release.version, spec_.conditions)) continue;
    const std::vector<std::string> builds = planner_.builds(id_, release.version);
    const std::string& one = build.empty() ? builds[0] : build;
    if (std::find(builds.begin(), builds.end(), one) == builds.end()) continue;
    Candidate candidate = planner_.consider(id_, release, one);
    if (candidate.python_fits) return candidate;
    if (newest.version.empty()) newest = std::move(candidate);
  }
  return newest;
}

void Plan::say_seen() {
  if (survey_.machine.gpu == Presence::kPresent || survey_.machine.wsl) return;
  told_.push_back(survey_.machine.gpu == Presence::kAbsent
                      ? "This machine has no NVIDIA GPU: it will run on the CPU."
                      : "No NVIDIA GPU was seen, so whether it fits one could not be told.");
}

void Plan::answer(Report* report) {
  best_ = planner_.newest(id_, "", "");
  alone_ = planner_.newest(id_, "", "", true);
  const std::vector<KnownRelease> all = planner_.releases(id_);
  auto first = std::find_if(all.begin(), all.end(), [&](const KnownRelease& one) {
    return meets(one.version, spec_.conditions);
  });
  Candidate wanted = first == all.end() ? Candidate() : wanted_release();
  if (first == all.end()) {
    unknown_release();
    told_.push_back(findings_.back().evidence[0]);
  } else if (wanted.version.empty()) {
    unknown_build(first->version);
    told_.push_back(findings_.back().evidence[0]);
  } else if (wanted.fits()) {
    std::string sentence = named(wanted) + " fits this machine";
    if (!spec_.shown.empty() && !spec_.exact) sentence += ", the newest that is " + spec_.shown;
    told_.push_back(sentence + ".");
    fix_ = planner_.command(wanted, planner_.pip());
    if (wanted.id == "tensorflow") {
      const Json* entry = data_.release("tensorflow", wanted.version);
      if (entry != nullptr && text_of(*entry, "pip_libs") == "unreliable")
        told_.push_back("TensorFlow " + leading(wanted.version, 2) +
                        " does not look into its environment's folders nvidia/*/lib: put them into "
                        "LD_LIBRARY_PATH.");
    }
    if (spec_.conditions.empty() && compare_versions(alone_.version, wanted.version) > 0)
      told_.push_back("In an environment of its own " + named(alone_) +
                      " fits too: " + planner_.own_environment(alone_, planner_.env().python) +
                      " (here " + join(alone_.clashes, "; ") + ").");
  } else if (wanted.fits_machine()) {
    // Another build of the very release may share.
    Candidate other = planner_.newest(id_, spec_.conditions, spec_.build);
    if (spec_.exact && spec_.build.empty() && other.version == wanted.version) {
      told_.push_back(named(wanted) + " does not fit the environment " + planner_.env().prefix +
                      ": " + join(wanted.clashes, "; ") +
                      ". Another build of it fits: " + named(other) + ".");
      fix_ = planner_.command(other, planner_.pip());
      findings_.push_back(finding("two-frameworks", told_.back()));
      findings_.back().order = 110;
      findings_.back().fix = "Install the build that fits: " + fix_;
    } else {
      refuse_beside(wanted);
    }
  } else if (spec_.conditions.empty() && spec_.build.empty()) {
    // Nothing fits at all: what speaks against the newest says why.
    refuse(wanted);
    told_.clear();
  } else if (!wanted.needs_known && wanted.python_fits) {
    findings_.push_back(finding("release-unknown", "The tables do not know which CUDA and GPUs " +
                                                       product_ + " " + wanted.version +
                                                       " was built for (" + tables() + ")."));
    findings_.back().severity = "warning";
    findings_.back().verdict = "gpu-degraded";
    told_.push_back(findings_.back().evidence[0]);
  } else {
    refuse(wanted);
    Candidate other = planner_.newest(id_, spec_.conditions, "");
    if (!other.version.empty()) {
      told_.push_back("Another build of it fits: " + named(other) + ".");
      best_ = other;
      fix_ = planner_.command(other, planner_.pip());
      for (Finding& one : findings_) one.fix = "Install the build that fits: " + fix_;
    }
  }
  if (fix_.empty()) say_best();
  if (fix_.empty() && !findings_.empty())
    fix_ = findings_[0].fix;  // nothing fits: what to do first
  say_seen();
  Finding plan;
  plan.kind = "plan";
  plan.severity = "info";
  plan.confidence = 0.85;
  plan.order = 1000;
  const Facts facts = planner_.facts();
  for (std::string& sentence : told_) sentence = fill_fix(sentence, facts);
  for (Finding& one : findings_) one.fix = fill_fix(one.fix, facts);
  plan.evidence = std::move(told_);
  plan.fix = fill_fix(fix_, facts);
  report->summary = plan.evidence[0];
  for (Finding& one : findings_) report->findings.push_back(std::move(one));
  report->findings.push_back(std::move(plan));
}

}  // namespace

Report make_plan(const Root& root, const Data& data, Machine machine, const std::string& id,
                 const PlanSpec& spec, const std::string& python) {
  Survey survey = make_survey(root, data, std::move(machine), {python, "", ""});
  Report report;
  for (Finding& finding : settle(apply_rules(data, "machine", survey.facts, "", "")))
    if (finding.fault()) report.findings.push_back(std::move(finding));
  const std::string machine_fault =
      report.findings.empty() ? "" : report.findings[0].evidence[0] + " ";
  Plan(root, data, survey, id, spec).answer(&report);
  report.summary = machine_fault + report.summary;
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.order < b.order; });
  const bool gpu = survey.machine.gpu == Presence::kPresent || survey.machine.wsl;
  report.verdict = gpu ? "gpu-ok" : "cpu-only";
  auto badness = [](const std::string& verdict) {
    return verdict == "gpu-broken"     ? 3
           : verdict == "cpu-only"     ? 2
           : verdict == "gpu-degraded" ? 1
                                       : 0;
  };
  for (const Finding& finding : report.findings)
    if (badness(finding.verdict) > badness(report.verdict)) report.verdict = finding.verdict;
  std::string verdict = report.verdict;
  report.inventory = inventory_lines(root, survey, [&](const std::string&) { return verdict; });
  for (const std::string& line : root.unread()) report.inventory.push_back(line);
  return report;
}

}  // namespace tracefire::doctor
