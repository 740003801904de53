// SPDX-License-Identifier: Apache-2.0
#include "core/engine/engine.h"

#include <cstdlib>

#include "core/base/settings.h"
#include "core/graph/text.h"
#include "core/ops/op_table.h"
#include "core/runtime/placement_log.h"
#include "core/runtime/run.h"

namespace tracefire {

Engine& Engine::instance() {
  static Engine& engine = *new Engine;  // outlives every thread that may still observe
  return engine;
}

namespace {

void take_limits() {
  trace::FiringLimits& limits = trace::firing_limits();
  limits.nodes = settings::max_pending_nodes();
  limits.bytes = settings::max_pinned_bytes();
}

void take_placement_log() {
  const bool log = settings::log_device_placement();
  if (trace::firing_limits().op_by_op == log) return;
  trace::flush_pending(Trigger::kPlacementLog);
  trace::firing_limits().op_by_op = log;
  log ? start_placement_log() : stop_placement_log();
}

}  // namespace

Engine::Engine() {
  trace::set_firer(this);
  Executor::instance().set_host_handler(serve_host_step);
  observe_setting("max_pending_nodes", take_limits);
  observe_setting("max_pinned_bytes", take_limits);
  observe_setting("log_device_placement", take_placement_log);
  take_limits();
  take_placement_log();
}

Device Engine::default_device() {
  static const Device device = Backends::instance().default_device();
  return device;
}

Status Engine::check_device(Device device) { return Backends::instance().find(device).status(); }

bool Engine::finishes_before_return(Device device, const Node& node,
                                    const std::vector<ValueType>& inputs) {
  if (device.kind != Device::kCpu || !node.regions.empty()) return false;
  for (const ValueType& type : inputs) {
    if (!type.shape.is_constant()) return false;
  }
  const OpRow& row = OpTable::instance().row(node.op);
  const Cost cost = row.cost(node, inputs);
  const double seconds = std::max(cost.flops / settings::cpu_flops_per_second(),
                                  cost.bytes / settings::cpu_bytes_per_second());
  return seconds * 1e3 > settings::cpu_wait_above();
}

CompileOptions Engine::compile_options() const {
  CompileOptions options;
  options.device = Backends::instance().default_device();
  options.policy =
      settings::device_policy() == DevicePolicy::kStrict ? Policy::kStrict : Policy::kSoft;
  options.precision = settings::matmul_precision() == MatmulPrecision::kHighest
                          ? Precision::kHighest
                          : Precision::kTf32;
  options.deterministic = settings::deterministic();
  options.disabled_passes = pass_names(settings::disabled_passes());
  return options;
}

uint64_t Engine::choices_generation() const {
  return settings_generation() + Backends::instance().masks_generation();
}

namespace {

/// Names and source lines of the operations that check data. A program says them in its errors, so
/// that equal operations of two places are not one program.
void add_places(const Graph& graph, std::string* key) {
  for (const Node& node : graph.nodes) {
    if (OpTable::instance().row(node.op).checks_data) *key += concat_text('|', place_of(node));
    for (const GraphPtr& region : node.regions) add_places(*region, key);
  }
}

}  // namespace

Result<ProgramPtr> Engine::program_of(const GraphPtr& graph) {
  CompileOptions options = compile_options();
  options.optimize = false;
  std::string key =
      concat_text(options.device.str(), '|', int{options.policy == Policy::kStrict},
                  int{options.precision == Precision::kHighest}, options.deterministic, '|',
                  choices_generation(), '|', cache_key(OpTable::instance(), *graph));
  add_places(*graph, &key);
  {
    std::lock_guard<std::mutex> lock(cache_mutex_);
    auto found = cache_.find(key);
    if (found != cache_.end()) {
      cache_order_.splice(cache_order_.begin(), cache_order_, found->second);
      return found->second->second.get();
    }
  }
  TF_ASSIGN(ProgramPtr program, compile(graph, options));
  HeldProgram evicted;  // ends when the lock is free again
  std::lock_guard<std::mutex> lock(cache_mutex_);
  auto found = cache_.find(key);
  if (found != cache_.end()) return found->second->second.get();
  cache_order_.emplace_front(key, HeldProgram(program));
  cache_[key] = cache_order_.begin();
  if (static_cast<int64_t>(cache_order_.size()) > settings::program_cache_size()) {
    evicted = std::move(cache_order_.back().second);
    cache_.erase(cache_order_.back().first);
    cache_order_.pop_back();
  }
  return program;
}

namespace {

Status no_value_yet(const trace::Cell& cell) {
  return error(ErrorCode::kValueInTrace, "the value of a ", cell.type.str(),
               " tensor was asked while its function is being traced; it has none yet. Use "
               "cond or while_loop instead of a condition in the host language, or return it");
}

bool is_in(const trace::Cell& cell, trace::Cell::State state) {
  return cell.state.load(std::memory_order_acquire) == state;
}

/// Whoever observes a value, even one that is ready, has the effects of this thread happen before,
/// and is told what went wrong beside all values.
bool effects_wait(Trigger trigger) {
  return trigger == Trigger::kObserved && !trace::eager().effects.empty();
}
Status failure_beside(Trigger trigger) {
  return trigger == Trigger::kObserved ? trace::take_failure() : Status{};
}

}  // namespace

Result<std::shared_ptr<DevicePayload>> Engine::ready(const trace::CellPtr& cell, Trigger trigger) {
  if (cell->scope != 0) return no_value_yet(*cell);
  if (is_in(*cell, trace::Cell::kPending) || effects_wait(trigger)) {
    fire(std::span(&cell, 1), trigger);
  }
  TF_RETURN_IF_ERROR(failure_beside(trigger));
  if (is_in(*cell, trace::Cell::kFailed)) return cell->failure;
  return payload_of(*cell);
}

Result<std::vector<std::shared_ptr<DevicePayload>>> Engine::ready(
    std::span<const trace::CellPtr> cells, Trigger trigger) {
  std::vector<trace::CellPtr> pending;
  for (const trace::CellPtr& cell : cells) {
    if (cell->scope != 0) return no_value_yet(*cell);
    if (is_in(*cell, trace::Cell::kPending)) pending.push_back(cell);
  }
  if (!pending.empty() || effects_wait(trigger)) fire(pending, trigger);
  TF_RETURN_IF_ERROR(failure_beside(trigger));
  std::vector<std::shared_ptr<DevicePayload>> payloads;
  for (const trace::CellPtr& cell : cells) {
    if (is_in(*cell, trace::Cell::kFailed)) return cell->failure;
    payloads.push_back(payload_of(*cell));
  }
  return payloads;
}

Result<std::vector<std::shared_ptr<DevicePayload>>> Engine::observe(
    std::span<const trace::CellPtr> cells, HostReader* reader) {
  TF_ASSIGN(auto payloads, ready(cells, Trigger::kObserved));
  UnreadErrors unread;
  for (const auto& payload : payloads) {
    if (payload) unread.add(payload->run, reader);
  }
  TF_RETURN_IF_ERROR(reader->run());
  unread.deliver(*reader);
  for (const auto& payload : payloads) {
    if (payload && payload->run) TF_RETURN_IF_ERROR(payload->run->check(payload->result));
  }
  return payloads;
}

Result<std::shared_ptr<DevicePayload>> Engine::observe(const trace::CellPtr& cell) {
  HostReader reader;
  TF_ASSIGN(auto payloads, observe(std::span(&cell, 1), &reader));
  return std::move(payloads[0]);
}

namespace {
/// Makes the engine the firer as soon as the library is loaded.
const struct StartEngine {
  StartEngine() { Engine::instance(); }
} start_engine;
}  // namespace

}  // namespace tracefire
