// SPDX-License-Identifier: Apache-2.0
// `tracefire version`: what a report of a problem needs first.
#include "tools/cli/edition.h"

namespace tracefire::cli {
namespace {

std::string compiler() {
#if defined(__clang__)
  return std::string("Clang ") + __clang_version__;
#elif defined(__GNUC__)
  return std::string("GCC ") + __VERSION__;
#else
  return "unknown";
#endif
}

void print_json(const Context& context) {
  Json libraries = Json::array();
  for (const EngineLibrary& library : edition().libraries()) {
    libraries.push_back({{"name", library.name},
                         {"version", library.version.empty() ? Json() : Json(library.version)},
                         {"path", library.path}});
  }
  const std::string why = edition().why_no_gpu();
  Json document = context.document();
  document["version"] = context.build.version;
  document["commit"] = *context.build.commit ? Json(context.build.commit) : Json();
  document["compiler"] = compiler();
  document["engine"] = edition().engine;
  document["cuda_backend"] = edition().cuda_backend;
  document["libraries"] = std::move(libraries);
  document["why_no_gpu"] = why.empty() ? Json() : Json(why);
  context.print(document);
}

void print_text(const Context& context) {
  Table table({});
  table.row({"tracefire", context.build.version}, Style::kBold);
  table.row({"commit", *context.build.commit ? context.build.commit : "unknown"}, Style::kBold);
  table.row({"compiler", compiler()}, Style::kBold);
  if (!edition().engine) table.row({"engine", "none: these are the tools alone"}, Style::kBold);
  for (const EngineLibrary& library : edition().libraries()) {
    table.row({library.name, library.version.empty() ? "unknown version" : library.version},
              Style::kBold);
  }
  if (const std::string why = edition().why_no_gpu(); !why.empty())
    table.row({"GPU", "none used: " + why}, Style::kBold);
  context.console.print(table.text(context.console));
}

}  // namespace

Command version_command() {
  Command command;
  command.name = "version";
  command.summary = "shows the version of Tracefire, its build and its libraries";
  command.text = {
      "Shows the version, the commit it was built from (with +changes where files differed), the "
      "compiler, and the libraries in use with the versions that they tell themselves: what a "
      "report of a problem needs first. `tracefire --version` prints the version alone."};
  command.examples = {{"tracefire version", "The table."},
                      {"tracefire version --json", "For programs and reports."}};
  command.schema = "tracefire.version/1";
  command.define = [](CLI::App& app) -> Action {
    auto json = std::make_shared<bool>(false);
    add_json_flag(app, *json, "tracefire.version/1");
    return [json](Context& context) -> int {
      *json ? print_json(context) : print_text(context);
      return kSuccess;
    };
  };
  return command;
}

}  // namespace tracefire::cli
