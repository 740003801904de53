// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tracefire::inject {

/// A program that only prepares for another one: env, sudo, nice, timeout, …
struct Prefix {
  std::string name;        ///< without its folder; empty where the word is no such program
  size_t options_end = 0;  ///< index of the first word behind its options
  size_t program = 0;      ///< index of the program that it starts; the size where it has none
  bool drops_variables = false;  ///< the program does not get the environment
};

/// Reads the words of `command` from `at` on. Options that cannot be looked through (env -S) make
/// it no prefix.
Prefix read_prefix(const std::vector<std::string>& command, size_t at);

/// Index of the program behind all prefixes; 0 where there is none.
size_t program_of(const std::vector<std::string>& command);

}  // namespace tracefire::inject
