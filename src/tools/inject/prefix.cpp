// SPDX-License-Identifier: Apache-2.0
#include "tools/inject/prefix.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace tracefire::inject {
namespace {

/// The options of such a program that have a value in the next word, and what follows them.
struct Grammar {
  std::string_view name;
  std::string_view letters;  ///< short options with a value
  std::string_view words;    ///< long options with a value, each between blanks
  int operands = 0;          ///< words before the program
  bool assignments = false;  ///< NAME=VALUE words may come before the program
};

constexpr std::array<Grammar, 14> kGrammars = {
    {{"env", "uC", " unset chdir ", 0, true},
     {"sudo", "ugphCDRrtTUac",
      " user group host prompt chdir chroot role type command-timeout other-user close-from "
      "login-class auth-type ",
      0, true},
     {"doas", "uC", "", 0, false},
     {"nice", "n", " adjustment ", 0, false},
     {"ionice", "cn", " class classdata ", 0, false},
     {"timeout", "sk", " signal kill-after ", 1, false},
     {"stdbuf", "ioe", " input output error ", 0, false},
     {"nohup", "", "", 0, false},
     {"time", "fo", " format output ", 0, false},
     {"setsid", "", "", 0, false},
     {"taskset", "", "", 1, false},
     {"chrt", "TPD", " sched-runtime sched-period sched-deadline ", 1, false},
     {"numactl", "ipPmCN", " interleave preferred preferred-many membind physcpubind cpunodebind ",
      0, false},
     {"unbuffer", "", "", 0, false}}};

constexpr size_t kMostPrefixes = 16;

bool is_assignment(const std::string& word) {
  const size_t equals = word.find('=');
  return equals != std::string::npos && equals > 0 && word[0] != '-' && word.find('/') > equals;
}

/// What the options of the program say about the environment.
struct Environment {
  bool cleared = false, kept = false, opaque = false;
};

void look_at(std::string_view program, const std::string& word, Environment& seen) {
  const bool is_long = word.rfind("--", 0) == 0;
  const auto letter = [&](char c) { return !is_long && word.find(c) != std::string::npos; };
  if (program == "env") {
    seen.cleared |= word == "-" || word == "--ignore-environment" || letter('i');
    seen.opaque |= word.rfind("--split-string", 0) == 0 || letter('S');
  }
  if (program == "sudo") {
    seen.kept |= word == "--preserve-env" || letter('E') ||
                 word.find("CUDA_INJECTION64_PATH") != std::string::npos;
  }
}

/// Whether the option takes the next word as its value.
bool takes_next(const Grammar& grammar, const std::string& word) {
  if (word.rfind("--", 0) == 0) {
    const std::string name = " " + word.substr(2) + " ";
    return word.size() > 2 && grammar.words.find(name) != std::string_view::npos;
  }
  const size_t at = word.find_first_of(grammar.letters, 1);  // -u NAME; -uNAME holds its own
  return !grammar.letters.empty() && at == word.size() - 1;
}

}  // namespace

Prefix read_prefix(const std::vector<std::string>& command, size_t at) {
  Prefix prefix;
  if (at >= command.size()) return prefix;
  const std::string name = std::filesystem::path(command[at]).filename().string();
  const auto* grammar = std::find_if(kGrammars.begin(), kGrammars.end(),
                                     [&](const Grammar& g) { return g.name == name; });
  if (grammar == kGrammars.end()) return prefix;
  Environment environment;
  size_t i = at + 1;
  for (; i < command.size() && !command[i].empty() && command[i][0] == '-'; ++i) {
    if (command[i] == "--") {
      ++i;
      break;
    }
    look_at(name, command[i], environment);
    if (takes_next(*grammar, command[i])) ++i;
  }
  if (environment.opaque) return prefix;
  prefix.name = name;
  prefix.options_end = std::min(i, command.size());
  while (grammar->assignments && i < command.size() && is_assignment(command[i])) ++i;
  prefix.program = std::min(i + static_cast<size_t>(grammar->operands), command.size());
  prefix.drops_variables =
      environment.cleared || ((name == "sudo" || name == "doas") && !environment.kept);
  return prefix;
}

size_t program_of(const std::vector<std::string>& command) {
  size_t at = 0;
  for (size_t i = 0; i < kMostPrefixes; ++i) {
    const Prefix prefix = read_prefix(command, at);
    if (prefix.name.empty() || prefix.program >= command.size()) break;
    at = prefix.program;
  }
  return at;
}

}  // namespace tracefire::inject
