// SPDX-License-Identifier: Apache-2.0
#include "core/base/event.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>

#include "core/base/mutex.h"
#include "event_schema.h"

namespace tracefire {
namespace {

/// One subscriber and how many threads are inside its callbacks.
struct Listener {
  Listener(int number, Events::Subscriber functions)
      : id(number), callbacks(std::move(functions)) {}
  const int id;
  const Events::Subscriber callbacks;
  Mutex mutex;
  CondVar left;
  int inside TF_GUARDED_BY(mutex) = 0;
  bool gone TF_GUARDED_BY(mutex) = false;
};
using Listeners = std::vector<std::shared_ptr<Listener>>;

/// Ids of the listeners inside whose callbacks this thread is.
thread_local std::vector<int> calling;

}  // namespace

struct Events::State {
  std::atomic<int> count{0};
  std::atomic<int> timed{0}, memory{0}, spans{0};  ///< subscribers that ask for these
  std::atomic<uint64_t> timings{0};                ///< how often one began to ask for step times
  Mutex mutex;
  int last_id TF_GUARDED_BY(mutex) = 0;
  Listeners listeners TF_GUARDED_BY(mutex);

  void add_wishes(const Subscriber& subscriber, int sign) {
    timed += subscriber.step_times ? sign : 0;
    memory += subscriber.memory ? sign : 0;
    spans += subscriber.span ? sign : 0;
    timings += subscriber.step_times && sign > 0 ? 1 : 0;
  }

  template <class Callback, class Event>
  void hand_out(Callback Subscriber::*callback, const Event& event) {
    Listeners all;
    {
      MutexLock lock(mutex);
      all = listeners;
    }
    for (const std::shared_ptr<Listener>& listener : all) {
      const Callback& function = listener->callbacks.*callback;
      if (!function) continue;
      {
        MutexLock lock(listener->mutex);
        if (listener->gone) continue;
        ++listener->inside;
      }
      calling.push_back(listener->id);
      function(event);
      calling.pop_back();
      MutexLock lock(listener->mutex);
      --listener->inside;
      listener->left.notify_all();
    }
  }
};

const char* trigger_name(Trigger trigger) {
  size_t index = static_cast<size_t>(trigger);
  return index < std::size(kTriggerNames) ? kTriggerNames[index] : "unknown";
}

Events::Events() : state_(std::make_unique<State>()) {}

Events& Events::instance() {
  static Events* events = new Events;  // never destroyed: programs run until the process ends
  return *events;
}

int Events::subscribe(Subscriber subscriber) {
  MutexLock lock(state_->mutex);
  int id = ++state_->last_id;
  state_->add_wishes(subscriber, 1);
  state_->listeners.push_back(std::make_shared<Listener>(id, std::move(subscriber)));
  state_->count.fetch_add(1, std::memory_order_release);
  return id;
}

void Events::unsubscribe(int id) {
  std::shared_ptr<Listener> listener;
  {
    MutexLock lock(state_->mutex);
    Listeners& all = state_->listeners;
    auto found = std::find_if(all.begin(), all.end(), [id](const auto& l) { return l->id == id; });
    if (found == all.end()) return;
    listener = *found;
    state_->add_wishes(listener->callbacks, -1);
    all.erase(found);
    state_->count.fetch_sub(1, std::memory_order_release);
  }
  int own = static_cast<int>(std::count(calling.begin(), calling.end(), id));
  MutexLock lock(listener->mutex);
  listener->gone = true;
  while (listener->inside > own) listener->left.wait(listener->mutex);
}

bool Events::active() const { return state_->count.load(std::memory_order_acquire) > 0; }

uint64_t Events::timing() const {
  return state_->timed.load(std::memory_order_acquire) > 0 ? state_->timings.load() : 0;
}
bool Events::wants_memory() const { return state_->memory.load(std::memory_order_acquire) > 0; }
bool Events::wants_spans() const { return state_->spans.load(std::memory_order_acquire) > 0; }

int64_t Events::now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Events::publish(const RunEvent& event) {
  if (active()) state_->hand_out(&Subscriber::run, event);
}

void Events::publish(const CopyEvent& event) {
  if (active()) state_->hand_out(&Subscriber::copy, event);
}

void Events::publish(const MemoryEvent& event) {
  if (wants_memory()) state_->hand_out(&Subscriber::memory, event);
}

void Events::publish(const SpanEvent& event) {
  if (wants_spans()) state_->hand_out(&Subscriber::span, event);
}

void Events::publish_synchronize(Device device, int64_t start_ns) {
  if (!active()) return;
  state_->hand_out(&Subscriber::synchronize, device);
  state_->hand_out(&Subscriber::wait, WaitEvent{device, start_ns, now_ns() - start_ns});
}

}  // namespace tracefire
