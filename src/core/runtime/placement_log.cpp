// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/placement_log.h"

#include <cstdio>
#include <mutex>
#include <string>

#include "backends/api/program.h"
#include "core/base/event.h"

namespace tracefire {
namespace {

std::mutex log_mutex;
int subscription = -1;

void log_step(const StepRecord& step, uint64_t repeats) {
  std::string line = "Executing op " + step.tf_name + " in device " +
                     "/job:localhost/replica:0/task:0/device:" + step.device.str().substr(1);
  if (repeats > 1) line += " (" + std::to_string(repeats) + " times)";
  switch (step.placement) {
    case Placement::kFellBack:
      line += " (fell back: " + step.reason + ")";
      break;
    case Placement::kHostByDesign:
      line += " (on the host by design)";
      break;
    case Placement::kByUser:
      line += " (placed by the program)";
      break;
    case Placement::kOnDevice:
      break;
  }
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void log_run(const RunEvent& run) {
  auto log = [&](size_t i) {
    const StepRecord& step = run.program->steps[i];
    if (!step.kernel.empty()) log_step(step, run.repeats);
  };
  if (run.steps.empty()) {
    for (size_t i = 0; i < run.program->steps.size(); ++i) log(i);
  } else {
    for (int32_t i : run.steps) log(static_cast<size_t>(i));
  }
}

}  // namespace

void start_placement_log() {
  std::lock_guard<std::mutex> lock(log_mutex);
  if (subscription >= 0) return;
  Events::Subscriber subscriber;
  subscriber.run = log_run;
  subscription = Events::instance().subscribe(std::move(subscriber));
}

void stop_placement_log() {
  std::lock_guard<std::mutex> lock(log_mutex);
  if (subscription < 0) return;
  Events::instance().unsubscribe(subscription);
  subscription = -1;
}

}  // namespace tracefire
