// SPDX-License-Identifier: Apache-2.0
// `tracefire profile`: shows where a Tracefire program spends time and memory.
#include <cstdio>
#include <filesystem>

#include "tools/cli/command.h"
#include "tools/cli_engine/kernel_check.h"
#include "tools/inject/run.h"

namespace tracefire::cli {
namespace {

struct Options {
  std::vector<std::string> command;
  std::string out;
  bool json = false, quiet = false;
};

Json document_of(const Context& context, const ProfiledRun& run) {
  Json document = context.document();
  document["command"] = run.session.command;
  document["exit_status"] = run.session.ending.status;
  document["wall_us"] = static_cast<double>(run.session.wall_ns) / 1e3;
  document["processes"] = Json::array();
  for (size_t i = 0; i < run.profiles.size(); ++i) {
    Json process = Json::parse(run.profiles[i].json());
    const KernelCheck& check = run.checks[i];
    process["kernel_check"] = {{"state", check.state},
                               {"named", check.named},
                               {"confirmed", check.confirmed},
                               {"missing", check.missing},
                               {"reason", check.reason}};
    document["processes"].push_back(std::move(process));
  }
  return document;
}

std::string text_of(const ProfiledRun& run, const text::Look& look) {
  constexpr int kWidth = 80;  // where no terminal tells
  const int columns = look.width > 0 ? look.width : kWidth;
  if (run.profiles.empty()) {
    return "tracefire profile: no process left a profile. A program that uses Tracefire and ends "
           "by itself was expected; for programs of other frameworks use `tracefire prove -- "
           "PROGRAM`.\n";
  }
  std::string text;
  for (size_t i = 0; i < run.profiles.size(); ++i) {
    text += (i == 0 ? "" : "\n") + run.profiles[i].str(columns) +
            text::paragraph(run.checks[i].str(), columns, "", 2);
  }
  return text;
}

int profile(Context& context, const Options& options) {
  if (options.command.empty()) {
    wrong_usage("no program was given. `tracefire profile -- PROGRAM` was expected.");
  }
  const Result<std::string> folder = inject::make_folder(options.out);
  inject::RunOptions how;
  how.command = options.command;
  how.own_stdout = !options.json;
  how.version = context.build.version;
  if (folder.ok()) {
    how.folder = *folder;
  } else if (!options.out.empty()) {
    wrong_usage("--out: ", folder.status().message());
  } else {
    how.no_folder = folder.status().message();  // the program runs all the same
  }
  struct Temporary {
    std::string path;
    ~Temporary() {
      std::error_code ignored;
      if (!path.empty()) std::filesystem::remove_all(path, ignored);
    }
  } const temporary{options.out.empty() ? how.folder : ""};
  const ProfiledRun run = run_profiled(how);
  context.console.keep_status(run.session.ending.status);
  if (!run.session.ending.start_error.empty()) {
    context.console.say(concat_text("tracefire profile: ", options.command.front(), ": ",
                                    run.session.ending.start_error));
    return run.session.ending.status;
  }
  const std::string text = text_of(run, context.console.talk_look());
  if (!options.quiet) std::fputs(text.c_str(), stderr);
  if (options.json) context.print(document_of(context, run));
  std::string lost = run.lost;
  if (!options.out.empty() && lost.empty()) {
    try {
      for (const profiler::Profile& one : run.profiles) {
        one.write(*folder + "/processes/" + std::to_string(one.pid));
      }
      if (!run.profiles.empty()) run.profiles.front().write(*folder);
    } catch (const Error& failure) {
      lost = failure.what();
    }
  }
  if (!lost.empty()) {
    context.console.say(lost + ". The program ran all the same and the exit status is its own.",
                        "tracefire profile: the record is not kept: ");
  }
  return run.session.ending.status;
}

}  // namespace

Command profile_command() {
  Command command;
  command.name = "profile";
  command.summary = "runs a Tracefire program and says where its time and memory go";
  command.text = {
      "Runs a program that uses Tracefire, in C++ or Python, unchanged, and reads the records of "
      "its executor: time and share of each operation and kernel with its device, library and "
      "source line, programs and captured graphs, steps, time spent on input, memory over time "
      "and what held it at its peak. The report goes to stderr; the program keeps stdin and "
      "stdout, but with --json stdout is one JSON document and what the program prints there goes "
      "to stderr. Programs of other frameworks leave no such records: use `tracefire prove`.",
      "On a GPU, kernels inside captured graphs are timed by CUPTI, and the kernels that the "
      "records name are compared with those that the driver saw. Where CUPTI cannot be used, a "
      "few executions run outside the graph and are measured; the table says which it was.",
      "The exit status is the program's own: 128 + n where signal n ended it, 126 where it cannot "
      "be executed, 127 where it is not found. A process that is killed leaves no profile.",
      "With --out the folder gets profile.txt, profile.json, profile.html (one file, no scripts) "
      "and trace.json (for Perfetto) of the process with most work, and those of each process in "
      "processes/PID."};
  command.examples = {
      {"tracefire profile -- python train.py", "Runs and reports."},
      {"tracefire profile --out profile -- ./train --epochs 1", "Keeps the report in profile/."},
      {"tracefire profile --quiet --json -- ./train > profile.json",
       "For programs; what ./train prints on stdout goes to stderr."}};
  command.schema = "tracefire.profile/1";
  command.settings = UseOfSettings::kWithoutWrongOnes;
  command.define = [](CLI::App& app) -> Action {
    auto options = std::make_shared<Options>();
    app.add_option("COMMAND", options->command, "the program and its arguments, after --");
    add_path(app, "--out", options->out, "DIRECTORY",
             "keeps reports and records in a folder, which must be new or empty");
    app.add_flag("--quiet", options->quiet, "prints no report");
    add_json_flag(app, options->json, "tracefire.profile/1");
    return [options](Context& context) { return profile(context, *options); };
  };
  return command;
}

}  // namespace tracefire::cli
