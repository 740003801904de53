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

/// Where the commands look, the weaker first: /etc/tracefire/config, then tracefire/config below
/// XDG_CONFIG_HOME or, where that is unset or relative, below ~/.config. Without HOME, the first
/// alone.
std::vector<SettingsFile> settings_files();

/// Applies a settings file's text: one `name = value` a line, read as set_setting() reads it; blank
/// lines and lines that begin with # do not count. Nothing is applied where anything is wrong.
/// Errors: kBadSetting with `path` and line.
Status apply_settings_text(std::string_view text, const std::string& path, SettingSource source);

/// Reads and applies one file; one that does not exist is no error. Errors: those of
/// apply_settings_text(), kFileNotFound where the file is there and cannot be read.
Status read_settings_file(const SettingsFile& file);

}  // namespace tracefire
