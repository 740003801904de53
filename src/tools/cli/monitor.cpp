// SPDX-License-Identifier: Apache-2.0
// `tracefire monitor`: the monitor's own table of options, given to the parser.
#include "tools/monitor/monitor.h"

#include <memory>

#include "tools/cli/command.h"

namespace tracefire::cli {
namespace {

/// Gives one value to the monitor's option; its refusal becomes ours.
void set(monitor::Options& options, const monitor::OptionRow& row, const std::string& value) {
  const Status status = row.set(options, value);
  if (!status.ok()) throw UsageError{status.message()};
}

void add(CLI::App& app, monitor::Options& options, const monitor::OptionRow& row) {
  // The help's first line shows the name that stands last.
  const std::string aliases = row.aliases;
  const std::string names = (aliases.empty() ? "" : aliases.substr(1) + ",") + row.name;
  if (row.value[0] == '\0') {
    app.add_flag_function(
           names, [&options, &row](int64_t) { set(options, row, ""); }, row.help)
        ->group(row.group);
    return;
  }
  CLI::Option* option = nullptr;
  if (row.repeated) {
    const auto read = [&options, &row](const std::vector<std::string>& given) {
      for (const std::string& value : given) set(options, row, value);
    };
    option = app.add_option_function<std::vector<std::string>>(names, read, row.help);
    option->allow_extra_args(false);
  } else {
    const auto read = [&options, &row](const std::string& value) { set(options, row, value); };
    option = app.add_option_function<std::string>(names, read, row.help)->take_last();
    if (row.optional_value) option->expected(0, 1);
  }
  option->type_name(row.value)->group(row.group);
}

}  // namespace

Command monitor_command() {
  Command command;
  command.name = "monitor";
  command.summary = "shows what the GPUs of this machine do, for any framework";
  command.text = {
      "Reads NVML and /proc, and shows GPUs, MIG instances and processes: a live view in a "
      "terminal, "
      "one look as text, JSON or CSV, a log that is rotated, a web page with charts, metrics for "
      "Prometheus, alerts. What could not be read is named, never zero. The view needs no "
      "privileges; other users' processes may be hidden from it.",
      "A GPU is healthy where a kernel ran in at least 70 % of the last minute, and low below 30 "
      "%; "
      "the likely cause is named. --serve listens on 127.0.0.1:9422 and answers GET and HEAD only: "
      "nothing can be changed from there. docs/monitor.md tells more.",
      "Exit status 1: NVML could not be read, and the answer says why. 3: --fail-on-alert saw an "
      "alert."};
  for (const monitor::UsageExample& example : monitor::usage_examples()) {
    command.examples.push_back({example.command, example.words});
  }
  command.schema = "tracefire.monitor/1";
  command.settings = UseOfSettings::kWithoutWrongOnes;
  command.define = [](CLI::App& app) -> Action {
    auto options = std::make_shared<monitor::Options>();
    for (const monitor::OptionRow& row : monitor::option_rows()) add(app, *options, row);
    return [options](Context& context) -> int {
      const Status status = monitor::check_options(*options);
      if (!status.ok()) throw UsageError{status.message()};
      const bool colors = context.console.styled(Style::kBold, "x") != "x";
      options->color = colors ? monitor::ColorChoice::kAlways : monitor::ColorChoice::kNever;
      return monitor::run(*options, {context.build.version, context.build.commit});
    };
  };
  return command;
}

}  // namespace tracefire::cli
