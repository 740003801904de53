// SPDX-License-Identifier: Apache-2.0
// `tracefire demo`: trains a small network on scanned digits and says where it ran. The same
// network, split and output as python/tracefire/demo.py, through the C++ library alone.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "tools/cli/command.h"
#include "tools/cli_engine/demo_report.h"
#include "tools/cli_engine/interrupt.h"
#include "tracefire/config.h"
#include "tracefire/nn.h"
#include "tracefire/observe.h"

namespace tracefire::cli {
namespace {

constexpr double kLeastAccuracy = 0.95;
constexpr int64_t kTestEvery = 5;  // every fifth row is kept for the test

struct Options {
  int64_t epochs = 40, batch = 64, seed = 1;
  std::optional<std::string> json, html;  ///< files
  std::vector<std::string> command;       ///< runs instead of this demo, for the report
  std::vector<CLI::Option*> own;          ///< what only this demo takes
  bool own_given() const {
    return std::any_of(own.begin(), own.end(), [](CLI::Option* o) { return o->count() > 0; });
  }
};

nn::Sequential make_model() {
  nn::Sequential model({nn::Dense(128, nn::relu), nn::Dropout(0.2), nn::Dense(64, nn::relu),
                        nn::Dense(10, nn::softmax)});
  model.compile({.optimizer = optim::Adam(),
                 .loss = nn::SparseCategoricalCrossentropy(),
                 .metrics = {nn::SparseCategoricalAccuracy()}});
  return model;
}

std::string device_names() {
  std::string names;
  for (const DeviceDescription& device : list_devices()) {
    names += (names.empty() ? "" : ", ") + device.device.str();
  }
  return names;
}

/// On stderr, why the exit status is 1.
void say_what_is_missing(const Console& console, double accuracy) {
  if (accuracy >= kLeastAccuracy) return;
  char text[160];
  std::snprintf(text, sizeof text,
                "tracefire: the accuracy %.4f is below %.2f, so the exit status is 1. More epochs "
                "help: 40 are enough (--epochs 40).",
                accuracy, kLeastAccuracy);
  console.say(text);
}

/// Trains; after Ctrl-C says how far it came before the error goes on.
void train(nn::Model& model, const data::Dataset& digits, const Options& options,
           const Console& console) {
  const InterruptScope interrupts;
  try {
    model.fit(digits, {.batch_size = options.batch, .epochs = options.epochs});
  } catch (const Error& failure) {
    const std::vector<nn::Report>& done = model.history().epochs;
    if (failure.kind() == ErrorKind::kCancelled && !done.empty()) {
      console.say(concat_text("finished ", done.size(), " of ", options.epochs,
                              " epochs: ", done.back().str()));
    }
    throw;
  }
}

Json document_of(const Context& context, const Options& options, double accuracy,
                 const Proof& proof, const data::Dataset& train, const data::Dataset& test,
                 const nn::History& history) {
  const std::string why = why_no_gpu();
  Json document = context.document();
  document["accuracy"] = std::round(accuracy * 1e4) / 1e4;
  document["verdict"] = to_text(proof.verdict);
  document["sizes"] = {{"train", train.rows()},
                       {"test", test.rows()},
                       {"pixels", train.x.shape()[1].value()},
                       {"classes", 10}};
  document["epochs"] = options.epochs;
  document["batch"] = options.batch;
  document["devices"] = Json::array();
  for (const DeviceDescription& device : list_devices()) {
    document["devices"].push_back(device.device.str());
  }
  document["why_no_gpu"] = why;
  document["history"] = Json::array();
  for (const nn::Report& epoch : history.epochs) {
    Json figures = Json::object();
    for (const auto& [name, value] : epoch.figures()) figures[name] = value;
    document["history"].push_back(std::move(figures));
  }
  document["proof"] = Json::parse(proof.json());
  ManifestFacts facts;
  facts.commit = context.build.commit;
  facts.seed = static_cast<uint64_t>(options.seed);
  document["manifest"] = Json::parse(manifest(facts));
  return document;
}

int run(const Context& context, const Options& options) {
  const Console& console = context.console;
  console.say("devices: " + device_names());
  if (const std::string why = why_no_gpu(); !why.empty()) console.say("no GPU is used: " + why);
  reset_proof();
  nn::set_seed(static_cast<uint64_t>(options.seed));
  const auto [training, test] = data::split_every(data::digits(), kTestEvery);
  nn::Sequential model = make_model();
  train(model, training, options, console);
  const double accuracy = model.evaluate(test, {.batch_size = options.batch})["accuracy"];
  const Proof after = proof();
  char last[64];
  std::snprintf(last, sizeof last, "accuracy %.4f\nverdict ", accuracy);
  context.console.print(after.str() + "\n" + last + to_text(after.verdict) + "\n");
  if (options.json) {
    const Json document =
        document_of(context, options, accuracy, after, training, test, model.history());
    try {
      write_file(*options.json,
                 document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
    } catch (const Error&) {
      context.console.flush();  // the result is not lost with the file
      throw;
    }
  }
  say_what_is_missing(console, accuracy);
  return accuracy >= kLeastAccuracy ? kSuccess : kFailure;
}

/// The program that is reported on, without --json FILE.
std::vector<std::string> own_command(const Options& options) {
  if (!options.command.empty()) return options.command;
  std::error_code unknown;
  return {std::filesystem::read_symlink("/proc/self/exe", unknown).string(),
          "demo",
          "--epochs",
          std::to_string(options.epochs),
          "--batch",
          std::to_string(options.batch),
          "--seed",
          std::to_string(options.seed)};
}

}  // namespace

Command demo_command() {
  Command command;
  command.name = "demo";
  command.summary = "trains a network on scanned digits and says where every step ran";
  command.text = {
      "Shows the devices, and why no GPU is used where that is so; trains a network of three "
      "layers "
      "on the 1,797 scanned digits that come with the library; prints which operation ran on which "
      "device by which kernel. Every fifth digit is kept for the test.",
      "The last two lines on stdout are `accuracy 0.NNNN` and `verdict WORD`, where WORD is "
      "on-gpu, "
      "partly-on-gpu or on-cpu. The exit status is 1, with a line on stderr that says so, where "
      "the "
      "accuracy is below 0.95. Talk and progress go to stderr."};
  command.examples = {{"tracefire demo", "Trains for 40 epochs."},
                      {"tracefire demo --epochs 10 --json demo.json",
                       "Trains for ten, and keeps the result in a file."},
                      {"tracefire demo --html demo.html", "Also writes a report to look at."}};
  command.schema = "tracefire.demo/1";
  command.define = [](CLI::App& app) -> Action {
    auto options = std::make_shared<Options>();
    options->own.push_back(add_number(app, "--epochs", options->epochs, 1,
                                      "how often each digit is seen (default 40)"));
    options->own.push_back(
        add_number(app, "--batch", options->batch, 1, "digits a step (default 64)"));
    options->own.push_back(add_number(
        app, "--seed", options->seed, 0,
        "start of the random numbers (default 1): the same seed trains the same network"));
    app.add_option("--json", options->json,
                   "also writes the result there, as schema/cli/demo.json describes it")
        ->type_name("FILE")
        ->take_last();
    app.add_option("--html", options->html,
                   "runs the demo as a program of its own under the profiler and writes a report "
                   "there: one file, no scripts")
        ->type_name("FILE")
        ->take_last();
    app.add_option("COMMAND", options->command,
                   "with --html: a program that does the same and takes --json, after --");
    return [options](Context& context) {
      if (!options->html && !options->command.empty()) {
        wrong_usage("a program was given without --html, which reports on it.");
      }
      if (!options->command.empty() && options->own_given()) {
        wrong_usage(
            "--epochs, --batch and --seed are the demo's own. A program was given, which "
            "takes its options after its name.");
      }
      if (options->json && options->html && is_same_file(*options->json, *options->html)) {
        wrong_usage("--json and --html were both given '", printable(*options->json),
                    "'. Two files were expected.");
      }
      if (options->json) check_output("--json", *options->json);  // not after minutes of training
      if (!options->html) return run(context, *options);
      check_output("--html", *options->html);
      return run_and_report(context, own_command(*options), options->json.value_or(""),
                            *options->html);
    };
  };
  return command;
}

}  // namespace tracefire::cli
