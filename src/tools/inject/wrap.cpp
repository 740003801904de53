// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/wrap.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>

namespace tracefire::inject {
namespace {

constexpr char kInsideLibrary[] = "/opt/tracefire-prove/libtracefire_inject.so";
constexpr char kInsideRecords[] = "/opt/tracefire-prove/records";

std::string base_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

/// Variables as they are inside a container, where only the library and the folder are known.
Variables inside_variables(const TracePlan& plan) {
  TracePlan inside = plan;
  inside.library = kInsideLibrary;
  inside.folder = kInsideRecords;
  inside.cupti.clear();
  Variables list = trace_variables(inside);
  list.emplace_back("TRACEFIRE_PROVE_OWNER", std::to_string(geteuid()));
  return list;
}

/// Index of the sub-command, the first word that is one of `names`; 0 where there is none.
size_t sub_command(const std::vector<std::string>& command,
                   std::initializer_list<const char*> names) {
  for (size_t i = 1; i < command.size(); ++i) {
    for (const char* name : names) {
      if (command[i] == name) return i;
    }
  }
  return 0;
}

WrappedCommand wrap_docker(const std::vector<std::string>& command, const TracePlan& plan) {
  WrappedCommand out{command, {}};
  const size_t run = sub_command(command, {"run", "create", "compose", "exec", "start"});
  if (run == 0 || (command[run] != "run" && command[run] != "create")) {
    out.notes.push_back("only `" + base_name(command[0]) +
                        " run` can be given the tracing; see --print-env for the variables");
    return out;
  }
  std::vector<std::string> options = {"--volume", plan.library + ":" + kInsideLibrary + ":ro",
                                      "--volume", plan.folder + ":" + kInsideRecords};
  for (const auto& [name, value] : inside_variables(plan)) {
    options.push_back("--env");
    options.push_back(name + "=" + value);
  }
  out.command.insert(out.command.begin() + static_cast<std::ptrdiff_t>(run) + 1, options.begin(),
                     options.end());
  out.notes.push_back(
      "the container's processes are no children of this one: their CPU time is known from their "
      "own records alone; glibc 2.34 or newer is needed inside");
  return out;
}

WrappedCommand wrap_apptainer(const std::vector<std::string>& command, const TracePlan& plan) {
  WrappedCommand out{command, {}};
  const size_t run = sub_command(command, {"exec", "run", "shell", "instance"});
  if (run == 0 || command[run] == "instance") {
    out.notes.push_back("only exec, run and shell can be given the tracing; see --print-env");
    return out;
  }
  std::vector<std::string> options = {
      "--bind", plan.library + ":" + kInsideLibrary + ":ro," + plan.folder + ":" + kInsideRecords};
  std::string variables;
  for (const auto& [name, value] : inside_variables(plan)) {
    variables += (variables.empty() ? "" : ",") + name + "=" + value;
  }
  options.push_back("--env");
  options.push_back(variables);
  out.command.insert(out.command.begin() + static_cast<std::ptrdiff_t>(run) + 1, options.begin(),
                     options.end());
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + shell_word(word);
  return text;
}

}  // namespace

std::string shell_word(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./:=,+@%").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

WrappedCommand wrap_command(const std::vector<std::string>& command, const TracePlan& plan) {
  const std::string name = base_name(command.front());
  if (name == "docker" || name == "podman" || name == "nerdctl") {
    return wrap_docker(command, plan);
  }
  if (name == "apptainer" || name == "singularity") return wrap_apptainer(command, plan);
  WrappedCommand out{command, {}};
  static constexpr std::array<std::string_view, 7> kLost = {
      "sudo", "su", "ssh", "sbatch", "kubectl", "systemd-run", "doas"};
  if (std::find(kLost.begin(), kLost.end(), name) != kLost.end()) {
    out.notes.push_back(name +
                        " does not pass the variables of the tracing on; see --print-env for the "
                        "lines that do");
  }
  return out;
}

std::string print_env(const TracePlan& plan, const std::vector<std::string>& command) {
  const std::string program = command.empty() ? "PROGRAM" : joined(command);
  std::string exports;
  std::string assignments;
  std::string commas;
  std::string yaml;
  for (const auto& [name, value] : trace_variables(plan)) {
    exports += "export " + name + "=" + shell_word(value) + "\n";
    assignments += name + "=" + shell_word(value) + " ";
    commas += "," + name + "=" + value;
  }
  for (const auto& [name, value] : inside_variables(plan)) {
    yaml += "#     - {name: " + name + ", value: \"" + value + "\"}\n";
  }
  const std::string owner = "TRACEFIRE_PROVE_OWNER=" + std::to_string(geteuid());
  std::string out = "# Variables of a shell in which programs are recorded:\n" + exports;
  out += "# sudo keeps no variables:\n#   sudo env " + assignments + owner + " " + program + "\n";
  out +=
      "# ssh, where the other host has this library and folder at the same place:\n#   ssh HOST " +
      shell_word("mkdir -m 700 -p " + shell_word(plan.folder) + " && env " + assignments +
                 program) +
      "\n#   scp 'HOST:" + plan.folder + "/p*' " + shell_word(plan.folder) + "\n";
  out += "# Slurm, the folder on a file system that all nodes share:\n#   sbatch --export=ALL" +
         commas + " SCRIPT\n";
  out +=
      "# kubectl: in the container of the pod, with volumes for library and records:\n#   env:\n" +
      yaml + "#   volumeMounts:\n#     - {name: prove-library, mountPath: " + kInsideLibrary +
      ", readOnly: true}\n#     - {name: prove-records, mountPath: " + kInsideRecords + "}\n";
  out += "# Afterwards:\n#   tracefire prove --from " + shell_word(plan.folder) + "\n";
  return out;
}

}  // namespace tracefire::inject
