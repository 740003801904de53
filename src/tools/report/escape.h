// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tracefire::report {

/// Text from outside (names of kernels, commands, hosts, files, variables) on its way to a person.
/// Valid UTF-8 stays, control characters, characters that turn the direction of writing and bytes
/// that are no UTF-8 become \xNN; what is longer than `limit` bytes ends in "…".
std::string printable(std::string_view text, size_t limit = 1024);

/// printable(), and safe as text or attribute of HTML and SVG.
std::string html_text(std::string_view text, size_t limit = 1024);

/// The text without what looks like a secret: values of options and variables whose name says
/// token, key, secret, password, credential or auth; user and password in addresses; long runs of
/// letters and digits that begin as known tokens do (ghp_, hf_, sk-, AKIA, xox, eyJ …). Each
/// becomes
/// "[redacted]".
std::string redacted(std::string_view text);

/// redacted() of each word of a command; the word after `--token` and the like is a secret too.
std::vector<std::string> redacted_words(const std::vector<std::string>& words);

/// Whether the name of a variable or option says that its value is a secret.
bool names_a_secret(std::string_view name);

}  // namespace tracefire::report
