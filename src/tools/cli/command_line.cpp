// SPDX-License-Identifier: Apache-2.0
// From the words of the command line to an exit status.
#include <algorithm>
#include <charconv>
#include <exception>
#include <limits>

#include "core/base/settings.h"
#include "core/base/text.h"
#include "tools/cli/command.h"
#include "tools/cli/common.h"

namespace tracefire::cli {
namespace {

/// What the options that every command has were given.
struct Common {
  bool help = false, man = false;
  std::string color = "auto";
  std::vector<std::string> settings;  ///< NAME=VALUE
};

void add_common_options(CLI::App& app, Common& common) {
  app.set_help_flag();  // ours is an option like any other, so that it is in every page
  app.add_flag("-h,--help", common.help, "shows this help")->group(kCommonOptions);
  app.add_flag("--man", common.man, "prints the manual page: `tracefire --man | man -l -`")
      ->group(kCommonOptions);
  add_choice(app, "--color", common.color, {"auto", "always", "never"},
             "colours: auto, where the output is a terminal and NO_COLOR is not set; always; never")
      ->group(kCommonOptions);
  app.add_option_function<std::vector<std::string>>(
         "--set",
         [&common](const std::vector<std::string>& given) {
           common.settings.insert(common.settings.end(), given.begin(), given.end());
         },
         "gives a setting a value for this run; `tracefire settings` lists them")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->group(kCommonOptions);
}

/// The parser with all commands, and what runs once it has parsed.
struct Program {
  CLI::App app;
  Common common;
  bool version = false;
  std::string manual_folder;
  std::vector<Command> commands = all_commands();
  std::vector<Action> actions;

  Program() {
    app.name("tracefire");
    app.allow_extras();  // refused in our own words, see refuse_extras()
    app.require_subcommand(0, 1);
    app.add_flag("--version", version, "prints the version in one line");
    app.add_option("--write-manual", manual_folder,
                   "writes the manual pages and the completions below a folder, as packages do")
        ->type_name("DIRECTORY");
    add_common_options(app, common);
    for (const Command& command : commands) {
      CLI::App* sub = app.add_subcommand(command.name, command.summary);
      actions.push_back(command.define(*sub));
      add_common_options(*sub, common);
    }
  }

  /// The number of the command that was given, -1 for none.
  int chosen() const {
    for (size_t i = 0; i < commands.size(); ++i) {
      if (app.got_subcommand(commands[i].name)) return static_cast<int>(i);
    }
    return -1;
  }
};

/// The words of the command line; those of a program that is called `tracefire-doctor`, as a link
/// or a copy may be, begin with `doctor`.
std::vector<char*> words_given(std::vector<Command>& commands, int argc, char** argv) {
  std::vector<char*> words(argv, argv + argc);
  constexpr std::string_view kBeginning = "tracefire-";
  std::string_view name = argc > 0 ? argv[0] : "";
  name.remove_prefix(name.find_last_of('/') + 1);  // of no slash: npos + 1 is 0
  if (!name.starts_with(kBeginning) || (argc > 1 && argv[1] == std::string_view("--version"))) {
    return words;
  }
  name.remove_prefix(kBeginning.size());
  for (Command& command : commands) {
    if (command.name == name) words.insert(words.begin() + 1, command.name.data());
  }
  return words;
}

/// The words for the parser, and those that a command with reads_own_words gets.
struct Words {
  std::vector<char*> parsed;
  std::vector<std::string> own;
};

Words divide(const std::vector<Command>& commands, const std::vector<char*>& given) {
  Words words;
  const Command* command = nullptr;
  bool value = false;  // of the option before
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string_view word = given[i];
    const bool common = word == "--color" || word == "--set";
    if (i == 0 || value) {
      words.parsed.push_back(given[i]);
      value = false;
    } else if (command == nullptr || !command->reads_own_words) {
      words.parsed.push_back(given[i]);
      value = command == nullptr && (common || word == "--write-manual");
      if (command != nullptr || value || word.substr(0, 1) == "-") continue;
      for (const Command& one : commands) {
        if (one.name == word) command = &one;
      }
    } else if (common || word == "-h" || word == "--help" || word == "--man" ||
               word.rfind("--color=", 0) == 0 || word.rfind("--set=", 0) == 0) {
      words.parsed.push_back(given[i]);
      value = common;
    } else {
      words.own.emplace_back(word);
    }
  }
  return words;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string closest = closest_name(word, views);
  return closest.empty() ? "" : " Did you mean '" + closest + "'?";
}

/// Words that the parser knew nothing to do with.
void refuse_extras(const Manual& manual, const CommandPage& page,
                   const std::vector<std::string>& extras) {
  for (const std::string& word : extras) {
    if (word == "--") continue;
    const std::string shown = "'" + printable(word) + "'";
    if (word.size() > 1 && word[0] == '-') {
      std::vector<std::string> names;
      for (const OptionPage& option : page.options) {
        names.insert(names.end(), option.names.begin(), option.names.end());
      }
      const std::string name = word.substr(0, word.find('='));
      if (std::find(names.begin(), names.end(), name) != names.end()) {
        wrong_usage("the option ", shown, " must stand after ",
                    page.name.empty() ? "tracefire" : page.name, " and before --.");
      }
      wrong_usage("there is no option ", shown, ".", did_you_mean(name, names));
    }
    std::vector<std::string> names;
    for (const CommandPage& command : manual.commands) names.push_back(command.name);
    if (std::find(names.begin(), names.end(), word) != names.end()) {
      wrong_usage("the command ", shown, " stands where none can: only one is given.");
    }
    if (page.name.empty())
      wrong_usage("there is no command ", shown, ".", did_you_mean(word, names));
    wrong_usage("the argument ", shown, " is one too many.");
  }
}

/// A word before `--`, where only options of a command that runs a program can stand: the parser
/// takes it for the program, and the program for one argument too many.
void refuse_before_dashes(const CommandPage& page, const std::vector<char*>& words,
                          const std::vector<std::string>& extras) {
  if (!page.runs_a_program()) return;
  const auto dashes = std::find(words.begin(), words.end(), std::string_view("--"));
  if (dashes == words.begin() || dashes == words.end()) return;
  if (std::all_of(extras.begin(), extras.end(), [](const auto& word) { return word == "--"; }))
    return;
  wrong_usage("'", printable(dashes[-1]), "' stands before --, where only options of ", page.name,
              " can stand.");
}

/// Flags that were given a value: `--json=1` means nothing, and `--json=0` the opposite.
void refuse_values_of_flags(const CommandPage& page, const std::vector<char*>& words) {
  for (const std::string_view word : words) {
    if (word == "--") return;
    const size_t equals = word.find('=');
    if (!word.starts_with("--") || equals == std::string_view::npos) continue;
    for (const OptionPage& option : page.options) {
      const bool named = std::find(option.names.begin(), option.names.end(),
                                   word.substr(0, equals)) != option.names.end();
      if (named && option.value.empty()) {
        wrong_usage("the option ", word.substr(0, equals), " takes no value.");
      }
    }
  }
}

/// The parser's own errors, in words.
std::string words_of(const CLI::ParseError& failure, const CommandPage& page) {
  const std::string what = failure.what();
  const std::string name = what.substr(0, what.find(':'));
  if (failure.get_name() == "ArgumentMismatch") {
    for (const OptionPage& option : page.options) {
      if (std::find(option.names.begin(), option.names.end(), name) != option.names.end()) {
        return "the option " + name + " needs a value: " + option.value + ".";
      }
    }
  }
  if (failure.get_name() == "ConversionError") {
    return "an option has a value that is none of its type: " + what + ".";
  }
  return what + ".";
}

void apply_settings(const Common& common, UseOfSettings use, const Console& console) {
  if (use == UseOfSettings::kNone) return;
  for (const Status& problem : settings_problems()) {
    if (use == UseOfSettings::kAll) problem.throw_if_error();
    console.say(problem.str(), "tracefire: warning: ", Style::kBold);
  }
  for (const std::string& given : common.settings) {
    const size_t equals = given.find('=');
    if (equals == std::string::npos || equals == 0) {
      wrong_usage("--set was given '", printable(given), "'. NAME=VALUE was expected.");
    }
    const Status status =
        set_setting(given.substr(0, equals), given.substr(equals + 1), SettingSource::kFlag);
    if (!status.ok()) wrong_usage(status.message());
  }
}

int run(Program& program, Console& console, const BuildInfo& build, const Manual& manual,
        const CommandPage& page, const Words& words) {
  console.choose_color(program.common.color);
  if (program.common.help) {
    console.print(help_text(manual, page, console));
    return kSuccess;
  }
  const int chosen = program.chosen();
  if (chosen >= 0) {
    refuse_extras(manual, page, program.app.get_subcommand(page.name)->remaining());
    refuse_before_dashes(page, words.parsed, program.app.remaining());
  }
  refuse_extras(manual, page, program.app.remaining());
  if (program.common.man) {
    console.print(man_page(manual, page));
    return kSuccess;
  }
  if (chosen >= 0 && (program.version || !program.manual_folder.empty())) {
    wrong_usage(program.version ? "--version" : "--write-manual", " stands alone, without '",
                page.name, "'.");
  }
  if (program.version && !program.manual_folder.empty()) {
    wrong_usage("--version and --write-manual exclude each other.");
  }
  if (program.version) {
    console.print(std::string("tracefire ") + build.version + "\n");
    return kSuccess;
  }
  if (!program.manual_folder.empty()) {
    write_manual(manual, program.manual_folder);
    return kSuccess;
  }
  if (chosen < 0) {
    std::string names;
    for (const CommandPage& command : manual.commands) {
      names += (names.empty() ? "" : ", ") + command.name;
    }
    wrong_usage("no command was given. One of ", names, " was expected.");
  }
  const Command& command = program.commands[static_cast<size_t>(chosen)];
  apply_settings(program.common, command.settings, console);
  Context context{console, build, manual, command.schema, words.own};
  return program.actions[static_cast<size_t>(chosen)](context);
}

int parse_and_run(int argc, char** argv, Console& console, const BuildInfo& build,
                  std::string* name) {
  Program program;
  const Manual manual = describe(program.app, program.commands, build.version);
  const auto chosen_page = [&]() -> const CommandPage& {
    const int chosen = program.chosen();
    *name = chosen < 0 ? "" : program.commands[static_cast<size_t>(chosen)].name;
    return *manual.find(*name);
  };
  const Words words = divide(program.commands, words_given(program.commands, argc, argv));
  try {
    try {
      program.app.parse(static_cast<int>(words.parsed.size()), words.parsed.data());
    } catch (const CLI::ParseError& failure) {
      wrong_usage(words_of(failure, chosen_page()));
    }
    const CommandPage& page = chosen_page();
    refuse_values_of_flags(page, words.parsed);
    const int status = run(program, console, build, manual, page, words);
    console.flush();
    return status;
  } catch (const UsageError& wrong) {
    chosen_page();  // where a check threw
    const int chosen = program.chosen();
    if (chosen >= 0 && program.commands[static_cast<size_t>(chosen)].refusal) {
      console.print(program.commands[static_cast<size_t>(chosen)].refusal(words.own, wrong.text));
      console.flush();
    }
    throw;
  }
}

void say_error(const Console& console, const std::string& text, const std::string& hint) {
  console.say(text, "tracefire: error: ", Style::kBad);
  if (!hint.empty()) console.say(hint, "tracefire: hint: ", Style::kBold);
}

}  // namespace

CLI::Option* add_json_flag(CLI::App& app, bool& json, const std::string& schema) {
  return app.add_flag("--json", json, "prints one JSON document (schema " + schema + ")");
}

CLI::Option* add_number(CLI::App& app, const std::string& name, int64_t& target, int64_t least,
                        const std::string& text) {
  const auto read = [name, &target, least](const std::string& given) {
    const char* end = given.data() + given.size();
    int64_t value = 0;
    const auto [stop, failure] = std::from_chars(given.data(), end, value);
    if (failure == std::errc::result_out_of_range && stop == end && given[0] != '-') {
      wrong_usage(name, " was given '", printable(given), "'. A whole number from ", least, " to ",
                  std::numeric_limits<int64_t>::max(), " was expected.");
    }
    if (failure != std::errc() || stop != end || value < least) {
      const bool huge = failure == std::errc::result_out_of_range;
      wrong_usage(name, " was given '", printable(given), "'. A ", huge ? "64-bit " : "",
                  "whole number of at least ", least, " was expected.");
    }
    target = value;
  };
  return app.add_option_function<std::string>(name, read, text)->type_name("N")->take_last();
}

CLI::Option* add_path(CLI::App& app, const std::string& name, std::string& target,
                      const std::string& type, const std::string& text) {
  return app.add_option(name, target, text)
      ->type_name(type)
      ->take_last()
      ->check([name](const std::string& given) {
        if (given.empty()) wrong_usage(name, " was given ''. A name was expected.");
        return std::string();
      });
}

CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& target,
                        std::vector<std::string> words, const std::string& text) {
  std::string type;
  for (const std::string& word : words) type += (type.empty() ? "" : "|") + word;
  return app.add_option(name, target, text)
      ->type_name(type)
      ->take_last()
      ->check([name, type, words = std::move(words)](const std::string& given) {
        if (std::find(words.begin(), words.end(), given) == words.end()) {
          wrong_usage(name, " was given '", printable(given), "'. One of ", type, " was expected.");
        }
        return std::string();
      });
}

}  // namespace tracefire::cli

namespace tracefire {

int run_command_line(int argc, char** argv, const BuildInfo& build) {
  using namespace cli;
  std::unique_ptr<Console> console;
  std::string command;
  try {
    console = std::make_unique<Console>();
    return parse_and_run(argc, argv, *console, build, &command);
  } catch (const BrokenPipe&) {
    return console->status_or(kBrokenPipe);
  } catch (const UsageError& wrong) {
    const std::string called = command.empty() ? "tracefire" : "tracefire " + command;
    say_error(*console, Status(ErrorCode::kBadUsage, wrong.text).str(),
              "`" + called + " --help` shows how it is used.");
    return kWrongUsage;
  } catch (const Error& failure) {
    if (failure.kind() == ErrorKind::kCancelled) {
      console->say(failure.what(), "tracefire: interrupted: ", Style::kBold);
      return kInterrupted;
    }
    say_error(*console, failure.what(), "`tracefire explain " + failure.code() + "` says more.");
    return console->status_or(kFailure);
  } catch (const std::exception& failure) {
    if (!console) return kFailure;  // not even the streams could be looked at
    say_error(*console, Status(ErrorCode::kInternal, failure.what()).str(), "");
    return console->status_or(kFailure);
  }
}

}  // namespace tracefire
