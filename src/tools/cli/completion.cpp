// SPDX-License-Identifier: Apache-2.0
// `tracefire completion` and `tracefire help`: the pages, asked for by name.
#include "core/base/text.h"
#include "tools/cli/command.h"
#include "tools/cli/common.h"

namespace tracefire::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : "|") + word;
  return text;
}

}  // namespace

Command completion_command() {
  Command command;
  command.name = "completion";
  command.summary = "prints the completion script of a shell";
  command.text = {
      "Prints a completion script for bash, zsh or fish, made from the options of this "
      "very program. `cmake --install` puts the scripts where the shells look."};
  command.examples = {{"source <(tracefire completion bash)", "In the running bash."},
                      {"tracefire completion fish > ~/.config/fish/completions/tracefire.fish",
                       "For good, in fish."}};
  command.settings = UseOfSettings::kNone;
  command.words = {{"SHELL", completion_shells()}};
  command.define = [](CLI::App& app) -> Action {
    auto shell = std::make_shared<std::string>();
    app.add_option("SHELL", *shell, kRequired + joined(completion_shells()));
    return [shell](Context& context) -> int {
      const std::vector<std::string> shells = completion_shells();
      if (shell->empty())
        wrong_usage("no shell was named. One of ", joined(shells), " was expected.");
      if (std::find(shells.begin(), shells.end(), *shell) == shells.end()) {
        wrong_usage("there is no completion for the shell '", printable(*shell), "'. One of ",
                    joined(shells), " was expected.");
      }
      context.console.print(completion_script(context.manual, *shell));
      return kSuccess;
    };
  };
  return command;
}

Command help_command() {
  Command command;
  command.name = "help";
  command.summary = "shows how a command is used";
  command.text = {
      "Shows the help of a command, as `tracefire COMMAND --help` does, or of the program."};
  command.examples = {{"tracefire help monitor", "How `monitor` is used."}};
  command.settings = UseOfSettings::kNone;
  command.define = [](CLI::App& app) -> Action {
    auto name = std::make_shared<std::string>();
    app.add_option("COMMAND", *name, "a command");
    return [name](Context& context) -> int {
      const CommandPage* page = context.manual.find(*name);
      if (page == nullptr) {
        std::vector<std::string_view> names;
        for (const CommandPage& command : context.manual.commands) names.push_back(command.name);
        const std::string closest = closest_name(*name, names);
        wrong_usage("there is no command '", printable(*name), "'.",
                    closest.empty() ? "" : " Did you mean '" + closest + "'?");
      }
      context.console.print(help_text(context.manual, *page, context.console));
      return kSuccess;
    };
  };
  return command;
}

}  // namespace tracefire::cli
