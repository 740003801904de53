// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/common.h"

#include "core/base/settings.h"
#include "tools/cli/edition.h"

namespace tracefire::cli {

CommandPage program_page() {
  CommandPage page;
  page.summary = edition().summary;
  page.text = {edition().text};
  page.examples = edition().examples;
  page.sections = {
      {"EXIT STATUS",
       {{"0", "the command did what was asked"},
        {"1", "it failed; standard error says why, with the code of the error"},
        {"2", "it was used wrongly"},
        {"130", "it was interrupted with Ctrl-C"},
        {"141", "the reader of its output went away"}}},
      {"ENVIRONMENT",
       {{"TRACEFIRE_NAME",
         "value of the setting NAME, in capitals: TRACEFIRE_THREADS=4. `tracefire settings` lists "
         "them. --set wins over it, and it wins over the files."},
        {"NO_COLOR", "where it is not empty, no colours unless --color always"},
        {"TERM", "dumb: no colours"},
        {"COLUMNS", "width of a terminal that does not tell it"},
        {"XDG_CONFIG_HOME", "folder of the user's settings file, if not ~/.config"}}},
      {"FILES",
       {{"~/.config/tracefire/config",
         "settings of the user, one `name = value` a line; lines that begin with # are comments"},
        {"/etc/tracefire/config", "the same for every user; the user's file wins over it"}}},
  };
  return page;
}

std::map<std::string, std::vector<std::string>> common_option_words() {
  std::vector<std::string> settings;
  for (const SettingRow& row : kSettingTable) settings.push_back(std::string(row.name) + "=");
  return {{"NAME=VALUE", settings}};
}

}  // namespace tracefire::cli
