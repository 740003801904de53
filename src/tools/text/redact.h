// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

// Reports are pasted into tickets: what looks like a secret is left out of all of them.

namespace tracefire::text {

/// Whether the name of a variable, option or field says that its value is a secret: one of its
/// parts is token, secret, password, credential, auth …, or it ends in "_key". "max_tokens" does
/// not.
bool names_a_secret(std::string_view name);

/// The text with "[redacted]" for what looks like a secret: the value behind a name that
/// names_a_secret() ("--token x", "KEY_TOKEN=x", "?token=x&", "Authorization: Bearer x"), user and
/// password in an address, and words that begin as tokens of known services do (ghp_, hf_, sk- …).
std::string redacted(std::string_view text);

/// redacted() of each word of a command; the word after `--token` and the like is a secret too.
std::vector<std::string> redacted_words(const std::vector<std::string>& words);

}  // namespace tracefire::text
