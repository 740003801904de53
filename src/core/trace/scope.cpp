// SPDX-License-Identifier: Apache-2.0
#include "core/trace/scope.h"

#include <algorithm>

namespace tracefire::trace {
namespace {
/// Guards of this thread, the innermost last. Those that ended out of order are taken out when
/// they come last.
std::vector<std::shared_ptr<ScopeGuard::Mark>>& guards() {
  thread_local std::vector<std::shared_ptr<ScopeGuard::Mark>> list;
  return list;
}

const ValueType& token_type() {
  static const ValueType type{DType::kToken, Shape{}};
  return type;
}
}  // namespace

Scope::Scope(ScopeKind kind, std::string name)
    : kind_(kind), id_(next_id()), name_(std::move(name)), parent_(current()) {
  if (parent_ != nullptr) parent_alive_ = parent_->alive_;
}

Scope::~Scope() {
  // Youngest first, so that no long chain of owners is released by recursion.
  while (!nodes_.empty()) nodes_.pop_back();
}

Scope* Scope::current() {
  auto& list = guards();
  while (!list.empty() && list.back()->ended.load(std::memory_order_acquire)) list.pop_back();
  return list.empty() ? nullptr : list.back()->scope;
}

ScopeGuard::ScopeGuard(Scope* scope) : mark_(std::make_shared<Mark>(scope)) {
  guards().push_back(mark_);
}
ScopeGuard::~ScopeGuard() { mark_->ended.store(true, std::memory_order_release); }

CellPtr Scope::parameter(ValueType type, std::string name, Device device) {
  params_.push_back(make_cell(std::move(type), device, id_));
  param_names_.push_back(std::move(name));
  return params_.back();
}

Result<CellPtr> Scope::import(const CellPtr& outer) {
  if (outer->scope == id_) return outer;
  CellPtr source = outer;
  if (parent_ != nullptr) {
    if (parent_alive_.expired()) {
      return error(ErrorCode::kValueInTrace, "'", name_,
                   "' is still being traced but the function around it has ended; end the inner "
                   "one first");
    }
    TF_ASSIGN(source, parent_->import(outer));
  } else if (outer->scope != 0) {
    return error(ErrorCode::kValueInTrace, "a ", outer->type.str(),
                 " tensor made while tracing another function is used in '", name_,
                 "'; return it from that function and pass it in");
  }
  auto found = capture_index_.find(source.get());
  if (found != capture_index_.end()) return captures_[found->second].param;
  capture_index_[source.get()] = captures_.size();
  captures_.push_back({source, make_cell(source->type, source->device, id_)});
  return captures_.back().param;
}

Scope::SlotUse& Scope::use(const SlotPtr& slot) {
  auto found = slot_index_.find(slot.get());
  if (found != slot_index_.end()) return slots_[found->second];
  slot_index_[slot.get()] = slots_.size();
  CellPtr param = make_cell(slot->type, slot->device, id_);
  slots_.push_back({slot, param, param, false});
  return slots_.back();
}

CellPtr Scope::slot_value(const SlotPtr& slot) { return use(slot).current; }

void Scope::set_slot(const SlotPtr& slot, CellPtr value) {
  SlotUse& use_of = use(slot);
  use_of.current = std::move(value);
  use_of.written = true;
}

CellPtr Scope::token(const std::string& effect) {
  auto found = tokens_.find(effect);
  if (found == tokens_.end()) {
    CellPtr param = make_cell(token_type(), Device{}, id_);
    found = tokens_.emplace(effect, TokenUse{param, param}).first;
  }
  return found->second.current;
}

void extend_layout(const Scope& scope, RegionLayout* layout) {
  auto add = [](auto& list, const auto& item) {
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
  };
  for (const auto& capture : scope.captures()) add(layout->captures, capture.outer);
  for (const auto& use : scope.slots()) {
    add(layout->slots, use.slot);
    if (use.written) add(layout->written, use.slot);
  }
  for (const auto& [effect, use] : scope.tokens()) add(layout->tokens, effect);
}

}  // namespace tracefire::trace
