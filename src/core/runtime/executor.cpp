// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/executor.h"

#include <algorithm>
#include <chrono>

#include "core/runtime/frame.h"
#include "core/runtime/transfer.h"

namespace tracefire {
namespace {

constexpr size_t kBoundPrograms = 1024;
constexpr int64_t kMaxUnroll = 64;
constexpr int64_t kMinUnroll = 16;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string bind_key(const Program& program, const DimEnv& env) {
  std::vector<std::pair<int32_t, int64_t>> values(env.values().begin(), env.values().end());
  std::sort(values.begin(), values.end());
  std::string key = std::to_string(program.id);
  for (auto [symbol, value] : values) key += concat_text(',', symbol, '=', value);
  return key;
}

/// Returns the instance to its program on every way out.
class InstanceLease {
 public:
  static Result<InstanceLease> take(std::shared_ptr<BoundProgram> bound) {
    TF_ASSIGN(std::unique_ptr<Instance> instance, bound->acquire());
    return InstanceLease(std::move(bound), std::move(instance));
  }
  InstanceLease(InstanceLease&&) = default;
  InstanceLease& operator=(InstanceLease&&) = delete;
  ~InstanceLease() {
    if (instance_) bound_->release(std::move(instance_));
  }
  Instance& operator*() { return *instance_; }

 private:
  InstanceLease(std::shared_ptr<BoundProgram> bound, std::unique_ptr<Instance> instance)
      : bound_(std::move(bound)), instance_(std::move(instance)) {}
  std::shared_ptr<BoundProgram> bound_;
  std::unique_ptr<Instance> instance_;
};

Result<Storage> private_copy(Device device, const ValueType& type, const Storage& source) {
  TF_ASSIGN(Storage own, allocate_storage(device, type, "result"));
  TF_RETURN_IF_ERROR(copy_value(type, source, own));
  return own;
}

}  // namespace

int64_t choose_unroll(int64_t repeats) {
  for (int64_t unroll = std::min(kMaxUnroll, repeats); unroll >= kMinUnroll; --unroll) {
    if (repeats % unroll == 0) return unroll;
  }
  return std::min(kMaxUnroll, repeats);
}

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
  if (order_.size() > kBoundPrograms) {
    bound_.erase(order_.back().first);
    order_.pop_back();
  }
  return made;
}

void Executor::publish(const RunRequest& request, const BoundProgram& bound, uint64_t repeats,
                       uint64_t launches, int64_t start_ns) {
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
  event.host_ns = now_ns() - start_ns;
  events.publish(event);
}

Result<RunOutcome> Executor::finish(const RunRequest& request, BoundProgram& bound, Frame& frame) {
  const Program& program = bound.program();
  RunOutcome outcome;
  for (size_t i = 0; i < program.results.size(); ++i) {
    const ProgramValue& value = program.values[static_cast<size_t>(program.results[i])];
    ValueType type = value.type;
    type.shape = type.shape.bind(frame.env());
    outcome.types.push_back(std::move(type));
    if (program.result_slots[i] >= 0) {
      outcome.results.emplace_back();
      continue;
    }
    TF_ASSIGN(Storage storage, frame.result(i));
    outcome.results.push_back(std::move(storage));
  }
  TF_RETURN_IF_ERROR(frame.finish_slots());
  std::vector<Run::Parent> parents = request.parents;
  parents.resize(program.params.size());
  auto run = std::make_shared<Run>(request.program, frame.error_words(), std::move(parents),
                                   bound.result_params());
  if (run->can_fail()) outcome.run = std::move(run);
  return outcome;
}

Result<RunOutcome> Executor::run(const RunRequest& request) {
  const int64_t start = now_ns();
  TF_ASSIGN(std::shared_ptr<BoundProgram> bound, bind(request.program, request.env));
  TF_ASSIGN(InstanceLease instance, InstanceLease::take(bound));
  Frame frame(*this, bound, *instance, request.params, {}, request.trigger);
  TF_RETURN_IF_ERROR(frame.prepare());
  if (request.started != nullptr) *request.started = true;
  TF_RETURN_IF_ERROR(frame.run_steps());
  TF_ASSIGN(RunOutcome outcome, finish(request, *bound, frame));
  publish(request, *bound, 1, 0, start);
  return outcome;
}

Result<RunOutcome> Executor::run_repeated(const RunRequest& request, int64_t repeats) {
  // Also before the first: a loop of short loops is stopped although none is long.
  if (interrupted_ && interrupted_()) {
    return error(ErrorCode::kCancelled, "interrupted before the first of ", repeats,
                 " steps; variables hold the state before it");
  }
  const int64_t start = now_ns();
  TF_ASSIGN(std::shared_ptr<BoundProgram> bound, bind(request.program, request.env));
  TF_ASSIGN(InstanceLease instance, InstanceLease::take(bound));
  const Program& program = bound->program();
  if (program.capturable && bound->devices().size() == 1) {
    TF_ASSIGN(DeviceBackend * backend, Backends::instance().find(bound->devices()[0]));
    if (backend->can_capture()) return replay(request, *bound, *instance, repeats);
  }
  Frame frame(*this, bound, *instance, request.params, {}, request.trigger);
  TF_RETURN_IF_ERROR(frame.prepare());
  uint64_t done = 0;
  Status stopped;
  if (request.started != nullptr) *request.started = true;
  for (int64_t i = 0; i < repeats && stopped.ok(); ++i) {
    stopped = frame.run_steps();
    if (stopped.ok()) {
      // Between runs every slot must hold its new value.
      stopped = frame.finish_slots();
      ++done;
    }
    if (stopped.ok() && interrupted_ && i + 1 < repeats && interrupted_()) {
      stopped = error(ErrorCode::kCancelled, "interrupted after ", i + 1, " of ", repeats,
                      " steps; variables hold the state of step ", i + 1);
    }
  }
  publish(request, *bound, done, 0, start);
  TF_RETURN_IF_ERROR(stopped);
  return finish(request, *bound, frame);
}

Result<RunOutcome> Executor::replay(const RunRequest& request, BoundProgram& bound,
                                    Instance& instance, int64_t repeats) {
  const int64_t start = now_ns();
  const Program& program = bound.program();
  const Device device = bound.devices()[0];
  TF_ASSIGN(DeviceBackend * backend, Backends::instance().find(device));
  TF_ASSIGN(Stream * stream, backend->stream(0));
  std::vector<void*> addresses;
  for (const Storage& param : request.params) {
    addresses.push_back(param ? param.data() : nullptr);
  }
  if (instance.captured_addresses != addresses) {
    instance.captured.clear();
    instance.captured_addresses = std::move(addresses);
  }
  if (instance.captured_results.empty()) {
    instance.captured_results.resize(program.results.size());
    for (size_t i = 0; i < program.results.size(); ++i) {
      const ProgramValue& value = program.values[static_cast<size_t>(program.results[i])];
      if (program.result_slots[i] >= 0 || value.type.dtype == DType::kToken) continue;
      ValueType type = value.type;
      type.shape = type.shape.bind(bound.env());
      TF_ASSIGN(instance.captured_results[i], allocate_storage(device, type, "loop result"));
    }
  }
  if (bound.has_checks() && !instance.captured_error) {
    TF_ASSIGN(BufferPtr word, backend->allocate(sizeof(ErrorWord), "error block"));
    instance.captured_error = Storage{std::move(word), 0};
  }
  if (instance.captured_error) {
    TF_RETURN_IF_ERROR(
        backend->fill_zero(*stream, instance.captured_error.data(), sizeof(ErrorWord)));
  }
  // The frame refers to the bound program it is given; the request keeps the program alive.
  std::shared_ptr<BoundProgram> same(std::shared_ptr<void>(), &bound);
  Frame frame(*this, same, instance, request.params, instance.captured_results, request.trigger);
  if (instance.captured_error) frame.set_error_word(device, instance.captured_error);
  TF_RETURN_IF_ERROR(frame.prepare());

  auto graph_of = [&](int64_t unroll) -> Result<CapturedGraph*> {
    for (Instance::Captured& captured : instance.captured) {
      if (captured.unroll == unroll) return captured.graph.get();
    }
    TF_ASSIGN(std::unique_ptr<CapturedGraph> graph,
              backend->capture(*stream, [&](Stream&) -> Status {
                for (int64_t i = 0; i < unroll; ++i) {
                  TF_RETURN_IF_ERROR(frame.run_steps());
                  TF_RETURN_IF_ERROR(frame.finish_slots());
                }
                return Status{};
              }));
    instance.captured.push_back({unroll, std::move(graph)});
    return instance.captured.back().graph.get();
  };

  const int64_t unroll = choose_unroll(repeats);
  uint64_t launches = 0;
  int64_t done = 0;
  Status stopped;
  while (done < repeats && stopped.ok()) {
    const int64_t now = std::min(unroll, repeats - done);
    auto graph = graph_of(now);
    stopped = graph.ok() ? (*graph)->launch(*stream) : graph.status();
    if (!graph.ok()) break;
    if (request.started != nullptr) *request.started = true;
    if (!stopped.ok()) break;
    done += now;
    ++launches;
    if (interrupted_ && done < repeats && interrupted_()) {
      stopped = error(ErrorCode::kCancelled, "interrupted after ", done, " of ", repeats,
                      " steps; variables hold the state of step ", done);
    }
  }
  publish(request, bound, static_cast<uint64_t>(done), launches, start);
  TF_RETURN_IF_ERROR(stopped);

  RunOutcome outcome;
  for (size_t i = 0; i < program.results.size(); ++i) {
    const ProgramValue& value = program.values[static_cast<size_t>(program.results[i])];
    ValueType type = value.type;
    type.shape = type.shape.bind(bound.env());
    outcome.types.push_back(type);
    outcome.results.emplace_back();
    if (program.result_slots[i] >= 0 || type.dtype == DType::kToken) continue;
    // The loop's own result storage is written again by the next replay.
    TF_ASSIGN(Storage here, frame.result(i));
    TF_ASSIGN(outcome.results.back(), private_copy(device, type, here));
  }
  std::vector<Storage> words;
  if (instance.captured_error) {
    const ValueType bytes{DType::kU8, Shape{static_cast<int64_t>(sizeof(ErrorWord))}};
    TF_ASSIGN(Storage word, private_copy(device, bytes, instance.captured_error));
    words.push_back(std::move(word));
  }
  std::vector<Run::Parent> parents = request.parents;
  parents.resize(program.params.size());
  auto run = std::make_shared<Run>(request.program, std::move(words), std::move(parents),
                                   bound.result_params());
  if (run->can_fail()) outcome.run = std::move(run);
  return outcome;
}

}  // namespace tracefire
