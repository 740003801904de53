// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/op_table.h"
#include "core/trace/scope.h"

namespace tracefire::trace {
namespace {

/// Turns the recorded nodes of one scope into a graph: parameters first, then what is alive.
class Lowering {
 public:
  explicit Lowering(const Scope& scope) : scope_(scope) {
    graph_ = std::make_shared<Graph>();
    graph_->name = scope.name();
  }

  Result<Lowered> run(const std::vector<CellPtr>& outputs, const RegionLayout* layout) {
    RegionLayout own;
    if (layout == nullptr) {
      extend_layout(scope_, &own);
      layout = &own;
    }
    const bool region = scope_.kind() == ScopeKind::kRegion;
    add_parameters(*layout);
    std::vector<CellPtr> results = outputs;
    if (layout->pass_captures) {
      results.insert(results.end(), capture_params_.begin(), capture_params_.end());
    }
    const size_t first_slot = results.size();
    if (!layout->only_outputs) {
      for (const SlotPtr& slot : layout->written) results.push_back(slot_now(slot));
      if (region) {
        for (const std::string& effect : layout->tokens) results.push_back(token_now(effect));
      }
    }
    mark_alive(results);
    TF_RETURN_IF_ERROR(add_nodes());
    for (size_t i = 0; i < results.size(); ++i) {
      auto value = values_.find(results[i].get());
      if (value == values_.end()) {
        return error(ErrorCode::kValueInTrace, "'", scope_.name(),
                     "' returns a tensor that does not belong to it");
      }
      const bool slot = !region && i >= first_slot;
      graph_->results.push_back({value->second, slot ? slot_param(*layout, i - first_slot) : -1});
    }
    out_.graph = graph_;
    return std::move(out_);
  }

 private:
  void add_param(const CellPtr& cell, const ValueType& type, ParamKind kind,
                 const std::string& name, Device device) {
    values_[cell.get()] = {-1, static_cast<int32_t>(graph_->params.size())};
    graph_->params.push_back({type, kind, name, device});
  }

  void add_parameters(const RegionLayout& layout) {
    for (size_t i = 0; i < scope_.parameters().size(); ++i) {
      const CellPtr& cell = scope_.parameters()[i];
      add_param(cell, cell->type, ParamKind::kInput, scope_.parameter_names()[i], cell->device);
    }
    const bool region = scope_.kind() == ScopeKind::kRegion;
    for (const CellPtr& outer : layout.captures) {
      CellPtr inner;
      for (const auto& capture : scope_.captures()) {
        if (capture.outer == outer) inner = capture.param;
      }
      if (!inner) inner = make_cell(outer->type, outer->device, scope_.id());
      capture_params_.push_back(inner);
      add_param(inner, outer->type, ParamKind::kInput, "", outer->device);
      out_.captures.push_back(outer);
    }
    for (const SlotPtr& slot : layout.slots) {
      CellPtr inner;
      for (const auto& use : scope_.slots()) {
        if (use.slot == slot) inner = use.param;
      }
      if (!inner) inner = make_cell(slot->type, slot->device, scope_.id());
      slot_params_[slot.get()] = {inner, static_cast<int32_t>(graph_->params.size())};
      add_param(inner, slot->type, region ? ParamKind::kInput : ParamKind::kSlot, slot->name,
                slot->device);
      out_.slots.push_back(slot);
    }
    for (const std::string& effect : layout.tokens) {
      CellPtr inner;
      auto use = scope_.tokens().find(effect);
      inner = use != scope_.tokens().end()
                  ? use->second.param
                  : make_cell({DType::kToken, Shape{}}, Device{}, scope_.id());
      token_params_[effect] = inner;
      add_param(inner, inner->type, ParamKind::kToken, effect, Device{});
      out_.tokens.push_back(effect);
    }
  }

  CellPtr slot_now(const SlotPtr& slot) const {
    for (const auto& use : scope_.slots()) {
      if (use.slot == slot) return use.current;
    }
    return slot_params_.at(slot.get()).first;
  }

  CellPtr token_now(const std::string& effect) const {
    auto use = scope_.tokens().find(effect);
    return use != scope_.tokens().end() ? use->second.current : token_params_.at(effect);
  }

  int32_t slot_param(const RegionLayout& layout, size_t written) {
    const SlotPtr& slot = layout.written[written];
    auto place = std::find(out_.slots.begin(), out_.slots.end(), slot);
    out_.slot_results.push_back(static_cast<int32_t>(place - out_.slots.begin()));
    return slot_params_.at(slot.get()).second;
  }

  void mark_alive(const std::vector<CellPtr>& results) {
    const auto& nodes = scope_.nodes();
    std::unordered_map<const Cell*, size_t> maker;
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (const auto& weak : nodes[i]->outputs) {
        if (CellPtr cell = weak.lock()) maker[cell.get()] = i;
      }
    }
    alive_.assign(nodes.size(), false);
    std::vector<size_t> work;
    auto need = [&](const Cell* cell) {
      auto found = maker.find(cell);
      if (found != maker.end() && !alive_[found->second]) {
        alive_[found->second] = true;
        work.push_back(found->second);
      }
    };
    for (const CellPtr& cell : results) need(cell.get());
    for (size_t i = 0; i < nodes.size(); ++i) {
      const auto& types = nodes[i]->node.outputs;
      const bool ordered = std::any_of(types.begin(), types.end(), [](const ValueType& type) {
        return type.dtype == DType::kToken;
      });
      if (ordered && !alive_[i]) {
        alive_[i] = true;
        work.push_back(i);
      }
    }
    while (!work.empty()) {
      const size_t i = work.back();
      work.pop_back();
      for (const CellPtr& input : nodes[i]->inputs) need(input.get());
    }
  }

  Status add_nodes() {
    const auto& nodes = scope_.nodes();
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (!alive_[i]) continue;
      Node node = nodes[i]->node;
      node.inputs.clear();
      for (const CellPtr& input : nodes[i]->inputs) {
        auto value = values_.find(input.get());
        if (value == values_.end()) {
          return error(ErrorCode::kCaptureInRegion, "'", OpTable::instance().name(node.op),
                       "' in '", scope_.name(), "' uses a value from outside");
        }
        node.inputs.push_back(value->second);
      }
      const auto number = static_cast<int32_t>(graph_->nodes.size());
      for (size_t k = 0; k < nodes[i]->outputs.size(); ++k) {
        if (CellPtr cell = nodes[i]->outputs[k].lock()) {
          values_[cell.get()] = {number, static_cast<int32_t>(k)};
        }
      }
      graph_->nodes.push_back(std::move(node));
    }
    return {};
  }

  const Scope& scope_;
  std::shared_ptr<Graph> graph_;
  Lowered out_;
  std::unordered_map<const Cell*, Value> values_;
  std::unordered_map<const Slot*, std::pair<CellPtr, int32_t>> slot_params_;
  std::vector<CellPtr> capture_params_;
  std::map<std::string, CellPtr> token_params_;
  std::vector<bool> alive_;
};

}  // namespace

Result<Lowered> lower(const Scope& scope, const std::vector<CellPtr>& outputs,
                      const RegionLayout* layout) {
  return Lowering(scope).run(outputs, layout);
}

}  // namespace tracefire::trace
