// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/monitor.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/log.h"
#include "tools/monitor/judge/webhook.h"
#include "tools/monitor/live/live.h"
#include "tools/monitor/live/terminal.h"
#include "tools/monitor/sample/nvml_source.h"
#include "tools/monitor/show/escape.h"
#include "tools/monitor/show/format.h"
#include "tools/monitor/show/log_file.h"
#include "tools/monitor/show/query_gpu.h"
#include "tools/monitor/show/report.h"
#include "tools/monitor/web/pages.h"

namespace tracefire::monitor {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// Rates need two samples; half a second apart, the counters of the GPU are fresh.
constexpr milliseconds kOnceGap{500};
/// How long one look may take before the answer is given without it.
constexpr milliseconds kOncePatience{10000};
constexpr milliseconds kTick{200};

std::atomic<int> end_signal{0};
void on_end(int signal) { end_signal = signal; }

/// Messages repeat what the command line and the driver said: they go through the filter too.
void say(const std::string& text) { log_line(LogLevel::kError, escape(text, Sink::kLog)); }

/// Writes everything, or tells that the reader is gone.
class Output {
 public:
  /// False: nobody reads any more.
  bool write(const std::string& text) {
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
      if (n < 0 && errno == EINTR) {
        if (end_signal != 0) return false;
        continue;
      }
      if (n < 0 && errno == EAGAIN) {
        pollfd p{STDOUT_FILENO, POLLOUT, 0};
        poll(&p, 1, 1000);
        if (end_signal != 0) return false;
        continue;
      }
      if (n <= 0) {
        status_ = errno == EPIPE ? kBrokenPipe : kUnreadable;
        if (errno != EPIPE) say(std::string("stdout cannot be written: ") + std::strerror(errno));
        return false;
      }
      done += static_cast<size_t>(n);
    }
    return true;
  }
  /// What the program ends with: kSuccess but where something could not be written.
  ExitStatus status() const { return status_; }

 private:
  ExitStatus status_ = kSuccess;
};

/// Reads only the GPUs that --gpus names.
class ChosenGpus : public Source {
 public:
  ChosenGpus(std::unique_ptr<Source> source, std::vector<std::string> names)
      : source_(std::move(source)), names_(std::move(names)) {}
  void read(Snapshot* snapshot) override {
    source_->read(snapshot);
    if (names_.empty() || !snapshot->problem.empty()) return;
    std::string unknown;
    for (const std::string& name : names_) {
      const bool found = std::any_of(snapshot->gpus.begin(), snapshot->gpus.end(),
                                     [&](const Gpu& gpu) { return matches(gpu, name); });
      if (!found) unknown += (unknown.empty() ? "" : ", ") + name;
    }
    std::erase_if(snapshot->gpus, [&](const Gpu& gpu) {
      return std::none_of(names_.begin(), names_.end(),
                          [&](const std::string& name) { return matches(gpu, name); });
    });
    if (!unknown.empty()) snapshot->problem = "there is no GPU " + unknown;
  }

 private:
  static bool matches(const Gpu& gpu, const std::string& name) {
    return name == std::to_string(gpu.index) || name == gpu.uuid || name == gpu.pci;
  }
  const std::unique_ptr<Source> source_;
  const std::vector<std::string> names_;
};

/// One run of the command.
class Run {
 public:
  Run(const Options& options, const Build& build)
      : options_(options),
        build_(build),
        history_(std::make_shared<History>()),
        sampler_(
            std::make_shared<ChosenGpus>(
                std::make_unique<NvmlSource>(questions(options), "", scope(options)), options.gpus),
            history_, options.once || options.metrics ? kOnceGap : options.every),
        alerts_(options.alerts) {}

  int start();

 private:
  static std::vector<std::string> questions(const Options& options) {
    return options.query.empty() ? std::vector<std::string>()
                                 : query_questions(parse_query(options.query).value());
  }
  static NvmlSource::Scope scope(const Options& options) {
    const bool query = !options.query.empty() && options.alerts.empty() && !options.serve &&
                       options.log.empty() && !options.json && !options.csv;
    return query ? NvmlSource::Scope::kQuery : NvmlSource::Scope::kAll;
  }
  bool to_terminal() const { return options_.log.empty() && !options_.serve; }
  bool single() const {
    // nvidia-smi looks once where no --loop is given; so does text into a file.
    const bool text = !options_.json && !options_.csv && to_terminal() && options_.alerts.empty();
    return options_.once || options_.metrics || (!options_.query.empty() && !looping()) ||
           (text && options_.query.empty() && !looping());
  }
  bool looping() const {
    return options_.count || options_.duration || options_.every != Options{}.every;
  }
  bool color() const;
  size_t text_width() const;
  std::string text_of(const Snapshot& snapshot, bool first);
  int look_once();
  int loop();
  /// Alerts of a snapshot go out. False: the run is to end with kAlert.
  bool tell_alerts(const Snapshot& snapshot, bool on_stderr);
  Status start_server();
  void announce_server() const;
  int status_of(const Snapshot* snapshot) const {
    return snapshot != nullptr && snapshot->problem.empty() ? kSuccess : kUnreadable;
  }
  MonitorFacts facts();

  const Options& options_;
  const Build build_;
  const std::shared_ptr<History> history_;
  Sampler sampler_;
  AlertEngine alerts_;
  Mutex firing_mutex_;
  std::vector<AlertEvent> firing_ TF_GUARDED_BY(firing_mutex_);
  std::unique_ptr<Webhook> webhook_;
  std::unique_ptr<LogFile> log_;
  Output output_;
  std::unique_ptr<HttpServer> server_;  // last: it reads all of the above
};

bool Run::color() const {
  if (options_.color != ColorChoice::kAuto) return options_.color == ColorChoice::kAlways;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0') &&
         (term == nullptr || std::strcmp(term, "dumb") != 0);
}

size_t Run::text_width() const {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int n = columns == nullptr ? 0 : std::atoi(columns);
  return n >= 40 && n <= 1000 ? static_cast<size_t>(n) : 120;
}

MonitorFacts Run::facts() {
  MonitorFacts facts;
  facts.version = build_.version;
  facts.commit = build_.commit;
  const std::shared_ptr<const Snapshot> latest = history_->latest();
  facts.samples = latest == nullptr ? 0 : latest->sequence;
  facts.stuck_seconds = sampler_.stuck_seconds();
  facts.requests = server_ == nullptr ? 0 : server_->requests();
  return facts;
}

std::string Run::text_of(const Snapshot& snapshot, bool first) {
  if (options_.metrics) {
    return prometheus_text(&snapshot, facts(), {options_.dcgm_names});
  }
  if (!options_.query.empty()) {
    const auto fields = parse_query(options_.query);
    const auto format = parse_query_format(options_.format);
    std::vector<const Gpu*> gpus;
    for (const Gpu& gpu : snapshot.gpus) gpus.push_back(&gpu);
    return (first && format->header ? query_header(*fields) : "") +
           query_rows(*fields, *format, snapshot, gpus);
  }
  std::vector<AlertEvent> firing;
  {
    MutexLock lock(firing_mutex_);
    firing = firing_;
  }
  if (options_.json) {
    const auto document = snapshot_json(snapshot, *history_, firing);
    const int indent = options_.once ? 2 : -1;
    return document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
  if (options_.csv) return (first ? csv_header() + "\n" : "") + csv_rows(snapshot);
  ViewState view;
  view.width = text_width();
  view.unicode = locale_is_utf8();
  std::string text = first ? "" : "\n";
  for (const Line& line : draw(&snapshot, *history_, firing, view)) {
    text += line.text(view.width, color(), view.unicode) + "\n";
  }
  return text;
}

bool Run::tell_alerts(const Snapshot& snapshot, bool on_stderr) {
  const std::vector<AlertEvent> events = alerts_.evaluate(snapshot, *history_);
  {
    MutexLock lock(firing_mutex_);
    firing_ = alerts_.firing();
  }
  bool fail = false;
  for (const AlertEvent& event : events) {
    const bool critical =
        std::string_view(health::kAlerts[static_cast<int>(event.alert)].severity) == "critical";
    if (on_stderr) {
      log_line(critical && event.firing ? LogLevel::kError : LogLevel::kWarning, alert_line(event));
    }
    if (webhook_ != nullptr) webhook_->send(alert_json(event, snapshot.host));
    fail = fail || event.firing;
  }
  return !(fail && options_.fail_on_alert);
}

Status Run::start_server() {
  HttpOptions http;
  http.host = options_.host;
  http.port = options_.port;
  http.names = options_.allowed_hosts;
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) == 0) http.names.push_back(name);
  WebSources sources;
  sources.history = history_;
  sources.alerts = [this] {
    MutexLock lock(firing_mutex_);
    return firing_;
  };
  sources.facts = [this] { return facts(); };
  sources.prometheus.dcgm_names = options_.dcgm_names;
  server_ = std::make_unique<HttpServer>(
      http, [sources](const HttpRequest& request) { return web_response(request, sources); });
  return server_->start();
}

void Run::announce_server() const {
  const std::string host =
      options_.host.find(':') != std::string::npos ? "[" + options_.host + "]" : options_.host;
  std::fprintf(stderr, "tracefire: serving at http://%s:%d/ (metrics at /metrics)\n", host.c_str(),
               server_->port());
  if (!is_loopback(options_.host)) {
    log_line(
        LogLevel::kWarning,
        "the server at " + host +
            " can be reached from other machines, without a password or encryption: it shows "
            "users, containers and process names. Serve at 127.0.0.1 where that is not meant.");
  }
}

int Run::look_once() {
  // The first sample has no rates, which nvidia-smi's fields do without; where NVML cannot be read
  // at all, it is the answer already.
  std::shared_ptr<const Snapshot> shown = history_->wait_for(0, kOncePatience);
  if (shown != nullptr && shown->problem.empty() && options_.query.empty()) {
    const auto second = history_->wait_for(shown->sequence, kOncePatience);
    if (second != nullptr) shown = second;
  }
  if (shown == nullptr) {
    auto none = std::make_shared<Snapshot>();
    none->unix_us = std::chrono::duration_cast<std::chrono::microseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
    none->problem = print(
        "NVML has not answered for %.0f s: the driver hangs. Look for Xid lines in "
        "the kernel log (dmesg), then restart the driver or the machine.",
        sampler_.stuck_seconds());
    shown = none;
  }
  const bool calm = options_.alerts.empty() || tell_alerts(*shown, true);
  if (!output_.write(text_of(*shown, true))) return output_.status();
  const bool told = !options_.json && options_.query.empty() && !options_.csv && !options_.metrics;
  if (!shown->problem.empty() && !told) say(shown->problem);
  return !calm ? kAlert : status_of(shown.get());
}

int Run::loop() {
  const bool print_samples =
      options_.json || options_.csv || !options_.query.empty() || to_terminal();
  const bool quiet =
      options_.serve || !options_.log.empty() ||
      (!options_.alerts.empty() && !options_.json && !options_.csv && options_.query.empty());
  const auto begin = Clock::now();
  uint64_t sequence = 0;
  uint64_t samples = 0;
  std::string last_problem;
  double told_stuck = 0;
  for (;;) {
    const auto snapshot = history_->wait_for(sequence, kTick);
    const bool over = options_.duration && Clock::now() - begin >= *options_.duration;
    if (snapshot != nullptr) {
      sequence = snapshot->sequence;
      if (snapshot->problem != last_problem) {
        if (!snapshot->problem.empty()) say(snapshot->problem);
        last_problem = snapshot->problem;
      }
      if (!options_.alerts.empty() && !tell_alerts(*snapshot, true)) return kAlert;
      if (log_ != nullptr) {
        const bool lines = options_.log.ends_with(".jsonl");
        const Status written = log_->write(
            lines ? snapshot_json(*snapshot, *history_, {})
                            .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
                        "\n"
                  : csv_rows(*snapshot));
        if (!written.ok()) {
          std::string words = escape(written.message(), Sink::kLog);
          if (options_.count != samples + 1) words += " It is tried again with the next sample.";
          say_once("monitor log " + words, words);
        }
      }
      if (print_samples && !quiet && !output_.write(text_of(*snapshot, samples == 0))) {
        return output_.status();
      }
      ++samples;
      told_stuck = 0;
    } else if (const double stuck = sampler_.stuck_seconds();
               stuck > (told_stuck == 0 ? 10 : told_stuck + 30)) {
      say(print("NVML has not answered for %.0f s", stuck));
      told_stuck = stuck;
    }
    if (end_signal != 0) return end_signal == SIGINT ? kSuccess : 128 + end_signal;
    if (over || (options_.count && samples >= *options_.count)) {
      const auto latest = history_->latest();
      if (latest == nullptr && told_stuck == 0) {
        say(print("nothing was read: NVML has not answered for %.0f s", sampler_.stuck_seconds()));
      }
      return status_of(latest.get());
    }
  }
}

int Run::start() {
  if (!options_.query.empty()) {
    const std::string names = query_not_read(parse_query(options_.query).value());
    if (!names.empty()) {
      log_line(LogLevel::kWarning, "--query-gpu: not read here, shown as [N/A]: " + names);
    }
  }
  if (!options_.webhook.empty()) {
    Result<WebhookAddress> address = parse_webhook(options_.webhook);
    webhook_ = std::make_unique<Webhook>(std::move(address).value());
  }
  if (options_.serve) {
    if (const Status started = start_server(); !started.ok()) {
      say(started.message());
      return kWrongUsage;
    }
  }
  if (!options_.log.empty()) {  // last: what is refused leaves no file behind
    const std::string header = options_.log.ends_with(".jsonl") ? "" : csv_header();
    log_ = std::make_unique<LogFile>(options_.log, header, options_.log_bytes, options_.log_keep);
    if (const Status opened = log_->open(); !opened.ok()) {
      say(opened.message());
      return kWrongUsage;
    }
  }
  const bool live = !options_.once && !options_.json && !options_.csv && !options_.metrics &&
                    options_.query.empty() && to_terminal() && Terminal::usable();
  if (options_.serve) announce_server();
  sampler_.start();
  if (live) {
    bool alerted = false;
    const int status = run_live(
        options_, color(), sampler_, *history_,
        [&](const Snapshot& snapshot) -> std::optional<std::vector<AlertEvent>> {
          alerted = !options_.alerts.empty() && !tell_alerts(snapshot, isatty(STDERR_FILENO) == 0);
          if (alerted) return std::nullopt;
          MutexLock lock(firing_mutex_);
          return firing_;
        });
    return alerted ? kAlert : status;
  }
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old {};
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = on_end;
    sigaction(signal, &action, nullptr);
  }
  return single() ? look_once() : loop();
}

}  // namespace

int run(const Options& options, const Build& build) {
  ::signal(SIGPIPE, SIG_IGN);
  if (options.query_help) {
    Output output;
    output.write(query_help());
    return output.status();
  }
  try {
    return Run(options, build).start();
  } catch (const std::exception& failure) {
    say(failure.what());
    return kUnreadable;
  }
}

}  // namespace tracefire::monitor
