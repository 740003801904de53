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

/// Options of container programs before the sub-command that take the next word as their value.
bool takes_value(const std::string& word) {
  static constexpr std::array<std::string_view, 22> kNames = {"--context",
                                                              "-c",
                                                              "--config",
                                                              "--host",
                                                              "-H",
                                                              "--log-level",
                                                              "-l",
                                                              "--tlscacert",
                                                              "--tlscert",
                                                              "--tlskey",
                                                              "--file",
                                                              "-f",
                                                              "--profile",
                                                              "--env-file",
                                                              "-p",
                                                              "--project-name",
                                                              "--project-directory",
                                                              "--root",
                                                              "--namespace",
                                                              "-n",
                                                              "--connection",
                                                              "--address"};
  return std::find(kNames.begin(), kNames.end(), word) != kNames.end();
}

/// Index of the next sub-command from `first` on: the first word that is no option; the size of the
/// command where there is none.
size_t sub_command(const std::vector<std::string>& command, size_t first) {
  for (size_t i = first; i < command.size(); ++i) {
    if (command[i].empty() || command[i][0] != '-') return i;
    if (takes_value(command[i])) ++i;
  }
  return command.size();
}

bool holds(const std::vector<std::string>& command, std::initializer_list<std::string_view> texts) {
  return std::any_of(command.begin(), command.end(), [&](const std::string& word) {
    return std::any_of(texts.begin(), texts.end(),
                       [&](std::string_view text) { return word.find(text) != std::string::npos; });
  });
}

/// Under SELinux a container reads nothing that is not labelled for it.
bool has_selinux() { return access("/sys/fs/selinux/enforce", F_OK) == 0; }

void insert(std::vector<std::string>& command, size_t after,
            const std::vector<std::string>& options) {
  command.insert(command.begin() + static_cast<std::ptrdiff_t>(after) + 1, options.begin(),
                 options.end());
}

constexpr char kContainerNote[] =
    "the container's processes are no children of this one: their CPU time is known from their own "
    "records alone. Inside, glibc 2.34 or newer is needed and a user that may write the records: "
    "root or the one that started this";
constexpr char kPrivilegeNote[] =
    "where CUPTI says that privileges are missing: the driver's option "
    "NVreg_RestrictProfilingToAdminUsers=0 on the host, or --cap-add SYS_ADMIN for the container";

WrappedCommand wrap_docker(const std::vector<std::string>& command, const TracePlan& plan) {
  WrappedCommand out{command, {}};
  size_t run = sub_command(command, 1);
  bool compose = base_name(command[0]) == "docker-compose";
  if (run < command.size() && (command[run] == "compose" || command[run] == "container")) {
    compose = command[run] == "compose";
    run = sub_command(command, run + 1);
  }
  const std::string word = run < command.size() ? command[run] : "";
  if (word != "run" && (compose || word != "create")) {
    out.lost = true;
    out.notes.push_back("only `" + base_name(command[0]) + (compose ? " compose" : "") +
                        " run` can be given the tracing; see --print-env for the variables");
    return out;
  }
  std::vector<std::string> options = {"--volume", plan.library + ":" + kInsideLibrary + ":ro",
                                      "--volume", plan.folder + ":" + kInsideRecords};
  for (const auto& [name, value] : inside_variables(plan)) {
    options.push_back("--env");
    options.push_back(name + "=" + value);
  }
  if (!compose && has_selinux() && !holds(command, {"label=disable", "label:disable"})) {
    options.push_back("--security-opt");
    options.push_back("label=disable");
  }
  insert(out.command, run, options);
  out.lost = true;
  out.notes.push_back(kContainerNote);
  out.notes.push_back(kPrivilegeNote);
  if (!compose && !holds(command, {"--gpus", "nvidia.com/gpu", "=nvidia", "--privileged"}) &&
      std::find(command.begin(), command.end(), "nvidia") == command.end()) {
    out.notes.push_back(
        "the container is given no GPU: add --gpus all (podman: --device "
        "nvidia.com/gpu=all)");
  }
  return out;
}

WrappedCommand wrap_apptainer(const std::vector<std::string>& command, const TracePlan& plan) {
  WrappedCommand out{command, {}};
  const size_t run = sub_command(command, 1);
  const std::string word = run < command.size() ? command[run] : "";
  if (word != "exec" && word != "run" && word != "shell") {
    out.lost = true;
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
  insert(out.command, run, options);
  out.lost = true;
  if (!holds(command, {"--nv"})) {
    out.notes.push_back("the container is given no GPU: add --nv");
  }
  return out;
}

/// What keeps variables from the program that it starts.
bool drops_variables(const std::string& name, const std::vector<std::string>& command) {
  static constexpr std::array<std::string_view, 10> kNames = {
      "sudo",        "su",      "doas",       "ssh",     "sbatch",
      "systemd-run", "runuser", "machinectl", "kubectl", "oc"};
  if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) return true;
  if (name == "env")
    return holds(command, {"--ignore-environment"}) ||
           (command.size() > 1 && (command[1] == "-i" || command[1] == "-"));
  if (name == "srun") return holds(command, {"--export=NONE", "--export=NIL"});
  return false;
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
  if (name == "docker" || name == "podman" || name == "nerdctl" || name == "docker-compose") {
    return wrap_docker(command, plan);
  }
  if (name == "apptainer" || name == "singularity") return wrap_apptainer(command, plan);
  WrappedCommand out{command, {}};
  if (drops_variables(name, command)) {
    out.lost = true;
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
  std::string mpi;
  std::string yaml;
  for (const auto& [name, value] : trace_variables(plan)) {
    exports += "export " + name + "=" + shell_word(value) + "\n";
    assignments += name + "=" + shell_word(value) + " ";
    commas += "," + name + "=" + value;
    mpi += "-x " + name + " ";
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
  out +=
      "# mpirun (Open MPI) passes named variables to other hosts, srun passes all:\n#   mpirun " +
      mpi + program + "\n#   srun --export=ALL " + program + "\n";
  std::string volumes;
  for (const std::string& word : wrap_docker({"docker", "run"}, plan).command) {
    volumes += shell_word(word) + " ";
  }
  out += "# docker, and podman with its own name:\n#   " + volumes + "--gpus all IMAGE " + program +
         "\n";
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
