// SPDX-License-Identifier: Apache-2.0
// `tracefire doctor`: why a GPU is not used. The doctor reads its arguments itself, so that it
// answers in the form that was asked for whatever is wrong with them.
#include "tools/doctor/doctor.h"

#include <sstream>

#include "tools/cli/command.h"
#include "tools/doctor/report.h"

namespace tracefire::cli {
namespace {

/// What the pages tell; the values are read by the doctor.
void describe_options(CLI::App& app) {
  const auto value = [&app](const char* name, const char* type, const char* text) {
    app.add_option_function<std::string>(
           name, [](const std::string&) {}, text)
        ->type_name(type);
  };
  const auto flag = [&app](const char* name, const char* text) {
    app.add_flag_function(
        name, [](int64_t) {}, text);
  };
  app.add_option_function<std::vector<std::string>>(
      "ACTION", [](const std::vector<std::string>&) {},
      "plan: says, with --framework, what fits this machine before it is installed; diff A B: "
      "compares two folders, reports or manifests");
  value("--root", "DIRECTORY", "reads a mounted image, a chroot or a container in the place of /");
  value("--env", "VARIABLE=VALUE", "with --root: its environment; may be repeated");
  value("--log", "FILE", "reads a framework's saved output too; - for standard input");
  value("--python", "PATH", "reads one environment: its interpreter or its folder");
  value(
      "--framework", "NAME",
      "asks about tensorflow, torch, jax, keras or tracefire; with plan also a release, a range or "
      "a build: NAME==VERSION, NAME>=A,<B, NAME+BUILD");
  flag("--no-tests", "does not try out the GPU");
  flag("--json", "prints one JSON document (schema tracefire.doctor/1) at any exit status");
  flag("--html", "prints the report as one HTML file, without scripts");
  value("-o,--output", "FILE", "writes the report there, readable by its owner alone");
  value("--data", "FILE", "newer version tables and rules");
}

bool wants_json(const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), "--json") != words.end();
}

int run(Context& context) {
  std::ostringstream report, talk;
  const int status = doctor::doctor_main(context.words, report, talk, context.console.look());
  context.console.print(report.str());
  const std::string said = talk.str();
  if (status == kWrongUsage && !said.empty()) wrong_usage(said.substr(0, said.find('\n')));
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) context.console.say(line);
  return status;
}

}  // namespace

Command doctor_command() {
  Command command;
  command.name = "doctor";
  command.summary = "finds out why a GPU is not used, and what to do about it";
  command.text = {
      "Reads this machine, or with --root any file tree: every TensorFlow, PyTorch, JAX, Keras and "
      "Tracefire, the CUDA libraries, the driver, the devices and their permissions, containers. "
      "It joins them into one cause with one fix, then names what else was found, each with its "
      "evidence. On a live machine it also tries the GPU out, each trial in a process of its own. "
      "It changes nothing and needs neither Python nor a GPU.",
      "The exit status is 0 for gpu-ok, 1 for gpu-broken, 3 for gpu-degraded, 4 for cpu-only, 2 "
      "for wrong arguments; of diff 0 where both are the same, 1 where they differ. With --json, "
      "standard output is one document at each of them."};
  command.examples = {
      {"tracefire doctor", "This machine, with trials of the GPU."},
      {"tracefire doctor --framework torch --python ~/venv", "One framework in one environment."},
      {"tracefire doctor plan --framework tensorflow==2.21",
       "What has to be installed here for it to use the GPU."},
      {"tracefire doctor plan --framework 'torch>=2.4,<2.9'",
       "The newest release of a range that fits, in any of its builds."},
      {"tracefire doctor diff here.json there.json",
       "Two saved reports: what can change results or speed."},
      {"python train.py 2>&1 | tracefire doctor --log -", "With what a program said."},
      {"tracefire doctor --root image --env LD_LIBRARY_PATH=/opt/cuda --json",
       "A file tree, for programs."}};
  command.schema = "tracefire.doctor/1";
  command.words = {{"ACTION", {"plan", "diff"}},
                   {"NAME", {"tensorflow", "torch", "jax", "keras", "tracefire"}}};
  command.settings = UseOfSettings::kWithoutWrongOnes;
  command.reads_own_words = true;
  command.refusal = [](const std::vector<std::string>& words, const std::string& message) {
    if (!wants_json(words)) return std::string();
    doctor::Report report;
    report.verdict = "unknown";
    report.summary = message;
    return doctor::as_json(doctor::made_safe(report));
  };
  command.define = [](CLI::App& app) -> Action {
    describe_options(app);
    return run;
  };
  return command;
}

}  // namespace tracefire::cli
