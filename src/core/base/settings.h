// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "settings_table.h"  // generated from schema/settings.json: settings::max_pending_nodes() …

namespace tracefire {

/// Who gave a setting its value; a later one in this list wins over an earlier one.
enum class SettingSource : uint8_t {
  kDefault,
  kSystemFile,   ///< /etc/tracefire/config, see settings_file.h
  kUserFile,     ///< tracefire/config below XDG_CONFIG_HOME or ~/.config
  kEnvironment,  ///< TRACEFIRE_NAME
  kFlag,         ///< of a command
  kCall,         ///< the running program
};

/// "default", "system file", "user file", "environment", "flag" or "call".
const char* setting_source_name(SettingSource source);

/// Gives the setting `name` the value written as `value` ("256", "true", "strict"). Where a
/// stronger source has spoken already, only checks it. Errors: kBadSetting, with what is allowed
/// and, for an unknown name, the closest one. Thread-safe.
Status set_setting(std::string_view name, std::string_view value,
                   SettingSource source = SettingSource::kCall);

/// What else the value of a text setting must fulfil; said by the code that reads it, while the
/// library is loaded. The value that the setting has by then is checked, too.
using SettingCheck = Status (*)(std::string_view value);
void set_setting_check(std::string_view name, SettingCheck check);

/// Called on the thread that changes the setting, after it did; for what is not read each time.
using SettingObserver = void (*)();
void observe_setting(std::string_view name, SettingObserver observer);

/// What is wrong in the environment and the settings files: whoever begins work gives the first of
/// it back, so that nothing runs with other settings than were asked for. A problem of one setting
/// is gone once the running program gives that setting a value. Thread-safe; cheap where all is
/// well.
Status settings_problem();
std::vector<Status> settings_problems();

/// What set_setting() would say, without setting anything.
Status check_setting(std::string_view name, std::string_view value);

/// Value of the setting as text, as set_setting() reads it.
Result<std::string> setting_text(std::string_view name);
Result<SettingSource> setting_source(std::string_view name);

/// Goes up with every change, so that what is derived from settings can be kept.
uint64_t settings_generation();

/// Forgets every value that was set and reads files and environment again. For tests.
void reset_settings();

}  // namespace tracefire
