// SPDX-License-Identifier: Apache-2.0
// What every sub-command is made of, and what it may rely on:
//  - data goes to stdout, talk to stderr (Console); `--json` prints one document whose first member
//    is the id of its schema, which is published in schema/cli/;
//  - --help, --man, --color and --set are there for each; settings come from --set, then
//    TRACEFIRE_*, then the settings files;
//  - it returns 0, or 1 for a result that the user should act on; it throws Error for what failed
//    and UsageError for wrong usage (exit status 2);
//  - times are RFC 3339 in UTC, "-" is stdin where a file is read.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "tools/cli/console.h"
#include "tools/cli/manual.h"
#include "tools/cli/program.h"

namespace tracefire::cli {

using Json = nlohmann::ordered_json;

enum ExitStatus : int {
  kSuccess = 0,
  kFailure = 1,
  kWrongUsage = 2,
  kInterrupted = 130,  // 128 + SIGINT, as shells count
  kBrokenPipe = 141,   // 128 + SIGPIPE
};

/// A command was used wrongly: one line that says what was wrong and what is allowed.
struct UsageError {
  std::string text;
};
template <class... Parts>
[[noreturn]] void wrong_usage(const Parts&... parts) {
  throw UsageError{concat_text(parts...)};
}

/// What a command that runs is given.
struct Context {
  Console& console;
  const BuildInfo& build;
  const Manual& manual;            ///< of all commands
  std::string schema;              ///< of this command's JSON
  std::vector<std::string> words;  ///< of the command line, for a command that reads its own

  /// {"schema": …}, to which the command adds.
  Json document() const { return {{"schema", schema}}; }
  /// Prints a document; bytes that are no UTF-8 become U+FFFD.
  void print(const Json& document) const;
};

/// Runs the command, after its options have been parsed; returns the exit status.
using Action = std::function<int(Context&)>;

/// What a command does with the settings.
enum class UseOfSettings {
  kNone,              ///< reads none
  kAll,               ///< a wrong one is an error
  kWithoutWrongOnes,  ///< says what is wrong and goes on without it: it serves other programs, too
};

/// One sub-command, in a file of its own.
struct Command {
  std::string name;
  std::string summary;            ///< one line without a full stop: "lists the devices …"
  std::vector<std::string> text;  ///< paragraphs for --help and the manual page
  std::vector<Example> examples;
  std::vector<Section> sections;  ///< more parts of the manual page
  std::string schema;             ///< id of what --json prints; empty where there is none
  UseOfSettings settings = UseOfSettings::kAll;
  /// It gets its words as they are, without the options of every command. Those that it defines
  /// are for the pages.
  bool reads_own_words = false;
  /// What it prints on stdout where its use was wrong in what every command has; may be empty.
  std::function<std::string(const std::vector<std::string>& words, const std::string& message)>
      refusal;
  /// Words that complete a value, by its name in the help: {"CODE", {"TF-E0101", …}}.
  std::map<std::string, std::vector<std::string>> words;
  /// Adds the command's own options and returns what runs with them. What the options are read
  /// into lives in the returned function.
  std::function<Action(CLI::App&)> define;
};

/// All of them, in the order of the help: the engine's (edition.h), then the list in commands.cpp.
std::vector<Command> all_commands();

/// --json, in the same words everywhere.
CLI::Option* add_json_flag(CLI::App& app, bool& json, const std::string& schema);

/// An option that takes one of some words; the last one given counts.
CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& target,
                        std::vector<std::string> words, const std::string& text);

/// An option that takes a whole number of at least `least`; the last one given counts. `target`
/// keeps its value where the option is not given.
CLI::Option* add_number(CLI::App& app, const std::string& name, int64_t& target, int64_t least,
                        const std::string& text);

/// An option that names a file or folder; an empty name, as a script's empty variable gives it, is
/// wrong usage. The last one given counts.
CLI::Option* add_path(CLI::App& app, const std::string& name, std::string& target,
                      const std::string& type, const std::string& text);

/// "2026-11-30T14:15:00Z": now.
std::string utc_now();

/// The whole of a file, or of stdin where `path` is "-". Throws Error: kFileNotFound.
std::string read_input(const std::string& path);

/// Who may read a file that is written.
enum class Readers { kAll, kOwner };

/// Finds out, before long work, whether write_file() could write there; leaves everything as it is.
/// `option` is the one that named the file. Where it could not, that is wrong usage.
void check_output(const std::string& option, const std::string& path,
                  Readers readers = Readers::kAll);

/// Whether two names, of files that may not be there yet, are of the same file.
bool is_same_file(const std::string& a, const std::string& b);

/// Makes or replaces a file. Throws Error: kCannotWrite with the system's words.
void write_file(const std::string& path, std::string_view text, Readers readers = Readers::kAll);

}  // namespace tracefire::cli
