// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/settings.h"

namespace tracefire {

/// A place where a settings file may lie.
struct SettingsFile {
  std::string path;
  SettingSource source;
};

/// Where they are looked for, the weaker first: /etc/tracefire/config, then tracefire/config below
/// XDG_CONFIG_HOME or, where that is unset or relative, below ~/.config. Without HOME, the first
/// alone.
std::vector<SettingsFile> settings_files();

/// One `name = value` of a file.
struct SettingLine {
  std::string name, value;
  int line = 0;
};

/// Reads a settings file's text: one `name = value` a line; blank lines and lines that begin with #
/// do not count. Names and values are not looked at. Errors: kBadSetting with `path` and line.
Result<std::vector<SettingLine>> parse_settings_text(std::string_view text,
                                                     const std::string& path);

/// The same of a file; nothing where there is none. `warning` gets what is worth a line. Errors:
/// those of parse_settings_text(), kFileNotFound where the file is there and cannot be read.
Result<std::vector<SettingLine>> read_settings_file(const std::string& path, std::string* warning);

}  // namespace tracefire
