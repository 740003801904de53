// SPDX-License-Identifier: Apache-2.0
#include "core/trace/record.h"

#include <algorithm>

#include "core/base/log.h"
#include "core/base/settings.h"
#include "core/ops/op_table.h"
#include "core/trace/flush.h"
#include "tracefire/config.h"
#include "tracefire/function.h"

namespace tracefire::trace {
namespace {

std::atomic<Firer*> the_firer{nullptr};
std::atomic<LocationSource> location_source{nullptr};
std::atomic<uint64_t> serial{1};

/// Where result `index` will be. Strings are on the host, whatever scope the program is in.
Device place_hint(const Node& node, const OpRow& row, size_t index) {
  if (node.outputs[index].dtype == DType::kString) return {Device::kCpu, 0};
  if (node.device.is_set()) return node.device;
  if (row.op_class == OpClass::kHost) return {Device::kCpu, 0};
  return firer().default_device();
}

void note_pending(const TraceNodePtr& node) {
  Eager& state = eager();
  state.pending.push_back(node);
  for (const CellPtr& input : node->inputs) {
    if (input->state.load(std::memory_order_acquire) == Cell::kReady &&
        input->type.shape.is_constant()) {
      state.pinned_bytes += input->type.shape.elements().value() *
                            static_cast<int64_t>(dtype_size(input->type.dtype));
    }
  }
}

}  // namespace

void set_firer(Firer* firer) { the_firer.store(firer); }
Firer& firer() {
  Firer* now = the_firer.load(std::memory_order_acquire);
  if (now == nullptr) error(ErrorCode::kInternal, "no engine is installed").throw_if_error();
  return *now;
}

Eager& eager() {
  thread_local Eager state;
  return state;
}

Eager::~Eager() {
  const auto lost = std::count_if(effects.begin(), effects.end(),
                                  [](const TraceNodePtr& node) { return !node->claimed.load(); });
  if (lost > 0) {
    log_line(LogLevel::kError, concat_text("a thread ended before ", lost,
                                           " of its prints, asserts and host calls "
                                           "ran; call flush() at its end"));
  }
  for (const Status& failure : failures) {
    log_line(LogLevel::kError, "a thread ended before this was raised: " + failure.str());
  }
}

Status take_failure() {
  std::deque<Status>& failures = eager().failures;
  if (failures.empty()) return {};
  Status oldest = std::move(failures.front());
  failures.pop_front();
  return oldest;
}

Context& context() {
  thread_local Context state;
  return state;
}

std::vector<std::weak_ptr<NodeListener>>& listeners() {
  thread_local std::vector<std::weak_ptr<NodeListener>> list;
  return list;
}

void NodeListener::start(const std::shared_ptr<NodeListener>& listener) {
  listener->thread_ = std::this_thread::get_id();
  auto& list = listeners();
  std::erase_if(list, [&](const std::weak_ptr<NodeListener>& other) {
    const std::shared_ptr<NodeListener> alive = other.lock();
    return !alive || alive == listener || !alive->records_here();
  });
  list.push_back(listener);
}

Location current_location() {
  LocationSource source = location_source.load(std::memory_order_acquire);
  Location location;
  if (source != nullptr) source(&location.file, &location.line);
  return location;
}

Result<std::vector<CellPtr>> record_node(Node node, std::vector<CellPtr> inputs) {
  TF_RETURN_IF_ERROR(settings_problem());
  const OpRow& row = OpTable::instance().row(node.op);
  Scope* scope = Scope::current();
  std::vector<ValueType> types;
  types.reserve(inputs.size());
  for (CellPtr& input : inputs) {
    if (scope != nullptr) {
      TF_ASSIGN(input, scope->import(input));
    } else if (input->scope != 0) {
      return error(ErrorCode::kValueInTrace, "'", row.name, "' received a ", input->type.str(),
                   " tensor that only exists inside a traced function; return it from there");
    }
    types.push_back(input->type);
  }
  TF_RETURN_IF_ERROR(OpTable::instance().infer(types, &node));
  const Context& here = context();
  if (!node.device.is_set() && here.device.is_set()) {
    node.device = here.device;
    node.device_by_user = true;
  }
  if (node.location.file == nullptr) node.location = current_location();
  if (node.name.empty() && !here.names.empty()) node.name = here.names.back();

  auto traced = std::make_shared<TraceNode>();
  traced->serial = serial.fetch_add(1, std::memory_order_relaxed);
  std::vector<CellPtr> outputs;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    outputs.push_back(
        make_cell(node.outputs[i], place_hint(node, row, i), scope ? scope->id() : 0));
    outputs.back()->result = static_cast<int32_t>(i);
    traced->outputs.push_back(outputs.back());
  }
  if (scope == nullptr && !outputs.empty()) node.device = outputs[0]->device;
  traced->node = std::move(node);
  traced->inputs = std::move(inputs);
  if (scope != nullptr) {
    // The scope owns its nodes; cells of a scope have no producer, so nothing owns in a circle.
    scope->add(traced);
    scope->keep(outputs);
    return outputs;
  }
  for (const CellPtr& cell : outputs) cell->producer = traced;
  note_pending(traced);
  for (const std::weak_ptr<NodeListener>& weak : listeners()) {
    const std::shared_ptr<NodeListener> listener = weak.lock();
    if (listener && listener->records_here()) listener->recorded(traced, outputs);
  }
  return outputs;
}

Result<std::vector<CellPtr>> record(OpId op, std::vector<CellPtr> inputs, Attrs attrs,
                                    std::vector<GraphPtr> regions) {
  const OpRow& row = OpTable::instance().row(op);
  const bool ordered = row.effect[0] != '\0';
  if (ordered) inputs.push_back(effect_token(row.effect));
  Node node;
  node.op = op;
  node.attrs = std::move(attrs);
  node.regions = std::move(regions);
  TF_ASSIGN(std::vector<CellPtr> outputs, record_node(std::move(node), std::move(inputs)));
  if (ordered) {
    set_effect_token(row.effect, outputs.back());
    if (Scope::current() == nullptr) eager().effects.push_back(outputs.back()->producer);
    outputs.pop_back();
  }
  after_record(outputs);
  return outputs;
}

Result<CellPtr> moved_to(const CellPtr& cell, Device device) {
  if (!device.is_set()) {
    return error(ErrorCode::kUnknownDevice, "a ", cell->type.str(), " tensor on ",
                 cell->device.str(),
                 " was to be moved to a device that is not set; name one, such "
                 "as /CPU:0");
  }
  if (cell->device == device || cell->type.dtype == DType::kString) return cell;
  TF_RETURN_IF_ERROR(firer().check_device(device));
  Node node;
  node.op = OpTable::instance().id("copy");
  node.device = device;
  node.device_by_user = true;
  TF_ASSIGN(std::vector<CellPtr> outputs, record_node(std::move(node), {cell}));
  after_record(outputs);
  return std::move(outputs[0]);
}

CellPtr effect_token(const std::string& effect) {
  if (Scope* scope = Scope::current()) return scope->token(effect);
  CellPtr& token = eager().tokens[effect];
  if (!token) token = make_ready_cell({DType::kToken, Shape{}}, Device{}, nullptr);
  return token;
}

void set_effect_token(const std::string& effect, CellPtr token) {
  if (Scope* scope = Scope::current()) {
    scope->set_token(effect, std::move(token));
  } else {
    eager().tokens[effect] = std::move(token);
  }
}

CellPtr read_slot(const SlotPtr& slot) {
  if (Scope* scope = Scope::current()) return scope->slot_value(slot);
  std::lock_guard<std::mutex> lock(slot->mutex);
  return slot->current;
}

Status assign_slot(const SlotPtr& slot, CellPtr value) {
  if (value->type.dtype != slot->type.dtype) {
    return error(ErrorCode::kDTypeMismatch, "variable '", slot->name, "' holds ",
                 dtype_name(slot->type.dtype), " but was assigned ", dtype_name(value->type.dtype),
                 "; cast the value first");
  }
  if (value->type.shape != slot->type.shape) {
    return error(ErrorCode::kShapeMismatch, "variable '", slot->name, "' has shape ",
                 slot->type.shape.str(), " but was assigned shape ", value->type.shape.str(),
                 "; make a new variable for another shape");
  }
  if (Scope* scope = Scope::current()) {
    TF_ASSIGN(CellPtr here, scope->import(value));
    scope->set_slot(slot, std::move(here));
    return {};
  }
  if (slot->device.is_set()) {
    TF_ASSIGN(value, moved_to(value, slot->device));
  }
  std::lock_guard<std::mutex> lock(slot->mutex);
  slot->current = std::move(value);
  return {};
}

}  // namespace tracefire::trace

namespace tracefire {

void set_location_source(LocationSource source) { trace::location_source.store(source); }
bool is_tracing() { return trace::Scope::current() != nullptr; }

}  // namespace tracefire
