// SPDX-License-Identifier: Apache-2.0
// Firing: pending nodes are claimed, become a graph, are compiled, run and published.
#include <algorithm>
#include <set>

#include "core/base/guard.h"
#include "core/base/settings.h"
#include "core/engine/engine.h"
#include "core/graph/text.h"
#include "core/ops/op_table.h"
#include "core/runtime/transfer.h"

namespace tracefire {

using trace::Cell;
using trace::CellPtr;
using trace::TraceNode;
using trace::TraceNodePtr;

/// Nodes that run as one program, in program order, with what goes in and what comes out.
struct Engine::Batch {
  std::vector<TraceNodePtr> nodes;
  std::vector<CellPtr> leaves;   ///< inputs from outside, in order of first use
  std::vector<CellPtr> results;  ///< values somebody can still see, one a graph result
  std::vector<CellPtr> tokens;   ///< ends of effect chains somebody holds
};

namespace {

/// Nodes that run as one program at most.
constexpr size_t kMostNodes = 1024;

/// Nothing fires by itself on this thread while the engine works.
struct Inside {
  Inside() { ++trace::eager().inside; }
  ~Inside() { --trace::eager().inside; }
};

bool is_pending(const Cell& cell) {
  return cell.state.load(std::memory_order_acquire) == Cell::kPending;
}

/// Keeps a failure that no value carries. One cause is told once, however many effects it stopped.
void tell_later(const Status& failure) {
  auto& failures = trace::eager().failures;
  const bool told = std::any_of(failures.begin(), failures.end(), [&](const Status& other) {
    return other.code() == failure.code() && other.message() == failure.message();
  });
  if (!told) failures.push_back(failure);
}

/// Whether somebody besides `cell` itself and `readers` nodes holds the value: a tensor, a
/// variable, a tape, a scope, or a node that does not fire now. Whoever can still ask for a value
/// owns its cell, so that the owners are the state that counts, and there is none to keep in step
/// with it. Owners that let go meanwhile make the answer true where it need not be: then a value is
/// kept that nobody reads. It is never wrongly false: the lock of firing keeps new nodes of other
/// threads out, and a new owner copies the pointer of one that is counted.
bool is_held_elsewhere(const CellPtr& cell, long readers) { return cell.use_count() > 1 + readers; }

/// Whether the node, or what its regions do, is an effect seen outside.
bool has_effect(const TraceNode& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [](const CellPtr& input) { return input->type.dtype == DType::kToken; });
}

}  // namespace

std::vector<TraceNodePtr> Engine::claim(std::span<const CellPtr> cells) {
  std::lock_guard<std::mutex> lock(fire_mutex_);
  std::vector<TraceNodePtr> work, claimed;
  auto claim = [&](const TraceNodePtr& node) {
    if (node && !node->claimed.exchange(true)) work.push_back(node);
  };
  for (const CellPtr& cell : cells) {
    if (is_pending(*cell)) claim(cell->producer);
  }
  trace::Eager& eager = trace::eager();
  for (const TraceNodePtr& node : eager.effects) claim(node);
  eager.effects.clear();
  while (!work.empty()) {
    TraceNodePtr node = std::move(work.back());
    work.pop_back();
    for (const CellPtr& input : node->inputs) {
      if (is_pending(*input)) claim(input->producer);
    }
    claimed.push_back(std::move(node));
  }
  std::sort(claimed.begin(), claimed.end(),
            [](const TraceNodePtr& a, const TraceNodePtr& b) { return a->serial < b->serial; });
  return claimed;
}

void Engine::find_ends(Batch* batch) {
  std::lock_guard<std::mutex> lock(fire_mutex_);
  // A value must be published where somebody besides the nodes of this batch holds it.
  std::unordered_map<const Cell*, long> held_here;
  for (const TraceNodePtr& node : batch->nodes) {
    for (const CellPtr& input : node->inputs) ++held_here[input.get()];
  }
  for (const TraceNodePtr& node : batch->nodes) {
    for (const auto& weak : node->outputs) {
      CellPtr cell = weak.lock();
      if (!cell) continue;
      auto uses = held_here.find(cell.get());
      if (!is_held_elsewhere(cell, uses == held_here.end() ? 0 : uses->second)) continue;
      (cell->type.dtype == DType::kToken ? batch->tokens : batch->results)
          .push_back(std::move(cell));
    }
  }
  std::set<const Cell*> made, seen;
  for (const TraceNodePtr& node : batch->nodes) {
    for (const auto& weak : node->outputs) {
      if (CellPtr cell = weak.lock()) made.insert(cell.get());
    }
  }
  for (const TraceNodePtr& node : batch->nodes) {
    for (const CellPtr& input : node->inputs) {
      if (made.count(input.get()) == 0 && seen.insert(input.get()).second) {
        batch->leaves.push_back(input);
      }
    }
  }
}

void Engine::wait(const CellPtr& cell) {
  if (!is_pending(*cell)) return;
  std::unique_lock<std::mutex> lock(fire_mutex_);
  published_.wait(lock, [&] { return !is_pending(*cell); });
}

void Engine::wait_for_leaves(Batch* batch) {
  for (const CellPtr& leaf : batch->leaves) wait(leaf);
}

void Engine::publish(const CellPtr& cell, std::shared_ptr<DevicePayload> payload) {
  TraceNodePtr producer;  // released after the lock: it may own a long chain
  {
    std::lock_guard<std::mutex> lock(fire_mutex_);
    cell->payload = std::move(payload);
    producer = std::move(cell->producer);
    cell->state.store(Cell::kReady, std::memory_order_release);
  }
  published_.notify_all();
}

void Engine::fail(const CellPtr& cell, const Status& failure) {
  TraceNodePtr producer;
  {
    std::lock_guard<std::mutex> lock(fire_mutex_);
    cell->failure = failure;
    producer = std::move(cell->producer);
    cell->state.store(Cell::kFailed, std::memory_order_release);
  }
  published_.notify_all();
}

Status Engine::drop_failed(Batch* batch) {
  std::unordered_map<const Cell*, Status> failed;
  for (const CellPtr& leaf : batch->leaves) {
    if (leaf->state.load(std::memory_order_acquire) == Cell::kFailed) {
      failed.emplace(leaf.get(), leaf->failure);
    }
  }
  if (failed.empty()) return {};
  std::vector<TraceNodePtr> good;
  Status first;
  for (const TraceNodePtr& node : batch->nodes) {
    const Status* why = nullptr;
    for (const CellPtr& input : node->inputs) {
      auto found = failed.find(input.get());
      if (found != failed.end()) why = &found->second;
    }
    if (why == nullptr) {
      good.push_back(node);
      continue;
    }
    const Status reason = *why;
    if (first.ok()) first = reason;
    for (const auto& weak : node->outputs) {
      if (CellPtr cell = weak.lock()) failed.emplace(cell.get(), reason);
    }
  }
  batch->nodes = std::move(good);
  auto is_failed = [&](const CellPtr& cell) { return failed.count(cell.get()) != 0; };
  for (const CellPtr& cell : batch->results) {
    if (is_failed(cell)) fail(cell, failed.at(cell.get()));
  }
  if (!batch->nodes.empty()) std::erase_if(batch->results, is_failed);
  std::erase_if(batch->leaves, is_failed);
  return first;
}

namespace {

/// Numbers of the sizes that data decided: known by now, as the leaves are ready.
DimEnv sizes_of(const std::vector<CellPtr>& leaves) {
  DimEnv env;
  for (const CellPtr& leaf : leaves) {
    for (int axis = 0; axis < leaf->type.shape.rank(); ++axis) {
      const Dim dim = leaf->type.shape[axis];
      if (dim.is_symbol()) {
        env.set(dim.symbol(), payload_of(*leaf)->sizes[static_cast<size_t>(axis)]);
      }
    }
  }
  return env;
}

Attrs bind_shapes(const Attrs& attrs, const DimEnv& env) {
  Attrs bound;
  for (const auto& [name, attr] : attrs.entries()) {
    const Shape* shape = std::get_if<Shape>(&attr);
    bound.set(name, shape ? Attr(shape->bind(env)) : attr);
  }
  return bound;
}

}  // namespace

Result<GraphPtr> Engine::build_graph(const Batch& batch) {
  const DimEnv env = sizes_of(batch.leaves);
  Builder builder(OpTable::instance(), "eager");
  std::unordered_map<const Cell*, Value> values;
  for (const CellPtr& leaf : batch.leaves) {
    const bool token = leaf->type.dtype == DType::kToken;
    ValueType type = leaf->type;
    type.shape = type.shape.bind(env);
    const Device device = token ? Device{} : payload_of(*leaf)->storage.buffer->device();
    values[leaf.get()] =
        builder.param(type, "", token ? ParamKind::kToken : ParamKind::kInput, device);
  }
  for (const TraceNodePtr& traced : batch.nodes) {
    Node node = traced->node;
    node.inputs.clear();
    for (const CellPtr& input : traced->inputs) node.inputs.push_back(values.at(input.get()));
    if (!env.values().empty()) node.attrs = bind_shapes(node.attrs, env);
    TF_ASSIGN(Value first, builder.add(std::move(node)));
    for (size_t i = 0; i < traced->outputs.size(); ++i) {
      if (CellPtr cell = traced->outputs[i].lock()) {
        values[cell.get()] = {first.node, static_cast<int32_t>(i)};
      }
    }
  }
  for (const CellPtr& cell : batch.results) builder.result(values.at(cell.get()));
  return builder.finish();
}

Status Engine::run_batch(Batch* batch, Trigger trigger) {
  TF_ASSIGN(GraphPtr graph, build_graph(*batch));
  TF_ASSIGN(ProgramPtr program, program_of(graph));
  RunRequest request;
  request.program = program;
  request.trigger = trigger;
  for (const CellPtr& leaf : batch->leaves) {
    auto payload = payload_of(*leaf);
    request.params.push_back(payload ? payload->storage : Storage{});
    request.parents.push_back(parent_of(payload));
  }
  TF_ASSIGN(RunOutcome outcome, Executor::instance().run(request));
  for (size_t i = 0; i < batch->results.size(); ++i) {
    const CellPtr& cell = batch->results[i];
    Storage storage = std::move(outcome.results[i]);
    if (storage.buffer->device() != cell->device && cell->type.dtype != DType::kString &&
        cell->device.is_set()) {
      // It was computed elsewhere (a fall-back); the value's device was promised when traced.
      TF_ASSIGN(Storage home, allocate_storage(cell->device, outcome.types[i], "moved result"));
      TF_RETURN_IF_ERROR(copy_value(outcome.types[i], storage, home));
      storage = std::move(home);
    }
    auto payload =
        std::make_shared<DevicePayload>(std::move(storage), outcome.run, static_cast<int32_t>(i));
    if (!cell->type.shape.is_constant()) payload->sizes = outcome.types[i].shape.sizes();
    publish(cell, std::move(payload));
  }
  return {};
}

void Engine::fire(std::span<const CellPtr> cells, Trigger trigger) {
  Inside inside;
  std::vector<TraceNodePtr> nodes = claim(cells);
  // An effect is a program of its own, so that its failure is that of nothing else. A long history
  // (the gradients of a tape) is run in pieces: planning one program of it would take far longer.
  for (size_t begin = 0; begin < nodes.size();) {
    size_t end = begin + 1;
    while (end < nodes.size() && end - begin < kMostNodes && !has_effect(*nodes[begin]) &&
           !has_effect(*nodes[end])) {
      ++end;
    }
    Batch batch;
    batch.nodes.assign(std::make_move_iterator(nodes.begin() + static_cast<ptrdiff_t>(begin)),
                       std::make_move_iterator(nodes.begin() + static_cast<ptrdiff_t>(end)));
    fire_batch(&batch, trigger);
    begin = end;
  }
  for (const CellPtr& cell : cells) wait(cell);
}

void Engine::fire_batch(Batch* batch, Trigger trigger) {
  const bool effect = has_effect(*batch->nodes[0]);
  find_ends(batch);
  wait_for_leaves(batch);
  Status status = drop_failed(batch);
  if (!batch->nodes.empty()) status = guarded([&] { return run_batch(batch, trigger); });
  if (!status.ok()) {
    // Values carry their failure; an effect may have none that anybody can see.
    if (effect && batch->results.empty()) tell_later(status);
    for (const CellPtr& cell : batch->results) {
      if (is_pending(*cell)) fail(cell, status);
    }
  }
  // An effect that failed does not stop the ones that come after it.
  for (const CellPtr& token : batch->tokens) {
    if (is_pending(*token)) publish(token, nullptr);
  }
}

}  // namespace tracefire
