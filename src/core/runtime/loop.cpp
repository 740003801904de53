// SPDX-License-Identifier: Apache-2.0
// The executor's loops: one program many times over the same storage, step by step or as replays of
// captured graphs.
#include <algorithm>

#include "core/runtime/executor.h"
#include "core/runtime/frame.h"
#include "core/runtime/transfer.h"

namespace tracefire {
namespace {

constexpr int64_t kMaxUnroll = 64;
constexpr int64_t kMinUnroll = 16;
/// What a kernel may expect of the address it writes to.
constexpr size_t kAlignment = 256;
/// A captured loop holds the collected results of its unrolled runs in memory of its own.
constexpr size_t kMostCollected = size_t{64} << 20;
/// Step times that one record holds.
constexpr size_t kMostTimes = size_t{1} << 16;
/// Executions that are waited for step by step where a loop of captured graphs is measured.
constexpr int64_t kSampledRuns = 8;

Result<Storage> private_copy(Device device, const ValueType& type, const Storage& source) {
  TF_ASSIGN(Storage own, allocate_storage(device, type, "result"));
  TF_RETURN_IF_ERROR(copy_value(type, source, own));
  return own;
}

/// The results of many runs, each run's place behind the one before.
class Collection {
 public:
  /// Results that `indices` names; the others get no storage.
  static Result<Collection> make(const BoundProgram& bound, const std::vector<int32_t>& indices) {
    const Program& program = bound.program();
    Collection out;
    out.parts_.resize(program.results.size());
    for (int32_t index : indices) {
      const ProgramValue& value = program.values[static_cast<size_t>(program.results[index])];
      Part& part = out.parts_[static_cast<size_t>(index)];
      part.wanted = true;
      part.device = value.device;
      part.type = value.type;
      for (Dim dim : value.type.shape) {
        if (bound.env().eval(dim) >= 0) continue;
        return error(ErrorCode::kSymbolUnbound, "result ", index, " of '", program.name, "' is ",
                     value.type.str(),
                     ", whose size depends on data; results of several steps "
                     "can only be joined where it is known");
      }
      part.type.shape = part.type.shape.bind(bound.env());
      part.bytes = storage_bytes(part.type);
      out.bytes_ += part.bytes;
    }
    return out;
  }

  size_t bytes() const { return bytes_; }  ///< of one run
  bool wants(size_t result) const { return parts_[result].wanted; }

  /// Memory for `runs` runs, per result.
  Result<std::vector<Storage>> allocate(int64_t runs) const {
    std::vector<Storage> out(parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (!parts_[i].wanted) continue;
      ValueType all = parts_[i].type;
      all.shape = Shape{Dim(runs) * parts_[i].type.shape.elements()};
      TF_ASSIGN(out[i], allocate_storage(parts_[i].device, all, "results of a loop"));
    }
    return out;
  }
  /// Run `run` leaves its results in its place of `memory`.
  void aim(const std::vector<Storage>& memory, int64_t run, Frame* frame) const {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].wanted) {
        frame->set_result(i, place(memory, i, run), parts_[i].bytes % kAlignment == 0);
      }
    }
  }
  /// Copies the first `runs` runs in `from` to the places from `first` on in `to`.
  Status move(const std::vector<Storage>& from, const std::vector<Storage>& to, int64_t first,
              int64_t runs) const {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (!parts_[i].wanted) continue;
      ValueType moved = parts_[i].type;
      moved.shape = Shape{Dim(runs) * moved.shape.elements()};
      TF_RETURN_IF_ERROR(copy_value(moved, from[i], place(to, i, first)));
    }
    return {};
  }

 private:
  struct Part {
    bool wanted = false;
    Device device;
    ValueType type;
    size_t bytes = 0;
  };
  Storage place(const std::vector<Storage>& memory, size_t result, int64_t run) const {
    Storage storage = memory[result];
    storage.offset += static_cast<size_t>(run) * parts_[result].bytes;
    return storage;
  }

  std::vector<Part> parts_;
  size_t bytes_ = 0;
};

Status interrupted_after(int64_t done, int64_t repeats) {
  return error(ErrorCode::kCancelled, "interrupted after ", done, " of ", repeats,
               " steps; variables hold the state of step ", done);
}

}  // namespace

int64_t choose_unroll(int64_t repeats, int64_t most) {
  most = std::min(most, repeats);
  for (int64_t unroll = most; unroll >= std::min(kMinUnroll, most); --unroll) {
    if (repeats % unroll == 0) return unroll;
  }
  return most;
}

Result<RunOutcome> Executor::run_repeated(const RunRequest& request, int64_t repeats) {
  // Also before the first: a loop of short loops is stopped although none is long.
  if (interrupted_ && interrupted_()) {
    return error(ErrorCode::kCancelled, "interrupted before the first of ", repeats,
                 " steps; variables hold the state before it");
  }
  const int64_t start = Events::now_ns();
  TF_ASSIGN(std::shared_ptr<BoundProgram> bound, bind(request.program, request.env));
  TF_ASSIGN(InstanceLease instance, InstanceLease::take(bound));
  const Program& program = bound->program();
  if (program.capturable && bound->devices().size() == 1) {
    TF_ASSIGN(DeviceBackend * backend, Backends::instance().find(bound->devices()[0]));
    if (backend->can_capture()) return replay(request, *bound, *instance, repeats);
  }
  TF_ASSIGN(const Collection collection, Collection::make(*bound, request.collected));
  TF_ASSIGN(std::vector<Storage> collected, collection.allocate(repeats));
  Frame frame(*this, bound, *instance, request);
  collection.aim(collected, 0, &frame);
  TF_RETURN_IF_ERROR(frame.prepare());
  RunOutcome outcome;
  uint64_t done = 0;
  Status stopped;
  Times times;
  times.sampled = !bound->runs_on_host();
  const uint64_t timing = Events::instance().timing();
  const bool timed = times.sampled ? bound->sample_now(timing, 0) : timing != 0;
  if (request.started != nullptr) *request.started = true;
  for (int64_t i = 0; i < repeats && stopped.ok(); ++i) {
    if (i > 0) collection.aim(collected, i, &frame);
    const bool room = times.step_ns.size() + program.steps.size() <= kMostTimes;
    frame.time_steps(timed && room && (!times.sampled || (i > 0 && i <= kSampledRuns))
                         ? &times.step_ns
                         : nullptr);
    stopped = frame.run_steps();
    if (stopped.ok()) stopped = frame.keep_results();
    if (stopped.ok() && i + 1 == repeats) stopped = frame.outputs(&outcome);
    // Between runs every slot must hold its new value.
    if (stopped.ok()) stopped = frame.finish_slots();
    if (stopped.ok()) ++done;
    if (stopped.ok() && interrupted_ && i + 1 < repeats && interrupted_()) {
      stopped = interrupted_after(i + 1, repeats);
    }
  }
  publish(request, *bound, done, 0, start, std::move(times));
  TF_RETURN_IF_ERROR(stopped);
  if (!request.collected.empty()) outcome.results = std::move(collected);
  add_run(request, *bound, frame.error_blocks(), repeats, &outcome);
  return outcome;
}

namespace {

/// A program's captured graphs of one instance, and the memory they write to.
class Replay {
 public:
  Replay(Executor& executor, const RunRequest& request, BoundProgram& bound, Instance& instance,
         const Collection& collection)
      : request_(request),
        bound_(bound),
        program_(bound.program()),
        instance_(instance),
        collection_(collection),
        // The frame refers to the bound program it is given; the request keeps the program alive.
        frame_(executor, std::shared_ptr<BoundProgram>(std::shared_ptr<void>(), &bound), instance,
               request) {}

  /// Makes memory at fixed addresses; forgets graphs captured over others.
  Status prepare(int64_t unroll) {
    device_ = bound_.devices()[0];
    TF_ASSIGN(backend_, Backends::instance().find(device_));
    TF_ASSIGN(stream_, backend_->stream(0));
    std::vector<void*> addresses;
    for (const Storage& param : request_.params) {
      addresses.push_back(param ? param.data() : nullptr);
    }
    if (instance_.captured_addresses != addresses) {
      instance_.captured.clear();
      instance_.captured_addresses = std::move(addresses);
    }
    TF_RETURN_IF_ERROR(prepare_results());
    TF_RETURN_IF_ERROR(prepare_collected(unroll));
    const size_t bytes = bound_.checks() * sizeof(ErrorWord);
    if (bytes > 0 && !instance_.captured_errors) {
      TF_ASSIGN(BufferPtr block, backend_->allocate(bytes, "error block"));
      instance_.captured_errors = Storage{std::move(block), 0};
    }
    if (instance_.captured_errors) {
      TF_RETURN_IF_ERROR(backend_->fill_zero(*stream_, instance_.captured_errors.data(), bytes));
      frame_.set_error_block(device_, instance_.captured_errors);
    }
    return frame_.prepare();
  }

  /// The graph of `unroll` runs, captured where there is none yet.
  Result<CapturedGraph*> graph(int64_t unroll) {
    const bool collects = !request_.collected.empty();
    for (Instance::Captured& captured : instance_.captured) {
      if (captured.unroll == unroll && captured.collects == collects) return captured.graph.get();
    }
    TF_ASSIGN(std::unique_ptr<CapturedGraph> made,
              backend_->capture(*stream_, [&](Stream&) -> Status {
                for (int64_t i = 0; i < unroll; ++i) {
                  collection_.aim(instance_.collected_results, i, &frame_);
                  TF_RETURN_IF_ERROR(frame_.run_steps());
                  TF_RETURN_IF_ERROR(frame_.keep_results());
                  TF_RETURN_IF_ERROR(frame_.finish_slots());
                }
                return Status{};
              }));
    instance_.captured.push_back({unroll, collects, std::move(made)});
    return instance_.captured.back().graph.get();
  }

  /// `runs` runs, step by step, without a graph; the last ones are measured.
  Status run_measured(int64_t runs, std::vector<int64_t>* times) {
    for (int64_t i = 0; i < runs; ++i) {
      collection_.aim(instance_.collected_results, i, &frame_);
      frame_.time_steps(runs - i <= kSampledRuns ? times : nullptr);
      TF_RETURN_IF_ERROR(frame_.run_steps());
      TF_RETURN_IF_ERROR(frame_.keep_results());
      TF_RETURN_IF_ERROR(frame_.finish_slots());
    }
    frame_.time_steps(nullptr);
    return {};
  }

  /// What the last run left: copies, because the next replay writes to the same places.
  Status outputs(RunOutcome* outcome) {
    for (size_t i = 0; i < program_.results.size(); ++i) {
      ValueType type = program_.values[static_cast<size_t>(program_.results[i])].type;
      type.shape = type.shape.bind(bound_.env());
      outcome->types.push_back(type);
      outcome->results.emplace_back();
      if (!is_output(i) || !request_.collected.empty()) continue;
      if (frame_.stays(i)) {
        TF_ASSIGN(outcome->results.back(), frame_.result(i));
      } else {
        TF_ASSIGN(outcome->results.back(),
                  private_copy(device_, type, instance_.captured_results[i]));
      }
    }
    return {};
  }
  Result<std::vector<ErrorBlock>> error_blocks() const {
    std::vector<ErrorBlock> blocks = frame_.error_blocks();
    for (ErrorBlock& block : blocks) {
      const ValueType bytes{DType::kU8, Shape{static_cast<int64_t>(block.bytes())}};
      TF_ASSIGN(block.storage, private_copy(device_, bytes, block.storage));
    }
    return blocks;
  }
  Stream& stream() { return *stream_; }

 private:
  bool is_output(size_t result) const {
    const auto value = static_cast<size_t>(program_.results[result]);
    return program_.result_slots[result] < 0 && program_.values[value].type.dtype != DType::kToken;
  }

  Status prepare_results() {
    instance_.captured_results.resize(program_.results.size());
    for (size_t i = 0; i < program_.results.size(); ++i) {
      if (!is_output(i) || collection_.wants(i) || frame_.stays(i)) continue;
      Storage& storage = instance_.captured_results[i];
      if (!storage) {
        ValueType type = program_.values[static_cast<size_t>(program_.results[i])].type;
        type.shape = type.shape.bind(bound_.env());
        TF_ASSIGN(storage, allocate_storage(device_, type, "loop result"));
      }
      frame_.set_result(i, storage, true);
    }
    return {};
  }

  Status prepare_collected(int64_t unroll) {
    if (request_.collected.empty()) return {};
    if (instance_.collected != request_.collected || instance_.collected_runs < unroll) {
      std::erase_if(instance_.captured, [](const auto& captured) { return captured.collects; });
      TF_ASSIGN(instance_.collected_results, collection_.allocate(unroll));
      instance_.collected = request_.collected;
      instance_.collected_runs = unroll;
    }
    collection_.aim(instance_.collected_results, 0, &frame_);
    return {};
  }

  const RunRequest& request_;
  BoundProgram& bound_;
  const Program& program_;
  Instance& instance_;
  const Collection& collection_;
  Frame frame_;
  Device device_;
  DeviceBackend* backend_ = nullptr;
  Stream* stream_ = nullptr;
};

}  // namespace

Result<RunOutcome> Executor::replay(const RunRequest& request, BoundProgram& bound,
                                    Instance& instance, int64_t repeats) {
  const int64_t start = Events::now_ns();
  TF_ASSIGN(const Collection collection, Collection::make(bound, request.collected));
  TF_ASSIGN(std::vector<Storage> collected, collection.allocate(repeats));
  const auto held = static_cast<int64_t>(kMostCollected / std::max<size_t>(collection.bytes(), 1));
  const int64_t unroll = choose_unroll(repeats, std::clamp<int64_t>(held, 1, kMaxUnroll));
  Replay replay(*this, request, bound, instance, collection);
  TF_RETURN_IF_ERROR(replay.prepare(unroll));
  uint64_t launches = 0;
  int64_t done = 0;
  Status stopped;
  // What is measured runs last, when every kernel has been loaded.
  Times times{{}, true};
  const bool sample = bound.sample_now(Events::instance().timing(), 0);
  while (done < repeats && stopped.ok()) {
    const int64_t now = std::min(unroll, repeats - done);
    if (sample && done + now == repeats) {
      if (request.started != nullptr) *request.started = true;
      stopped = replay.run_measured(now, &times.step_ns);
    } else {
      auto graph = replay.graph(now);
      stopped = graph.ok() ? (*graph)->launch(replay.stream()) : graph.status();
      if (!graph.ok()) break;
      if (request.started != nullptr) *request.started = true;
      if (stopped.ok()) ++launches;
    }
    if (!stopped.ok()) break;
    stopped = collection.move(instance.collected_results, collected, done, now);
    done += now;
    if (stopped.ok() && interrupted_ && done < repeats && interrupted_()) {
      stopped = interrupted_after(done, repeats);
    }
  }
  publish(request, bound, static_cast<uint64_t>(done), launches, start, std::move(times));
  TF_RETURN_IF_ERROR(stopped);
  RunOutcome outcome;
  TF_RETURN_IF_ERROR(replay.outputs(&outcome));
  if (!request.collected.empty()) outcome.results = std::move(collected);
  TF_ASSIGN(std::vector<ErrorBlock> blocks, replay.error_blocks());
  add_run(request, bound, std::move(blocks), repeats, &outcome);
  return outcome;
}

}  // namespace tracefire
