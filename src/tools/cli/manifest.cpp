// SPDX-License-Identifier: Apache-2.0
// `tracefire manifest`: what results are made with on this machine.
#include "tools/cli/command.h"
#include "tools/cli/edition.h"

namespace tracefire::cli {

Command manifest_command() {
  Command command;
  command.name = "manifest";
  command.summary = "prints what results are made with: versions, devices, settings";
  command.text = {
      "Prints one JSON document: the version and commit of tracefire, the platform, the driver, "
      "every GPU, NVIDIA's libraries with their versions and files, the precision, and the "
      "settings that differ from their defaults. The demo and programs that call "
      "tracefire.manifest() keep the same with their results."};
  command.examples = {
      {"tracefire manifest > manifest.json", "Keeps it."},
      {"tracefire manifest --set matmul_precision=highest", "As it is with this setting."}};
  command.schema = "tracefire.manifest/1";
  command.define = [](CLI::App& app) -> Action {
    auto json = std::make_shared<bool>(false);
    add_json_flag(app, *json, "tracefire.manifest/1")
        ->description(
            "changes nothing: it is always one JSON document (schema "
            "tracefire.manifest/1)");
    return [json](Context& context) -> int {
      context.console.print(edition().manifest(context.build.commit) + "\n");
      return kSuccess;
    };
  };
  return command;
}

}  // namespace tracefire::cli
