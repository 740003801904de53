// SPDX-License-Identifier: Apache-2.0
// Grades, causes and alerts over invented time.
#include "tools/monitor/judge/alerts.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tools/monitor/judge/health.h"

namespace tracefire::monitor {
namespace {

using health::Alert;
using health::Cause;
using health::Grade;

/// A GPU that is busy, with one process whose host part is `cores`.
Gpu busy_gpu(double busy, double cores = 0.5) {
  Gpu gpu;
  gpu.uuid = "GPU-a";
  gpu.name = "NVIDIA H200";
  gpu[Metric::kBusy] = Reading::of(busy);
  gpu[Metric::kMemoryTotal] = Reading::of(100e9);
  gpu[Metric::kMemoryUsed] = Reading::of(50e9);
  gpu[Metric::kPcieTx] = gpu[Metric::kPcieRx] = Reading::of(0);
  gpu.throttle_code = Reading::kOk;
  gpu.process_code = Reading::kOk;
  GpuProcess process;
  process.pid = 7;
  process.host.name = "python3";
  process.host.cores = Reading::of(cores);
  gpu.processes.push_back(process);
  return gpu;
}

/// Plays snapshots, one a second, and collects what happens.
class Play {
 public:
  explicit Play(std::set<Alert> wanted) : engine(std::move(wanted)) {}
  std::vector<AlertEvent> step(const Gpu& gpu) {
    auto snapshot = std::make_shared<Snapshot>();
    ++second;
    snapshot->sequence = static_cast<uint64_t>(second);
    snapshot->steady_us = second * 1'000'000;
    snapshot->unix_us = second * 1'000'000;
    snapshot->gpus.push_back(gpu);
    history.add(snapshot);
    return engine.evaluate(*snapshot, history);
  }
  /// The second in which the first event came, -1 for none in `seconds`.
  int64_t first_event(const Gpu& gpu, int seconds, AlertEvent* event) {
    for (int i = 0; i < seconds; ++i) {
      const auto events = step(gpu);
      if (!events.empty()) {
        *event = events.front();
        return second;
      }
    }
    return -1;
  }
  History history;
  AlertEngine engine;
  int64_t second = 0;
};

Health judged(const Gpu& gpu, int seconds = 60) {
  Play play({});
  for (int i = 0; i <= seconds; ++i) play.step(gpu);
  return judge(gpu, play.history.points("GPU-a", 1000));
}

}  // namespace

TEST_CASE("monitor: the scale is that of schema/health.json") {
  CHECK(*judged(busy_gpu(0.70)).grade == Grade::kHealthy);
  CHECK(*judged(busy_gpu(0.69)).grade == Grade::kFair);
  CHECK(*judged(busy_gpu(0.30)).grade == Grade::kFair);
  CHECK(*judged(busy_gpu(0.29)).grade == Grade::kLow);
  CHECK(*judged(busy_gpu(0.04)).grade == Grade::kIdle);
  CHECK(judged(busy_gpu(0.5)).window_seconds == 60);
  Gpu unread = busy_gpu(0.5);
  unread[Metric::kBusy] = Reading::missing(3);
  CHECK_FALSE(judged(unread).grade.has_value());
  CHECK(std::string(grade_name(judged(unread))) == "unknown");
}

TEST_CASE("monitor: a low grade is named with its likely cause") {
  const auto cause = [](const Gpu& gpu) { return judged(gpu).causes.front(); };
  CHECK(cause(busy_gpu(0.1, 1.0)) == Cause::kHostBound);
  CHECK(cause(busy_gpu(0.1, 0.4)) == Cause::kInputBound);
  CHECK(cause(busy_gpu(0.0, 0.0)) == Cause::kHostIdle);
  CHECK(cause(busy_gpu(0.1, 0.0)) == Cause::kInputBound);
  Gpu gpu = busy_gpu(0.1);
  gpu.processes.clear();
  CHECK(cause(gpu) == Cause::kNoJob);
  gpu.process_code = 4;
  CHECK(cause(gpu) == Cause::kUnknown);
  gpu = busy_gpu(0.1);
  gpu[Metric::kPcieRx] = Reading::of(8e9);
  CHECK(cause(gpu) == Cause::kCopies);
  gpu[Metric::kMemoryUsed] = Reading::of(97e9);
  CHECK(cause(gpu) == Cause::kUnifiedMemory);
  gpu = busy_gpu(0.1);
  gpu.processes[0].host.major_faults = Reading::of(400);
  CHECK(cause(gpu) == Cause::kHostPaging);
  // Slow clocks do not make a GPU wait: what does is named first.
  gpu = busy_gpu(0.1, 1.0);
  gpu.throttle = 0x40;
  CHECK(judged(gpu).causes == std::vector<Cause>{Cause::kHostBound, Cause::kThrottled});
  CHECK(judged(gpu).culprit == "python3 (7)");
  gpu = busy_gpu(0.9);
  gpu.throttle = 0x40;
  CHECK(judged(gpu).causes == std::vector<Cause>{Cause::kThrottled});
  CHECK(judged(gpu).culprit.empty());
  gpu.throttle = 0x4;
  CHECK(judged(gpu).causes == std::vector<Cause>{Cause::kPowerLimited});
  // Threads of the process, or its children, prepare the input.
  CHECK(cause(busy_gpu(0.1, 6.0)) == Cause::kInputBound);
  gpu = busy_gpu(0.1, 0.0);
  gpu.processes[0].host.children_cores = Reading::of(3.5);
  CHECK(cause(gpu) == Cause::kInputBound);
  gpu = busy_gpu(0.9);
  CHECK(judged(gpu).causes.empty());
  gpu[Metric::kSmActivity] = Reading::of(0.1);
  CHECK(cause(gpu) == Cause::kSmallWork);
  CHECK(health_words(judged(busy_gpu(0.1, 1.0))) ==
        "10 % busy over 60 s; likely cause: the process keeps one CPU core busy and the GPU waits "
        "for it: python3 (7)");
}

TEST_CASE("monitor: since when a GPU is little used") {
  CHECK(judged(busy_gpu(0.1, 1.0), 600).low_seconds == 600);
  CHECK(health_words(judged(busy_gpu(0.1, 1.0), 600))
            .find("10 % busy over 60 s, low for 10 min; likely cause: ") == 0);
  CHECK(judged(busy_gpu(0.9), 600).low_seconds == 0);
  Play play({});
  for (int i = 0; i < 300; ++i) play.step(busy_gpu(i == 99 ? 0.9 : 0.0));
  CHECK(judge(busy_gpu(0.0), play.history.points("GPU-a", 1000)).low_seconds == 199);
}

TEST_CASE("monitor: workers of one program share a GPU with nobody") {
  Gpu gpu = busy_gpu(0.9);
  gpu.processes.push_back(gpu.processes[0]);
  gpu.processes[1].pid = 8;
  CHECK_FALSE(is_shared(gpu));
  gpu.processes[1].host.container = "docker:other";
  CHECK(is_shared(gpu));
}

TEST_CASE("monitor: low utilisation is told after a minute, not before") {
  AlertEvent event;
  Play play({Alert::kLowUtilization});
  const int64_t second = play.first_event(busy_gpu(0.2, 1.0), 200, &event);
  CHECK(second >= 57);
  CHECK(second <= 62);
  CHECK(event.firing);
  CHECK(event.text.find(
            "20 % busy over the last 60 s, below 30 %; likely cause: the process keeps") == 0);
  // It is not told again, not even where it swings around the limit, and ends when the mean is up.
  CHECK(play.first_event(busy_gpu(0.2), 100, &event) == -1);
  CHECK(play.first_event(busy_gpu(0.32), 100, &event) == -1);
  CHECK(play.first_event(busy_gpu(0.9), 100, &event) > 0);
  CHECK_FALSE(event.firing);
  CHECK(Play({Alert::kLowUtilization}).first_event(busy_gpu(0.4), 200, &event) == -1);
  Gpu nobody = busy_gpu(0.2);
  nobody.processes.clear();
  CHECK(Play({Alert::kLowUtilization}).first_event(nobody, 200, &event) == -1);
}

TEST_CASE("monitor: idle while a job holds the GPU") {
  AlertEvent event;
  Play play({Alert::kIdleWithJob});
  CHECK(play.first_event(busy_gpu(0.0, 0.0), 200, &event) == 61);
  CHECK(event.text.find("idle for 60 s while a process holds it") == 0);
  Gpu nobody = busy_gpu(0.0);
  nobody.processes.clear();
  CHECK(Play({Alert::kIdleWithJob}).first_event(nobody, 200, &event) == -1);
}

TEST_CASE("monitor: heat is told after ten seconds, a power limit never") {
  AlertEvent event;
  Gpu gpu = busy_gpu(0.9);
  gpu.throttle = 0x4 | 0x1 | 0x2 | 0x100;
  CHECK(Play({Alert::kThrottled}).first_event(gpu, 100, &event) == -1);
  gpu.throttle = 0x20;
  CHECK(Play({Alert::kThrottled}).first_event(gpu, 100, &event) == 11);
  CHECK(event.text == "clocks are held down: heat");
  // Heat that comes and goes every second is heat; a moment of it is not.
  Play flicker({Alert::kThrottled});
  Gpu cool = busy_gpu(0.9);
  int events = 0;
  for (int i = 0; i < 60; ++i)
    events += static_cast<int>(flicker.step(i % 2 == 0 ? gpu : cool).size());
  CHECK(events == 1);
  CHECK(flicker.first_event(cool, 10, &event) > 0);
  CHECK_FALSE(event.firing);
  Play moment({Alert::kThrottled});
  CHECK(moment.step(gpu).empty());
  CHECK(moment.first_event(cool, 30, &event) == -1);
}

TEST_CASE("monitor: memory") {
  AlertEvent event;
  Gpu gpu = busy_gpu(0.9);
  gpu[Metric::kMemoryUsed] = Reading::of(94.9e9);
  CHECK(Play({Alert::kMemoryNearlyFull}).first_event(gpu, 10, &event) == -1);
  gpu[Metric::kMemoryUsed] = Reading::of(95e9);
  Play at_limit({Alert::kMemoryNearlyFull});
  CHECK(at_limit.first_event(gpu, 10, &event) == 1);
  // Below the limit but not by the margin, or by the margin but only for a moment: it goes on.
  gpu[Metric::kMemoryUsed] = Reading::of(93e9);
  CHECK(at_limit.first_event(gpu, 30, &event) == -1);
  gpu[Metric::kMemoryUsed] = Reading::of(50e9);
  CHECK(at_limit.first_event(gpu, 4, &event) == -1);
  CHECK(at_limit.first_event(gpu, 4, &event) > 0);
  CHECK_FALSE(event.firing);
  gpu[Metric::kMemoryUsed] = Reading::of(95e9);
  gpu[Metric::kPcieTx] = Reading::of(2e9);
  CHECK(Play({Alert::kMemorySwapping}).first_event(gpu, 10, &event) == 1);
  CHECK(event.text.find("unified-memory migration") != std::string::npos);
}

TEST_CASE("monitor: errors are moments, each told once") {
  Play play({Alert::kXidError, Alert::kEccError});
  Gpu gpu = busy_gpu(0.9);
  gpu[Metric::kXidErrors] = Reading::of(0);
  gpu[Metric::kEccUncorrected] = Reading::of(5);  // from before the monitor began
  CHECK(play.step(gpu).empty());
  gpu[Metric::kXidErrors] = Reading::of(1);
  gpu[Metric::kXidLast] = Reading::of(79);
  CHECK(play.step(gpu).size() == 1);
  CHECK(play.step(gpu).empty());
  CHECK(play.engine.firing().size() == 1);  // still to be seen
  gpu[Metric::kXidErrors] = Reading::of(2);
  gpu[Metric::kEccUncorrected] = Reading::of(6);
  CHECK(play.step(gpu).size() == 2);
  AlertEvent event;
  CHECK(play.first_event(gpu, 70, &event) == -1);
  CHECK(play.engine.firing().empty());
}

TEST_CASE("monitor: what cannot be read neither begins nor ends an alert") {
  Play play({Alert::kMemoryNearlyFull, Alert::kThrottled, Alert::kLowUtilization});
  Gpu full = busy_gpu(0.9);
  full[Metric::kMemoryUsed] = Reading::of(99e9);
  CHECK(play.step(full).size() == 1);
  Gpu unread = full;
  unread[Metric::kMemoryUsed] = Reading::missing(999);
  unread[Metric::kBusy] = Reading::missing(999);
  unread.throttle_code = 999;
  for (int i = 0; i < 100; ++i) CHECK(play.step(unread).empty());
  CHECK(play.engine.firing().size() == 1);
}

TEST_CASE("monitor: a GPU that is lost, or vanishes from the list, and comes back") {
  Play play({Alert::kGpuLost, Alert::kMemoryNearlyFull});
  Gpu gpu = busy_gpu(0.9);
  CHECK(play.step(gpu).empty());
  Gpu lost = gpu;
  lost.lost = true;
  lost.lost_code = 15;
  auto events = play.step(lost);
  REQUIRE(events.size() == 1);
  CHECK(events[0].text == "it does not answer: the GPU is lost");
  AlertEvent back;
  CHECK(play.first_event(gpu, 10, &back) > 0);
  CHECK_FALSE(back.firing);

  gpu[Metric::kMemoryUsed] = Reading::of(99e9);
  CHECK(play.step(gpu).size() == 1);
  Gpu other = busy_gpu(0.5);
  other.uuid = "GPU-b";
  events = play.step(other);  // GPU-a is gone
  REQUIRE(events.size() == 1);
  CHECK((events[0].firing && events[0].uuid == "GPU-a"));
  CHECK(events[0].text == "it does not answer: it is no longer there");
  CHECK(play.step(other).empty());
  CHECK(play.engine.firing().size() == 1);
}

TEST_CASE("monitor: names of alerts") {
  CHECK(parse_alerts("all")->size() == static_cast<size_t>(health::kAlertCount));
  CHECK(parse_alerts("xid_error,throttled")->size() == 2);
  const auto wrong = parse_alerts("throttle");
  REQUIRE_FALSE(wrong.ok());
  CHECK(wrong.status().message().find("Did you mean throttled?") != std::string::npos);
}

TEST_CASE("monitor: kernels are too small by the time in which they ran, not by the last look") {
  const auto blames_size = [](const Health& health) {
    return std::count(health.causes.begin(), health.causes.end(), Cause::kSmallWork) > 0;
  };
  Gpu gpu = busy_gpu(0.9);
  CHECK_FALSE(blames_size(judged(gpu)));  // SM activity is not told
  gpu[Metric::kSmActivity] = Reading::of(0.1);
  CHECK(blames_size(judged(gpu)));
  CHECK(blames_size(judge(gpu, {})));
  Play play({});
  gpu[Metric::kSmActivity] = Reading::of(0.85);
  for (int i = 0; i < 30; ++i) play.step(gpu);
  gpu[Metric::kSmActivity] = Reading::of(0.0);  // it has just ended
  play.step(gpu);
  CHECK_FALSE(blames_size(judge(gpu, play.history.points("GPU-a", 1000))));
}

}  // namespace tracefire::monitor
