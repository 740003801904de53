// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/wrap.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "tools/inject/prefix.h"

namespace tracefire::inject {
namespace {

namespace fs = std::filesystem;

constexpr char kInsideLibrary[] = "/opt/tracefire-prove/libtracefire_inject.so";
constexpr char kInsideRecords[] = "/opt/tracefire-prove/records";

std::string base_name(const std::string& path) { return fs::path(path).filename().string(); }

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
  static constexpr std::string_view kNames =
      " --context -c --config --host -H --log-level -l --tlscacert --tlscert --tlskey --file -f "
      "--profile --env-file -p --project-name --project-directory --ansi --parallel --progress "
      "--root --runroot --namespace -n --connection --address -a --url --identity --storage-driver "
      "--storage-opt --runtime --runtime-flag --cgroup-manager --conmon --tmpdir --imagestore "
      "--module --snapshotter --data-root --cni-path --cni-netconfpath --hosts-dir ";
  return kNames.find(" " + word + " ") != std::string_view::npos;
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

/// Why another sub-command than `run` is not traced, and what to do instead.
std::string why_not_traced(const std::string& tool, const std::string& word) {
  if (word == "exec" || word == "start" || word == "restart" || word == "attach") {
    return "not traced: `" + tool + " " + word +
           "` enters a container that exists already, which can be given no folder. Start it with "
           "`" +
           tool + " run` under prove, or copy the library into it: --print-env has the lines";
  }
  if (word == "up") {
    return "not traced: `" + tool + " up` starts what its file says. Use `" + tool +
           " run SERVICE` under prove, or add to the service the volumes and variables that "
           "--print-env prints";
  }
  return "not traced: only `" + tool +
         " run` can be given the tracing; --print-env has the lines "
         "for other ways";
}

WrappedCommand wrap_docker(const std::vector<std::string>& command, const TracePlan& plan) {
  WrappedCommand out;
  out.command = command;
  size_t run = sub_command(command, 1);
  bool compose = base_name(command[0]) == "docker-compose";
  if (run < command.size() && (command[run] == "compose" || command[run] == "container")) {
    compose = command[run] == "compose";
    run = sub_command(command, run + 1);
  }
  const std::string word = run < command.size() ? command[run] : "";
  const std::string tool =
      base_name(command[0]) +
      (compose && command[0].find("compose") == std::string::npos ? " compose" : "");
  if (word != "run" && (compose || word != "create")) {
    out.lost = true;
    out.notes.push_back(why_not_traced(tool, word));
    return out;
  }
  if ((plan.library + plan.folder).find(':') != std::string::npos) {
    out.lost = true;
    out.notes.push_back("the container is not traced: " + tool +
                        " takes no folder with a colon in its name (" + plan.library + ", " +
                        plan.folder + "). Choose another with --out");
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
  WrappedCommand out;
  out.command = command;
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
  if (name == "srun") return holds(command, {"--export=NONE", "--export=NIL"});
  return false;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + shell_word(word);
  return text;
}

/// A container program in the words that a shell or a launcher is to run; empty where there is
/// none.
std::string container_inside(const std::string& name, const std::vector<std::string>& command) {
  static constexpr std::array<std::string_view, 16> kStarters = {
      "sh",    "bash",     "zsh",   "dash",  "fish",   "srun",   "mpirun", "mpiexec",
      "xargs", "parallel", "flock", "watch", "script", "screen", "tmux",   "strace"};
  if (std::find(kStarters.begin(), kStarters.end(), name) == kStarters.end()) return "";
  for (size_t i = 1; i < command.size(); ++i) {
    std::string word;
    for (const char c : command[i] + " ") {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.') {
        word += c;
        continue;
      }
      for (const char* tool : {"docker", "podman", "nerdctl", "apptainer", "singularity"}) {
        if (word == tool) return word;
      }
      word.clear();
    }
  }
  return "";
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
  WrappedCommand out;
  out.command = command;
  size_t at = 0;
  std::string dropper;
  for (int depth = 0; depth < 16; ++depth) {
    const Prefix prefix = read_prefix(out.command, at);
    if (prefix.name.empty() || prefix.program >= out.command.size()) break;
    at = prefix.program;
    if (prefix.name == "env" && (prefix.drops_variables || !dropper.empty())) {
      // A cleared environment, or one behind sudo, gets the variables as words.
      std::vector<std::string> words;
      for (const auto& [name, value] : trace_variables(plan)) words.push_back(name + "=" + value);
      if (!dropper.empty()) {
        words.push_back("TRACEFIRE_PROVE_OWNER=" + std::to_string(geteuid()));
        out.lost = true;
      }
      insert(out.command, prefix.options_end - 1, words);
      at += words.size();
      dropper.clear();
    } else if (prefix.drops_variables) {
      dropper = prefix.name;
    } else if (prefix.name == "sudo") {
      out.variables.emplace_back("TRACEFIRE_PROVE_OWNER", std::to_string(geteuid()));
      out.lost = true;
    }
  }
  const auto begin = out.command.begin() + static_cast<std::ptrdiff_t>(at);
  const std::vector<std::string> program(begin, out.command.end());
  const std::string name = base_name(program.front());
  const bool docker =
      name == "docker" || name == "podman" || name == "nerdctl" || name == "docker-compose";
  if (docker || name == "apptainer" || name == "singularity") {
    const WrappedCommand inner =
        docker ? wrap_docker(program, plan) : wrap_apptainer(program, plan);
    out.command.erase(begin, out.command.end());
    out.command.insert(out.command.end(), inner.command.begin(), inner.command.end());
    out.notes = inner.notes;
    out.lost = inner.lost;
    return out;
  }
  if (dropper.empty() && drops_variables(name, program)) dropper = name;
  if (!dropper.empty()) {
    out.lost = true;
    const bool has_env = dropper == "sudo" || dropper == "doas";
    const std::string line =
        dropper + " does not pass the variables of the tracing on" +
        (has_env ? ": write `" + dropper + " env " + joined(program) +
                       "` behind prove, which gives them to env; or see --print-env"
                 : "; see --print-env for the lines that do");
    out.notes.push_back(line);
  }
  if (const std::string tool = container_inside(name, program); !tool.empty()) {
    out.lost = true;
    out.notes.push_back(
        name + " starts " + tool +
        ", which prove does not see: the container is not traced. Run `" + tool +
        " run …` under prove itself, or give the container what --print-env prints");
  }
  return out;
}

namespace {

/// What traces a program in a container that runs already.
std::string docker_exec_lines(const TracePlan& plan, const std::string& program) {
  const std::string place = fs::path(kInsideLibrary).parent_path().string();
  std::string variables;
  for (const auto& [name, value] : inside_variables(plan)) {
    variables += "--env " + name + "=" + shell_word(value) + " ";
  }
  return "# docker exec, in a CONTAINER that runs already (podman with its own name):\n"
         "#   docker exec CONTAINER mkdir -p -m 755 " +
         place + "\n#   docker cp " + shell_word(plan.library) + " CONTAINER:" + kInsideLibrary +
         "\n#   docker exec CONTAINER mkdir -p -m 700 " + kInsideRecords + "\n#   docker exec " +
         variables + "CONTAINER " + program + "\n#   docker cp CONTAINER:" + kInsideRecords +
         "/. " + shell_word(plan.folder) + "\n";
}

}  // namespace

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
  out += docker_exec_lines(plan, program);
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
