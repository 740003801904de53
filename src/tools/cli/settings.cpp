// SPDX-License-Identifier: Apache-2.0
// `tracefire settings`: every setting, its value, and who gave it.
#include "core/base/settings.h"

#include "core/base/text.h"
#include "tools/cli/command.h"

namespace tracefire::cli {
namespace {

struct Options {
  bool json = false;
  std::string name;
};

const char* type_name(SettingType type) {
  switch (type) {
    case SettingType::kFlag:
      return "flag";
    case SettingType::kInteger:
      return "integer";
    case SettingType::kReal:
      return "real";
    case SettingType::kText:
      return "text";
    case SettingType::kChoice:
      return "choice";
  }
  return "?";
}

std::string value_of(const SettingRow& row) { return setting_text(row.name).value(); }
const char* source_of(const SettingRow& row) {
  return setting_source_name(setting_source(row.name).value());
}

Json to_json(const SettingRow& row) {
  Json values;  // of a choice
  if (row.type == SettingType::kChoice) {
    values = Json::array();
    std::string_view rest = row.values;
    while (!rest.empty()) {
      const std::string_view one = rest.substr(0, rest.find('|'));
      values.push_back(std::string(one));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    }
  }
  return {{"name", row.name},
          {"type", type_name(row.type)},
          {"value", value_of(row)},
          {"default", row.fallback},
          {"source", source_of(row)},
          {"unit", *row.unit ? Json(row.unit) : Json()},
          {"values", std::move(values)},
          {"description", row.doc}};
}

std::string shown_value(const SettingRow& row) {
  const std::string value = value_of(row);
  if (value.empty()) return "(none)";
  return *row.unit ? value + " " + row.unit : value;
}

void print_table(const Context& context) {
  Console& console = context.console;
  Table table({"SETTING", "VALUE", "SET BY"});
  for (const SettingRow& row : kSettingTable) {
    table.row({row.name, shown_value(row), source_of(row)});
  }
  console.print(table.text(console));
}

void print_one(const Context& context, const SettingRow& row) {
  Console& console = context.console;
  console.print(console.styled(Style::kBold, row.name) + " = " + printable(shown_value(row), 4096) +
                "  (" + source_of(row) + ")\n\n");
  for (const std::string& line : wrapped(row.doc, console.prose_width())) {
    console.print(line + "\n");
  }
  std::string variable = std::string("TRACEFIRE_") + row.name;
  for (char& c : variable) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  Table facts({});
  const bool choice = row.type == SettingType::kChoice;
  facts.row({"type", choice ? std::string("one of ") + row.values : type_name(row.type)});
  facts.row({"default", *row.fallback ? row.fallback : "(none)"});
  facts.row({"environment", variable});
  console.print("\n" + facts.text(console));
}

const SettingRow& row_of(const std::string& name) {
  std::vector<std::string_view> names;
  for (const SettingRow& row : kSettingTable) {
    if (name == row.name) return row;
    names.push_back(row.name);
  }
  const std::string closest = closest_name(name, names);
  wrong_usage(
      "no setting is called '", printable(name), "'.",
      closest.empty() ? " `tracefire settings` lists them." : " Did you mean '" + closest + "'?");
}

}  // namespace

Command settings_command() {
  Command command;
  command.name = "settings";
  command.summary = "shows every setting, its value and where that comes from";
  command.text = {
      "Shows every setting with its value and what gave it: --set, the environment variable "
      "TRACEFIRE_NAME, the user's settings file, the system's, or the default; the first of these "
      "that speaks wins. With a NAME it tells what that setting means.",
      "A settings file has one `name = value` a line. The commands, the Python package and every "
      "program that links the library read files and variables the same way. A wrong value is an "
      "error where work begins, not a default."};
  command.examples = {{"tracefire settings", "All of them."},
                      {"tracefire settings matmul_precision", "What one means."},
                      {"TRACEFIRE_THREADS=4 tracefire settings --json",
                       "For programs, with types, units and descriptions."}};
  command.schema = "tracefire.setting-values/1";
  std::vector<std::string> names;
  for (const SettingRow& row : kSettingTable) names.push_back(row.name);
  command.words = {{"NAME", names}};
  command.sections.push_back({"SETTINGS", {}});
  for (const SettingRow& row : kSettingTable) {
    const std::string fallback = *row.fallback ? row.fallback : "empty";
    const std::string unit = *row.unit ? std::string(" ") + row.unit : "";
    command.sections[0].entries.push_back(
        {row.name, std::string(row.doc) + " Default: " + fallback + unit + "."});
  }
  command.define = [](CLI::App& app) -> Action {
    auto options = std::make_shared<Options>();
    app.add_option("NAME", options->name, "a setting");
    add_json_flag(app, options->json, "tracefire.setting-values/1");
    return [options](Context& context) -> int {
      if (!options->json) {
        options->name.empty() ? print_table(context) : print_one(context, row_of(options->name));
        return kSuccess;
      }
      Json document = context.document();
      document["settings"] = Json::array();
      for (const SettingRow& row : kSettingTable) {
        if (options->name.empty() || &row == &row_of(options->name)) {
          document["settings"].push_back(to_json(row));
        }
      }
      context.print(document);
      return kSuccess;
    };
  };
  return command;
}

}  // namespace tracefire::cli
