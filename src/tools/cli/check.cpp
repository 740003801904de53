// SPDX-License-Identifier: Apache-2.0
// `tracefire check`: the three steps on one page. See what is here (the doctor), observe where a
// product runs, monitor a program (the proof and NVML together).
#include "tools/cli/check.h"

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <sstream>
#include <thread>

#include "tools/cli/edition.h"
#include "tools/doctor/doctor.h"
#include "tools/doctor/live/child.h"
#include "tools/inject/escape.h"
#include "tools/inject/launch.h"
#include "tools/inject/prove.h"
#include "tools/inject/run.h"
#include "tools/monitor/judge/health.h"
#include "tools/monitor/sample/nvml_source.h"
#include "tools/monitor/sample/sampler.h"

namespace tracefire::cli {
namespace {

constexpr std::chrono::milliseconds kLook{250};
constexpr size_t kMostPoints = 3600;
constexpr int kProductSeconds = 120;

struct Options {
  bool json = false, no_tests = false, quiet = false;
  std::optional<std::string> html;
  std::string framework, require;
  std::vector<std::string> command;
};

Json parsed(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  return json.is_object() ? json : Json();
}

int see(const Options& options, const Console& console, CheckResult* result) {
  if (!options.quiet) console.say("1 of 3: looking at this machine");
  std::vector<std::string> words = {"--json"};
  if (options.no_tests) words.push_back("--no-tests");
  if (!options.framework.empty()) words.push_back("--framework=" + options.framework);
  std::ostringstream out, talk;
  std::vector<doctor::ProductTrial> products;
  const int status = doctor::doctor_main(words, out, talk, {}, &products);
  result->doctor = parsed(out.str());
  if (status == kWrongUsage) {
    throw UsageError{result->doctor.value("summary", std::string("the doctor gave no answer"))};
  }
  for (const doctor::ProductTrial& product : products) {
    result->products.push_back(
        {product.framework, product.device, "", product.problem, product.flops_per_second, 0});
  }
  return status;
}

/// The product in a process of its own, whose memory on the GPU is gone when the program runs.
MatmulTrial try_matmul_apart(const std::string& version) {
  const doctor::ChildResult child = doctor::run_child(
      [&] {
        const MatmulTrial trial = edition().try_matmul(version);
        const Json told = {trial.device, trial.placement, trial.problem, trial.flops_per_second,
                           trial.peak};
        return told.dump(-1, ' ', false, Json::error_handler_t::replace);
      },
      kProductSeconds);
  MatmulTrial trial;
  trial.framework = "Tracefire " + version;
  const Json told = Json::parse(child.output, nullptr, false);
  if (child.ok() && told.is_array() && told.size() == 5) {
    trial.device = told[0].get<std::string>();
    trial.placement = told[1].get<std::string>();
    trial.problem = told[2].get<std::string>();
    trial.flops_per_second = told[3].get<double>();
    trial.peak = told[4].get<double>();
  } else {
    const std::string trouble = child.trouble(kProductSeconds);
    trial.problem = trouble.empty() ? inject::printable(child.output) : trouble;
  }
  return trial;
}

void observe(const Options& options, const Context& context, CheckResult* result) {
  if (!options.no_tests && edition().try_matmul != nullptr) {
    if (!options.quiet) context.console.say("2 of 3: computing a matrix product of 5000 x 5000");
    result->products.insert(result->products.begin(), try_matmul_apart(context.build.version));
  }
  // Asking for peaks starts the driver here, after which no child of this process could use it.
  for (MatmulTrial& trial : result->products)
    if (trial.peak <= 0 && trial.problem.empty()) trial.peak = peak_of(trial.device);
}

double known(const monitor::Reading& reading) { return reading.ok() ? reading.value : -1; }

WatchedGpu watched(const monitor::Gpu& gpu, const std::vector<monitor::Point>& points) {
  WatchedGpu out;
  out.index = gpu.index;
  out.name = gpu.name;
  out.uuid = gpu.uuid;
  out.memory_total = known(gpu[monitor::Metric::kMemoryTotal]);
  double busy = 0;
  int told = 0;
  for (const monitor::Point& point : points) {
    const bool has_busy = !std::isnan(point.busy);
    out.busy_points.push_back(has_busy ? point.busy : -1);
    if (has_busy) busy += point.busy;
    if (has_busy) ++told;
    if (!std::isnan(point.memory) && out.memory_total > 0) {
      out.memory_used = std::max(out.memory_used, point.memory * out.memory_total);
    }
    if (!std::isnan(point.power)) out.power = std::max(out.power, double{point.power});
    if (!std::isnan(point.temperature)) {
      out.temperature = std::max(out.temperature, double{point.temperature});
    }
  }
  out.grade = "unknown";
  if (told > 0) {
    out.busy = busy / told;
    out.grade = health::kGradeNames[static_cast<size_t>(health::grade_of(out.busy))];
  }
  // The cause while it ran: its processes are gone from the last look of all.
  out.words = monitor::health_words(monitor::judge(gpu, points));
  return out;
}

/// What the GPUs do while this lives. A GPU is judged as it was last seen with a process on it:
/// the program's are gone at the end.
class Watch {
 public:
  Watch()
      : history_(std::make_shared<monitor::History>(kMostPoints)),
        sampler_(std::make_shared<monitor::NvmlSource>(), history_, kLook) {
    sampler_.start();
    reader_ = std::thread([this] { follow(); });
  }
  ~Watch() { end(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void take(CheckResult* result) {
    end();
    if (!read_any_) {
      result->monitor_problem = "the program ended before the GPUs were looked at";
      return;
    }
    result->monitor_problem = problem_;
    for (const auto& [index, gpu] : last_) {
      result->gpus.push_back(
          watched(gpu, history_->points(monitor::history_key(gpu), kMostPoints)));
    }
  }

 private:
  void follow() {
    uint64_t sequence = 0;
    while (!ended_) {
      const auto snapshot = history_->wait_for(sequence, 2 * kLook);
      if (snapshot == nullptr || snapshot->sequence == sequence) continue;
      sequence = snapshot->sequence;
      read_any_ = true;
      problem_ = snapshot->problem;
      for (const monitor::Gpu& gpu : snapshot->gpus) {
        const auto known = last_.find(gpu.index);
        if (known == last_.end()) {
          last_.emplace(gpu.index, gpu);
        } else if (!gpu.processes.empty() || known->second.processes.empty()) {
          known->second = gpu;
        }
      }
    }
  }
  void end() {
    ended_ = true;
    history_->stop();
    if (reader_.joinable()) reader_.join();
  }

  const std::shared_ptr<monitor::History> history_;
  monitor::Sampler sampler_;
  std::atomic<bool> ended_{false};
  std::thread reader_;
  // Written by the reader's thread until it has ended.
  bool read_any_ = false;
  std::string problem_;
  std::map<int, monitor::Gpu> last_;
};

int monitor_program(const Options& options, const Context& context, CheckResult* result) {
  if (!options.quiet) context.console.say("3 of 3: running the program, recorded and monitored");
  inject::ProveRequest request;
  request.command = options.command;
  request.require = options.require;
  request.quiet = true;
  request.own_stdout = !options.json;
  request.version = context.build.version;
  request.commit = context.build.commit;
  std::string proof;
  Watch watch;
  const int status = inject::prove(request, &proof);
  watch.take(result);
  result->proof = parsed(proof);
  return status;
}

int run(Context& context, const Options& options) {
  if (options.command.empty() && !options.require.empty()) {
    wrong_usage(
        "--require was given without a program, whose verdict it is about. `tracefire "
        "check --require ",
        options.require, " -- PROGRAM` was expected.");
  }
  if (options.html) check_output("--html", *options.html, Readers::kOwner);
  // A document holds all three steps; a person is told at once.
  if (const int problem = options.command.empty() || options.json
                              ? 0
                              : inject::find_program(options.command.front()).problem) {
    context.console.say(options.command.front() + ": " + std::strerror(problem),
                        "tracefire check: ");
    return problem == ENOENT ? inject::kCommandNotFound : inject::kCannotExecute;
  }
  CheckResult result;
  result.command = inject::redacted_words(options.command);
  result.exit_status = see(options, context.console, &result);
  observe(options, context, &result);
  if (!options.command.empty()) {
    result.exit_status = monitor_program(options, context, &result);
    context.console.keep_status(result.exit_status);
  }
  if (options.html) {
    try {
      write_file(*options.html, check_html(result), Readers::kOwner);
    } catch (const Error& lost) {
      if (options.command.empty()) throw;
      // A program has ended and its status is not lost.
      context.console.say(lost.what(), "tracefire check: the page is lost: ");
    }
  }
  if (options.json) context.print(check_json(context, result));
  if (options.quiet || options.json) return result.exit_status;
  if (options.command.empty()) {
    context.console.print(check_text(result, context.console.look()));
  } else {
    // stdout is the program's.
    context.console.print_talk(check_text(result, context.console.talk_look()));
  }
  return result.exit_status;
}

void add_options(CLI::App& app, Options& o) {
  app.add_option("COMMAND", o.command, "a program and its arguments, after --");
  add_json_flag(app, o.json, "tracefire.check/1");
  app.add_option("--html", o.html, "also writes the page as one HTML file, readable by its owner")
      ->type_name("FILE")
      ->take_last();
  add_choice(app, "--framework", o.framework, {"tensorflow", "torch", "jax", "keras", "tracefire"},
             "asks the doctor about one framework");
  add_choice(app, "--require", o.require, {"on-gpu", "partly-on-gpu"},
             "the exit status is 3 where the program succeeded but the verdict is less");
  app.add_flag("--no-tests", o.no_tests, "does not try the GPU out and computes no matrix product");
  app.add_flag("--quiet", o.quiet, "prints no page and says nothing of its steps");
}

}  // namespace

Command check_command() {
  Command command;
  command.name = "check";
  command.summary = "checks whether the GPU can be used, is used and is kept busy";
  command.text = {
      "Three steps. See: what `tracefire doctor` finds here. Observe: a matrix product of 5000 x "
      "5000 in "
      "Tracefire and, on a machine with a GPU, in each framework that the doctor found, with the "
      "device that it reports, judged by its rate against the device's peak. Monitor: the program "
      "after --, run unchanged under `tracefire prove` while the GPUs are watched.",
      "Without a program the page goes to standard output and the exit status is the doctor's: 0 "
      "gpu-ok, 1 gpu-broken, 3 gpu-degraded, 4 cpu-only. With one, the program keeps standard "
      "output, the page goes to standard error, and the exit status is the program's own, 126, 127 "
      "or 128 + n as with `tracefire prove`. With --json stdout is one JSON document and nothing "
      "else: what the program prints there goes to stderr. Without a GPU the program runs all the "
      "same."};
  command.examples = {{"tracefire check", "This machine, and where a matrix product runs."},
                      {"tracefire check --html check.html -- python train.py --epochs 1",
                       "Everything about a run, kept as a page."},
                      {"tracefire check --require on-gpu --json -- python train.py > check.json",
                       "For programs; fails where the CPU did the work."}};
  command.schema = "tracefire.check/1";
  command.settings = UseOfSettings::kAll;
  command.define = [](CLI::App& app) -> Action {
    auto options = std::make_shared<Options>();
    add_options(app, *options);
    return [options](Context& context) { return run(context, *options); };
  };
  return command;
}

}  // namespace tracefire::cli
