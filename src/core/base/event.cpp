// SPDX-License-Identifier: Apache-2.0
#include "core/base/event.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/base/mutex.h"

namespace tracefire {
namespace {

/// One listener and how many threads are inside its callbacks.
struct Subscriber {
  explicit Subscriber(EventListener functions) : listener(std::move(functions)) {}
  const EventListener listener;
  int64_t id = 0;
  Mutex mutex;
  CondVar left;
  int inside TF_GUARDED_BY(mutex) = 0;
  bool gone TF_GUARDED_BY(mutex) = false;
};
using Subscribers = std::vector<std::shared_ptr<Subscriber>>;

struct CopyKey {
  Device from;
  Device to;
  CopyReason reason;
  friend bool operator<(const CopyKey& a, const CopyKey& b) {
    return std::tie(a.from, a.to, a.reason) < std::tie(b.from, b.to, b.reason);
  }
};

struct State {
  std::atomic<int> listeners{0};
  std::atomic<uint64_t> programs{0};
  std::atomic<int64_t> runs[kTriggerCount] = {};

  Mutex mutex;
  int64_t last_id TF_GUARDED_BY(mutex) = 0;
  Subscribers subscribers TF_GUARDED_BY(mutex);
  std::map<CopyKey, CopyTotal> copies TF_GUARDED_BY(mutex);

  Mutex tables_mutex;
  std::unordered_set<const StepTable*> tables TF_GUARDED_BY(tables_mutex);
  std::unordered_map<std::string, StepTotal> retired TF_GUARDED_BY(tables_mutex);
};

State& state() {
  static State* instance = new State;  // never destroyed: programs are dropped until the end
  return *instance;
}

/// Ids of the subscribers inside whose callbacks this thread is, innermost last.
thread_local std::vector<int64_t> calling;

template <class Event>
void hand_out(const Event& event, std::function<void(const Event&)> EventListener::*callback) {
  Subscribers subscribers;
  {
    MutexLock lock(state().mutex);
    subscribers = state().subscribers;
  }
  for (const std::shared_ptr<Subscriber>& subscriber : subscribers) {
    const auto& function = subscriber->listener.*callback;
    if (!function) continue;
    {
      MutexLock lock(subscriber->mutex);
      if (subscriber->gone) continue;
      ++subscriber->inside;
    }
    calling.push_back(subscriber->id);
    function(event);
    calling.pop_back();
    MutexLock lock(subscriber->mutex);
    --subscriber->inside;
    subscriber->left.notify_all();
  }
}

std::string key_of(const StepInfo& step) {
  std::string key;
  auto put = [&key](const std::string& text) { key.append(text).push_back('\0'); };
  for (const std::string* text :
       {&step.op, &step.tf_name, &step.node, &step.kernel, &step.library}) {
    put(*text);
  }
  for (const std::string& refusal : step.refusals) put(refusal);
  put(step.device.str());
  put(std::to_string(static_cast<int>(step.placement)));
  put(std::to_string(step.nodes));
  put(step.location.str());
  return key;
}

void add_to(std::unordered_map<std::string, StepTotal>* totals, const StepTable& table) {
  for (size_t i = 0; i < table.steps().size(); ++i) {
    const StepInfo& step = table.steps()[i];
    int64_t executions = table.executions(i);
    if (executions == 0) continue;
    auto [place, added] = totals->try_emplace(key_of(step));
    StepTotal& total = place->second;
    if (added) {
      total.step = step;
      total.step.flops = total.step.bytes = 0;
    }
    total.executions += executions;
    total.step.flops += step.flops * static_cast<double>(executions);
    total.step.bytes += step.bytes * static_cast<double>(executions);
  }
}

}  // namespace

StepTable::StepTable(uint64_t program, std::string name, uint64_t instance,
                     std::vector<StepInfo> steps)
    : program_(program),
      name_(std::move(name)),
      instance_(instance),
      steps_(std::move(steps)),
      extra_(new std::atomic<int64_t>[steps_.size()]) {
  for (size_t i = 0; i < steps_.size(); ++i) extra_[i].store(0, std::memory_order_relaxed);
}

std::shared_ptr<StepTable> StepTable::make(uint64_t program, std::string name, uint64_t instance,
                                           std::vector<StepInfo> steps) {
  std::shared_ptr<StepTable> table(
      new StepTable(program, std::move(name), instance, std::move(steps)));
  MutexLock lock(state().tables_mutex);
  state().tables.insert(table.get());
  return table;
}

StepTable::~StepTable() {
  MutexLock lock(state().tables_mutex);
  state().tables.erase(this);
  add_to(&state().retired, *this);
}

void StepTable::count_step(size_t index, int64_t times) const {
  extra_[index].fetch_add(times, std::memory_order_relaxed);
}

int64_t StepTable::executions(size_t index) const {
  return runs() + extra_[index].load(std::memory_order_relaxed);
}

uint64_t next_program_number() {
  return state().programs.fetch_add(1, std::memory_order_relaxed) + 1;
}

int64_t subscribe(EventListener listener) {
  auto subscriber = std::make_shared<Subscriber>(std::move(listener));
  State& s = state();
  MutexLock lock(s.mutex);
  subscriber->id = ++s.last_id;
  s.subscribers.push_back(std::move(subscriber));
  s.listeners.fetch_add(1, std::memory_order_release);
  return s.last_id;
}

void unsubscribe(int64_t id) {
  State& s = state();
  std::shared_ptr<Subscriber> subscriber;
  {
    MutexLock lock(s.mutex);
    auto found = std::find_if(s.subscribers.begin(), s.subscribers.end(),
                              [id](const auto& one) { return one->id == id; });
    if (found == s.subscribers.end()) return;
    subscriber = *found;
    s.subscribers.erase(found);
    s.listeners.fetch_sub(1, std::memory_order_release);
  }
  int own = static_cast<int>(std::count(calling.begin(), calling.end(), id));
  MutexLock lock(subscriber->mutex);
  subscriber->gone = true;
  while (subscriber->inside > own) subscriber->left.wait(subscriber->mutex);
}

bool listening() { return state().listeners.load(std::memory_order_acquire) > 0; }

void emit(const RunEvent& event) {
  event.table->count_runs(event.replays);
  state().runs[static_cast<int>(event.trigger)].fetch_add(1, std::memory_order_relaxed);
  if (listening()) hand_out(event, &EventListener::on_run);
}

void emit(const CopyEvent& event) {
  {
    MutexLock lock(state().mutex);
    CopyTotal& total = state().copies[{event.from, event.to, event.reason}];
    total.from = event.from;
    total.to = event.to;
    total.reason = event.reason;
    total.count += 1;
    total.bytes += event.bytes;
  }
  if (listening()) hand_out(event, &EventListener::on_copy);
}

int64_t event_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::vector<StepTotal> step_totals() {
  State& s = state();
  std::vector<StepTotal> out;
  MutexLock lock(s.tables_mutex);
  std::unordered_map<std::string, StepTotal> totals = s.retired;
  for (const StepTable* table : s.tables) add_to(&totals, *table);
  out.reserve(totals.size());
  for (auto& [key, total] : totals) out.push_back(std::move(total));
  return out;
}

std::vector<CopyTotal> copy_totals() {
  MutexLock lock(state().mutex);
  std::vector<CopyTotal> out;
  for (const auto& [key, total] : state().copies) out.push_back(total);
  return out;
}

int64_t run_count(Trigger trigger) {
  return state().runs[static_cast<int>(trigger)].load(std::memory_order_relaxed);
}

}  // namespace tracefire
