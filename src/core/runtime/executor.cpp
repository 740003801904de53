// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/executor.h"

#include <algorithm>

#include "core/base/settings.h"
#include "core/runtime/frame.h"
#include "core/runtime/transfer.h"

namespace tracefire {
namespace {

/// Bound programs of all programs together; of one, as many as instance_cache_size says.
constexpr size_t kBoundPrograms = 1024;
/// Runs in a row that nobody observed and whose checks are remembered.
constexpr int kMostUnasked = 4096;

std::string bind_key(const Program& program, const DimEnv& env) {
  std::vector<std::pair<int32_t, int64_t>> values(env.values().begin(), env.values().end());
  std::sort(values.begin(), values.end());
  std::string key = std::to_string(program.id);
  for (auto [symbol, value] : values) key += concat_text(',', symbol, '=', value);
  return key;
}

}  // namespace

Executor& Executor::instance() {
  static Executor& executor = *new Executor;  // outlives every thread that may still run
  return executor;
}

Result<std::shared_ptr<BoundProgram>> Executor::bind(const ProgramPtr& program, const DimEnv& env) {
  const std::string key = bind_key(*program, env);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = bound_.find(key);
    if (found != bound_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return found->second->second;
    }
  }
  TF_ASSIGN(std::shared_ptr<BoundProgram> made, BoundProgram::make(program, env));
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = bound_.find(key);
  if (found != bound_.end()) return found->second->second;
  order_.emplace_front(key, made);
  bound_[key] = order_.begin();
  size_t& sizes = sizes_[program->id];
  if (++sizes > static_cast<size_t>(settings::instance_cache_size())) forget_oldest(program->id);
  if (order_.size() > kBoundPrograms) forget_oldest(order_.back().second->program().id);
  return made;
}

void Executor::forget_oldest(uint64_t program) {
  const auto oldest = std::find_if(order_.rbegin(), order_.rend(), [&](const Entry& entry) {
    return entry.second->program().id == program;
  });
  if (oldest == order_.rend()) return;
  if (--sizes_[program] == 0) sizes_.erase(program);
  bound_.erase(oldest->first);
  order_.erase(std::prev(oldest.base()));
}

void Executor::forget(const Program& program) {
  std::vector<std::shared_ptr<BoundProgram>> dropped;  // ends when the lock is free again
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto known = sizes_.find(program.id);
    if (known != sizes_.end()) {
      sizes_.erase(known);
      for (auto entry = order_.begin(); entry != order_.end();) {
        if (entry->second->program().id != program.id) {
          ++entry;
          continue;
        }
        bound_.erase(entry->first);
        dropped.push_back(std::move(entry->second));
        entry = order_.erase(entry);
      }
    }
  }
  for (const Step& step : program.steps) {
    for (const ProgramPtr& region : step.regions) forget(*region);
  }
}

void Executor::publish(const RunRequest& request, const BoundProgram& bound, uint64_t repeats,
                       uint64_t launches, int64_t start_ns, Times times) {
  Events& events = Events::instance();
  if (!events.active()) return;
  RunEvent event;
  event.program = bound.record();
  event.work = bound.work();
  event.trigger = request.trigger;
  event.captured = launches > 0;
  event.repeats = repeats;
  event.graph_launches = launches;
  event.start_ns = start_ns;
  event.host_ns = Events::now_ns() - start_ns;
  const bool whole = !times.step_ns.empty() && times.step_ns.size() % bound.work()->size() == 0;
  if (whole) event.step_ns = std::move(times.step_ns);
  event.sampled = times.sampled;
  events.publish(event);
}

void Executor::add_run(const RunRequest& request, const BoundProgram& bound,
                       std::vector<ErrorBlock> errors, int64_t runs, RunOutcome* outcome) {
  std::vector<Run::Parent> parents = request.parents;
  parents.resize(bound.program().params.size());
  auto run = std::make_shared<Run>(request.program, std::move(errors), std::move(parents),
                                   bound.result_needs(runs));
  // A loop that observes nothing would remember all its steps: ask now and then, which waits.
  if (run->depth() > 0 && run->depth() % kMostUnasked == 0) run->settle();
  if (run->can_fail()) outcome->run = std::move(run);
}

Result<RunOutcome> Executor::run(const RunRequest& request) {
  const int64_t start = Events::now_ns();
  TF_ASSIGN(std::shared_ptr<BoundProgram> bound, bind(request.program, request.env));
  TF_ASSIGN(InstanceLease instance, InstanceLease::take(bound));
  Frame frame(*this, bound, *instance, request);
  TF_RETURN_IF_ERROR(frame.prepare());
  if (request.started != nullptr) *request.started = true;
  Times times;
  times.sampled = !bound->runs_on_host();
  const uint64_t timing = Events::instance().timing();
  if (times.sampled ? bound->sample_now(timing, 1) : timing != 0) frame.time_steps(&times.step_ns);
  TF_RETURN_IF_ERROR(frame.run_steps());
  RunOutcome outcome;
  TF_RETURN_IF_ERROR(frame.outputs(&outcome));
  TF_RETURN_IF_ERROR(frame.finish_slots());
  add_run(request, *bound, frame.error_blocks(), 1, &outcome);
  publish(request, *bound, 1, 0, start, std::move(times));
  return outcome;
}

}  // namespace tracefire
