// SPDX-License-Identifier: Apache-2.0
// What command_line.cpp and the pages share about the options that every command has.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/cli/manual.h"

namespace tracefire::cli {

/// Group of the options that every command has.
inline constexpr char kCommonOptions[] = "every command";
/// Begins the description of a positional argument that must be given.
inline constexpr char kRequired[] = "(required) ";

/// The page of the program itself, without options.
CommandPage program_page();
/// Words that complete the values of the common options.
std::map<std::string, std::vector<std::string>> common_option_words();

}  // namespace tracefire::cli
