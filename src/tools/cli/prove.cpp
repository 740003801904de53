// SPDX-License-Identifier: Apache-2.0
// `tracefire prove`: runs any program and proves whether it used the GPU.
#include "tools/inject/prove.h"

#include "tools/cli/command.h"

namespace tracefire::cli {
namespace {

constexpr int64_t kLongestBeat = 60'000;  // milliseconds

struct Options {
  inject::ProveRequest request;
  std::string graphs;  ///< "": node
  int64_t beat_ms = 0, seconds = 0;
};

/// Exactly one thing is to be done, and nothing that was given is left unused.
void check(const Options& o) {
  const inject::ProveRequest& r = o.request;
  const int modes = (r.from.empty() ? 0 : 1) + (r.attach > 0 ? 1 : 0) + (r.print_env ? 1 : 0) +
                    (r.command.empty() || r.print_env ? 0 : 1);
  if (modes == 0) wrong_usage("no program was given. `tracefire prove -- PROGRAM` was expected.");
  if (modes > 1) wrong_usage("a program, --from, --attach and --print-env exclude each other.");
  if (r.print_env && r.out.empty()) {
    wrong_usage("--print-env needs --out: the folder that the records go to.");
  }
  if (r.print_env && r.json) wrong_usage("--print-env and --json exclude each other.");
  const bool records = r.from.empty() && r.attach == 0;
  if (!records && (!o.graphs.empty() || o.beat_ms > 0 || r.window_limit >= 0)) {
    wrong_usage("--graphs, --beat and --limit say how a program is recorded. They do not go with ",
                r.attach > 0 ? "--attach." : "--from.");
  }
  if (r.print_env && (r.quiet || !r.require.empty())) {
    wrong_usage("--quiet and --require are about a report. They do not go with --print-env.");
  }
  if (o.seconds > 0 && r.attach == 0) wrong_usage("--seconds goes with --attach only.");
  if (o.beat_ms > kLongestBeat) {
    wrong_usage("--beat was given ", o.beat_ms, ". At most ", kLongestBeat, " were expected.");
  }
}

void add_options(CLI::App& app, Options& o) {
  inject::ProveRequest& r = o.request;
  app.add_option("COMMAND", r.command, "the program and its arguments, after --");
  add_path(app, "--out", r.out, "DIRECTORY",
           "keeps records and reports in a folder, which must be new or empty");
  add_path(app, "--from", r.from, "DIRECTORY", "analyses again what --out kept");
  add_number(app, "--attach", r.attach, 1, "watches a process that runs already, by sampling")
      ->type_name("PID");
  add_number(app, "--seconds", o.seconds, 0, "how long --attach watches; 0: until it ends");
  app.add_flag("--print-env", r.print_env,
               "prints the variables and lines that trace a program elsewhere: sudo, ssh, sbatch, "
               "kubectl");
  add_choice(app, "--require", r.require, {"on-gpu", "partly-on-gpu"},
             "the exit status is 3 where the program succeeded but the verdict is less");
  add_choice(app, "--graphs", o.graphs, {"node", "graph"},
             "CUDA graphs: node shows their kernels, graph only the whole");
  add_number(app, "--limit", r.window_limit, 0, "most bytes of single events a process");
  add_number(app, "--beat", o.beat_ms, 10, "milliseconds between two collections of records");
  app.add_flag("--quiet", r.quiet, "prints no report");
  add_json_flag(app, r.json, "tracefire.prove/1");
}

}  // namespace

Command prove_command() {
  Command command;
  command.name = "prove";
  command.summary = "proves whether a program used the GPU, and shows what slowed it";
  command.text = {
      "Runs a program and its children, unchanged, with a library that records what the CUDA "
      "driver reports: which kernels ran in which process and how long, copies, memory, the time "
      "in which the GPU waited and why. It ends with a verdict (on-gpu, partly-on-gpu, on-cpu) and "
      "with what to do next. The report goes to stderr; the program keeps stdin and stdout. With "
      "--json stdout is one JSON document and nothing else: what the program prints there goes to "
      "stderr. --out keeps the same document as report.json and leaves stdout to the program.",
      "The exit status is the program's own: 128 + n where signal n ended it, 126 where it cannot "
      "be executed, 127 where it is not found; 3 where --require is missed. A folder of --out that "
      "cannot be made is refused (2) before the program runs; where records or reports are lost "
      "later, the program's status stays, and stderr says what is not kept.",
      "With --out the folder gets report.txt, report.json, report.html (one file, no scripts), "
      "trace.json (for Perfetto), and the records, which --from analyses again. docker, podman, "
      "nerdctl and apptainer get the options that bring the recording into the container.",
      "The proof is evidence, not attestation: it shows what the driver reported to this user's "
      "own processes."};
  command.examples = {
      {"tracefire prove -- python train.py --epochs 1", "Runs and reports."},
      {"tracefire prove --require on-gpu --quiet -- python train.py",
       "Fails where the CPU did it."},
      {"tracefire prove --out proof -- torchrun --nproc-per-node 2 train.py",
       "All ranks in one report, kept in proof/."},
      {"tracefire prove --attach 4711 --seconds 30", "Looks at a running process from outside."}};
  command.schema = "tracefire.prove/1";
  command.settings = UseOfSettings::kWithoutWrongOnes;
  command.define = [](CLI::App& app) -> Action {
    auto options = std::make_shared<Options>();
    add_options(app, *options);
    return [options](Context& context) -> int {
      check(*options);
      inject::ProveRequest request = options->request;
      request.own_stdout = !request.json;
      request.graphs_by_node = options->graphs != "graph";
      request.beat_ms = static_cast<int>(options->beat_ms);
      request.seconds = static_cast<double>(options->seconds);
      request.out_look = context.console.look();
      request.err_look = context.console.talk_look();
      request.version = context.build.version;
      request.commit = context.build.commit;
      return inject::prove(request);
    };
  };
  return command;
}

}  // namespace tracefire::cli
