// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/settings.h"

namespace tracefire {

/// True where a message of this level is written (setting log_level).
bool log_enabled(LogLevel level);

/// Writes "tracefire: warning: text" to stderr as one line and in one write, so that lines of
/// several threads and processes never mix; line ends in `text` become " | ". Thread-safe.
void log_line(LogLevel level, std::string_view text);

/// log_line() the first time that `key` is given in this process. Returns whether it was.
bool say_once(std::string_view key, std::string_view text, LogLevel level = LogLevel::kWarning);

/// Where lines go instead of stderr, each without its line end; an empty function is stderr again.
/// The sink is called with no lock held.
void set_log_sink(std::function<void(LogLevel level, const std::string& line)> sink);

}  // namespace tracefire
