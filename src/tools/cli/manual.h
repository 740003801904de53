// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/cli/console.h"

namespace CLI {
class App;
}

namespace tracefire::cli {

struct Command;

struct Example {
  std::string line;  ///< "tracefire devices --json"
  std::string text;  ///< what it does
};

/// One option or positional argument, as the parser has it.
struct OptionPage {
  std::vector<std::string> names;  ///< "-h", "--help"; empty for a positional argument
  std::string value;               ///< "WHEN"; empty for a flag
  std::vector<std::string> words;  ///< values that it takes, for completion; empty where free
  std::string text;
  std::string group;            ///< heading that it stands under in the help
  bool common = false;          ///< every command has it
  bool many = false;            ///< may be given several times
  bool value_optional = false;  ///< --serve or --serve ADDRESS
  bool optional = true;

  bool positional() const { return names.empty(); }
  /// A program and its arguments, after `--`.
  bool program() const { return positional() && value == "COMMAND" && many; }
};

/// What a manual page tells beside the usual parts: terms, each with a text.
struct Section {
  std::string title;  ///< "EXIT STATUS"
  std::vector<std::pair<std::string, std::string>> entries;
};

struct CommandPage {
  std::string name;  ///< empty for the program itself
  std::string summary;
  std::vector<std::string> text;
  std::vector<Example> examples;
  std::string schema;
  std::vector<Section> sections;
  std::vector<OptionPage> options;

  /// Whether a program stands after `--`.
  bool runs_a_program() const;
};

/// What the help, the manual pages and the shells' completions are all made from.
struct Manual {
  std::string version;
  CommandPage program;
  std::vector<CommandPage> commands;

  /// The page of a command; the program's own for "". Null where there is none.
  const CommandPage* find(std::string_view name) const;
};

/// "WHEN", or "[ADDRESS]" where it may be left out; empty for a flag.
std::string value_text(const OptionPage& option);
/// Groups of a command's own options, in the order in which they were defined.
std::vector<std::string> option_groups(const CommandPage& page);

/// Reads the options out of the parser's tree.
Manual describe(const CLI::App& app, const std::vector<Command>& commands, std::string version);

/// Commands that installations call by links, too: tracefire-doctor is `tracefire doctor`.
std::vector<std::string> linked_commands(const Manual& manual);

/// "tracefire devices [--json] [--libraries] …".
std::string usage_line(const CommandPage& page);
/// Text of --help.
std::string help_text(const Manual& manual, const CommandPage& page, const Console& console);
/// Manual page in roff (man(7)): tracefire-devices(1).
std::string man_page(const Manual& manual, const CommandPage& page);
/// Completion script for "bash", "zsh" or "fish".
std::string completion_script(const Manual& manual, std::string_view shell);
std::vector<std::string> completion_shells();

/// Writes every manual page and completion script below `folder`, laid out as below a prefix's
/// share/. Throws Error: kCannotWrite.
void write_manual(const Manual& manual, const std::string& folder);

}  // namespace tracefire::cli
