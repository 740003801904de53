// SPDX-License-Identifier: Apache-2.0
#include "tools/monitor/sample/sampler.h"

#include <algorithm>

namespace tracefire::monitor {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

int64_t since_epoch(Clock::time_point time) {
  return std::chrono::duration_cast<microseconds>(time.time_since_epoch()).count();
}

}  // namespace

struct Sampler::State {
  std::shared_ptr<Source> source;
  std::shared_ptr<History> history;
  Mutex mutex;
  CondVar changed;
  milliseconds interval TF_GUARDED_BY(mutex){1000};
  bool stop TF_GUARDED_BY(mutex) = false;
  bool done TF_GUARDED_BY(mutex) = false;
  std::atomic<int64_t> reading_since{0};  ///< steady microseconds, 0 between reads
};

std::shared_ptr<const Snapshot> take_snapshot(Source& source, uint64_t sequence) {
  auto snapshot = std::make_shared<Snapshot>();
  const auto begin = Clock::now();
  snapshot->sequence = sequence;
  snapshot->unix_us =
      std::chrono::duration_cast<microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  snapshot->steady_us = since_epoch(begin);
  source.read(snapshot.get());
  snapshot->took_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return snapshot;
}

Sampler::Sampler(std::shared_ptr<Source> source, std::shared_ptr<History> history,
                 milliseconds interval)
    : state_(std::make_shared<State>()) {
  state_->source = std::move(source);
  state_->history = std::move(history);
  set_interval(interval);
}

void Sampler::start() { thread_ = std::thread(&Sampler::run, state_); }

void Sampler::set_interval(milliseconds interval) {
  MutexLock lock(state_->mutex);
  state_->interval = std::max(interval, milliseconds(50));
  state_->changed.notify_all();
}

milliseconds Sampler::interval() const {
  MutexLock lock(state_->mutex);
  return state_->interval;
}

double Sampler::stuck_seconds() const {
  const int64_t since = state_->reading_since.load();
  return since == 0 ? 0 : static_cast<double>(since_epoch(Clock::now()) - since) * 1e-6;
}

void Sampler::run(std::shared_ptr<State> state) {
  auto next = Clock::now();
  for (uint64_t sequence = 1;; ++sequence) {
    state->reading_since = since_epoch(Clock::now());
    auto snapshot = take_snapshot(*state->source, sequence);
    state->reading_since = 0;
    state->history->add(std::move(snapshot));
    MutexLock lock(state->mutex);
    next += state->interval;
    const auto now = Clock::now();
    if (next < now) {  // points of the grid that passed during a slow read are left out
      next += ((now - next) / state->interval + 1) * state->interval;
    }
    while (!state->stop && Clock::now() < next) {
      next = std::min<Clock::time_point>(next, Clock::now() + state->interval);
      state->changed.wait_for(state->mutex, next - Clock::now());
    }
    if (state->stop) {
      state->done = true;
      state->changed.notify_all();
      return;
    }
  }
}

Sampler::~Sampler() {
  if (!thread_.joinable()) return;
  const auto deadline = Clock::now() + std::chrono::seconds(2);
  bool done = false;
  {
    MutexLock lock(state_->mutex);
    state_->stop = true;
    state_->changed.notify_all();
    while (!state_->done && Clock::now() < deadline) {
      state_->changed.wait_for(state_->mutex, deadline - Clock::now());
    }
    done = state_->done;
  }
  if (done) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

}  // namespace tracefire::monitor
