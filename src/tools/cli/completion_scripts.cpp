// SPDX-License-Identifier: Apache-2.0
// Completion scripts, made from the same pages as the help. They call no program while completing.
#include "core/base/status.h"
#include "tools/cli/manual.h"

namespace tracefire::cli {
namespace {

bool takes_file(const OptionPage& option) {
  return option.value == "FILE" || option.value == "DIRECTORY" || option.value == "PATH";
}

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

/// Every page, the program's first.
std::vector<const CommandPage*> pages_of(const Manual& manual) {
  std::vector<const CommandPage*> pages = {&manual.program};
  for (const CommandPage& page : manual.commands) pages.push_back(&page);
  return pages;
}

std::vector<std::string> command_names(const Manual& manual) {
  std::vector<std::string> names;
  for (const CommandPage& page : manual.commands) names.push_back(page.name);
  return names;
}

/// The names of links by which commands are called, too.
std::string called_names(const Manual& manual) {
  std::vector<std::string> names;
  for (const std::string& name : linked_commands(manual)) names.push_back("tracefire-" + name);
  return joined(names);
}

/// The commands that run a program, which stands after `--`.
std::vector<std::string> runners(const Manual& manual) {
  std::vector<std::string> names;
  for (const CommandPage& page : manual.commands) {
    if (page.runs_a_program()) names.push_back(page.name);
  }
  return names;
}

// ---- bash ----

/// Lines of `case "$command:$previous"`: what may follow an option that takes a value.
std::string bash_values(const CommandPage& page) {
  std::string out;
  for (const OptionPage& option : page.options) {
    if (option.positional() || option.value.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) patterns.push_back(page.name + ":" + name);
    const std::string action = takes_file(option)
                                   ? "_tracefire_files \"$current\""
                                   : "_tracefire_words \"$current\" " + joined(option.words);
    out += "    " + joined(patterns, "|") + ") " + action + "; return ;;\n";
  }
  return out;
}

/// One line of `case "$command"`: options, then words or files of the positional arguments.
std::string bash_words(const Manual& manual, const CommandPage& page) {
  std::vector<std::string> options, words;
  bool files = false;
  if (page.name.empty()) words = command_names(manual);
  if (page.runs_a_program()) words = {"--"};
  for (const OptionPage& option : page.options) {
    options.insert(options.end(), option.names.begin(), option.names.end());
    if (!option.positional()) continue;
    words.insert(words.end(), option.words.begin(), option.words.end());
    files = files || takes_file(option);
  }
  std::string out = "    " + (page.name.empty() ? std::string("''") : page.name) + ")\n";
  out +=
      "      if [[ $current == -* ]]; then _tracefire_words \"$current\" " + joined(options) + "\n";
  out += std::string("      else ") +
         (files           ? "_tracefire_files \"$current\""
          : words.empty() ? ":"
                          : "_tracefire_words \"$current\" " + joined(words)) +
         "; fi ;;\n";
  return out;
}

std::string bash_script(const Manual& manual) {
  std::string values, words;
  for (const CommandPage* page : pages_of(manual)) {
    values += bash_values(*page);
    words += bash_words(manual, *page);
  }
  return R"(# bash completion for tracefire, made by `tracefire completion bash`.
_tracefire_program() {  # number of the program's word
  if declare -F _command_offset >/dev/null; then _command_offset "$1"
  elif [[ $COMP_CWORD == "$1" ]]; then
    mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}" | sort -u)
  else _tracefire_files "${COMP_WORDS[COMP_CWORD]}"; fi
  return 0
}
_tracefire_words() {
  local current=$1
  shift
  mapfile -t COMPREPLY < <(compgen -W "$*" -- "$current")
  # A word that ends in '=' waits for a value.
  if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
  return 0
}
_tracefire_files() {
  mapfile -t COMPREPLY < <(compgen -f -- "$1")
  compopt -o filenames 2>/dev/null
  return 0
}
_tracefire() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command='' i
  COMPREPLY=()
  # bash splits --color=always into three words.
  if [[ $current == '=' ]]; then current=''
  elif [[ $previous == '=' ]]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
    )" + joined(command_names(manual), "|") +
         R"() command=${COMP_WORDS[i]}; break ;;
    esac
  done
  case "$command" in )" +
         joined(runners(manual), "|") + R"()
    for ((; i < COMP_CWORD; ++i)); do
      if [[ ${COMP_WORDS[i]} == -- ]]; then _tracefire_program $((i + 1)); return; fi
    done ;;
  esac
  case "$command:$previous" in
)" + values +
         R"(  esac
  case "$command" in
)" + words +
         R"(  esac
  return 0
}
complete -F _tracefire tracefire
# tracefire-doctor is `tracefire doctor`.
_tracefire_named() {
  COMP_WORDS=(tracefire "${COMP_WORDS[0]##*tracefire-}" "${COMP_WORDS[@]:1}")
  COMP_CWORD=$((COMP_CWORD + 1))
  COMP_LINE=${COMP_LINE/tracefire-/tracefire }
  _tracefire
}
complete -F _tracefire_named )" +
         called_names(manual) + "\n";
}

// ---- zsh ----

/// Text inside single quotes, where `special` characters are quoted for _arguments.
std::string quoted(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const OptionPage& option) {
  if (takes_file(option)) return "_files";
  return option.words.empty() ? " " : "(" + quoted(joined(option.words), ":") + ")";
}

/// One specification of _arguments for each option.
std::string zsh_options(const CommandPage& page) {
  std::string out;
  for (const OptionPage& option : page.options) {
    const std::string text = quoted(option.text, "[]:\\");
    const std::string value =
        option.value.empty() ? "" : ":" + quoted(option.value, ":\\") + ":" + zsh_action(option);
    if (option.program()) {
      out += " \\\n      '1:" + quoted(option.value, ":\\") + ":(--)'";
      continue;
    }
    if (option.positional()) {
      out += " \\\n      '" + std::string(option.many ? "*" : "") + value + "'";
      continue;
    }
    const std::string all = option.many ? "*" : "(" + joined(option.names) + ")";
    for (const std::string& name : option.names) {
      out += " \\\n      '" + all + name + "[" + text + "]" + value + "'";
    }
  }
  return out;
}

std::string zsh_script(const Manual& manual) {
  std::string commands, cases;
  for (const CommandPage& page : manual.commands) {
    commands += "    '" + page.name + ":" + quoted(page.summary, ":") + "'\n";
    cases += "    " + page.name + ")\n      _arguments -s" + zsh_options(page) + " ;;\n";
  }
  return "#compdef tracefire " + called_names(manual) +
         "\n# Made by `tracefire completion zsh`.\n_tracefire() {\n"
         // tracefire-doctor is `tracefire doctor`.
         "  if [[ $service == tracefire-* ]]; then\n"
         "    words=(tracefire ${service#tracefire-} \"${(@)words[2,-1]}\"); (( CURRENT++ ))\n"
         "  fi\n"
         "  local curcontext=$curcontext state line\n  local -a subcommands=(\n" +
         commands + "  )\n  _arguments -C" + zsh_options(manual.program) +
         " \\\n      '1:command:->command' '*::argument:->argument'\n  case $state in\n"
         "  command) _describe -t commands 'command' subcommands ;;\n  argument)\n"
         "    local -i at=${words[(i)--]}\n"
         "    if [[ $words[1] == (" +
         joined(runners(manual), "|") +
         ") ]] && (( at < CURRENT )); then  # the program that stands after --\n"
         "      words=(\"${(@)words[at+1,-1]}\"); (( CURRENT -= at )); _normal; return\n"
         "    fi\n"
         "    case $words[1] in\n" +
         cases +
         "    esac ;;\n  esac\n}\n"
         "if [[ $funcstack[1] == _tracefire ]]; then _tracefire \"$@\"; else compdef _tracefire "
         "tracefire " +
         called_names(manual) + "; fi\n";
}

// ---- fish ----

std::string fish_options(const CommandPage& page) {
  std::string out;
  const std::string when =
      page.name.empty() ? "__fish_use_subcommand" : "__fish_seen_subcommand_from " + page.name;
  for (const OptionPage& option : page.options) {
    std::string line = "complete -c tracefire -n '" + when + "'";
    for (const std::string& name : option.names) {
      line += name[1] == '-' ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    if (option.program()) {
      line = "complete -c tracefire -n '" + when +
             "; and contains -- -- (commandline -opc)' -a '(__tracefire_program)'";
    } else if (takes_file(option)) {
      line += option.positional() ? " -F" : " -r -F";
    } else if (!option.value.empty()) {
      if (!option.positional()) line += " -x";
      if (!option.words.empty()) line += " -a '" + quoted(joined(option.words), "") + "'";
    }
    out += line + " -d '" + quoted(option.text, "\\") + "'\n";
  }
  return out;
}

std::string fish_script(const Manual& manual) {
  std::string out =
      "# fish completion for tracefire, made by `tracefire completion fish`.\n"
      "function __tracefire_program\n"
      "  set -l words (commandline -opc)\n"
      "  set -l at (contains -i -- -- $words); or return\n"
      "  set -l line\n"
      "  test $at -lt (count $words); and set line (string escape -- $words[(math $at + 1)..-1])\n"
      "  complete -C (string join ' ' -- $line (commandline -ct))\n"
      "end\n"
      "complete -c tracefire -f\n";
  for (const CommandPage& page : manual.commands) {
    out += "complete -c tracefire -n __fish_use_subcommand -a " + page.name + " -d '" +
           quoted(page.summary, "\\") + "'\n";
  }
  for (const CommandPage* page : pages_of(manual)) out += fish_options(*page);
  for (const std::string& name : linked_commands(manual)) {
    out += "complete -c tracefire-" + name + " -w 'tracefire " + name + "'\n";
  }
  return out;
}

}  // namespace

std::vector<std::string> completion_shells() { return {"bash", "zsh", "fish"}; }

std::string completion_script(const Manual& manual, std::string_view shell) {
  if (shell == "bash") return bash_script(manual);
  if (shell == "zsh") return zsh_script(manual);
  if (shell == "fish") return fish_script(manual);
  error(ErrorCode::kInternal, "no completion is made for the shell '", shell, "'.")
      .throw_if_error();
  return {};
}

}  // namespace tracefire::cli
