// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/trace/cell.h"

namespace tracefire::trace {

enum class ScopeKind : uint8_t { kFunction, kRegion, kAbstract };

/// A function or region being traced on one thread. Records nodes in program order; values from
/// outside become parameters (captures), slots become parameters and results, effects chains.
class Scope {
 public:
  Scope(ScopeKind kind, std::string name);
  ~Scope();

  /// A parameter in declaration order.
  CellPtr parameter(ValueType type, std::string name, Device device);
  /// The cell that stands for `outer` in this scope: itself where it belongs here.
  Result<CellPtr> import(const CellPtr& outer);
  /// What the slot holds at this point of the trace.
  CellPtr slot_value(const SlotPtr& slot);
  void set_slot(const SlotPtr& slot, CellPtr value);
  /// The current end of an effect chain; a parameter at its start.
  CellPtr token(const std::string& effect);
  void set_token(const std::string& effect, CellPtr token) { tokens_[effect].current = token; }
  void add(TraceNodePtr node) { nodes_.push_back(std::move(node)); }
  /// Keeps cells alive as long as the scope, so that the trace stays whole.
  void keep(const std::vector<CellPtr>& cells) {
    cells_.insert(cells_.end(), cells.begin(), cells.end());
  }

  struct SlotUse {
    SlotPtr slot;
    CellPtr param;    ///< value at the start
    CellPtr current;  ///< value now
    bool written = false;
  };
  struct Capture {
    CellPtr outer;  ///< belongs to the parent scope (or is eager)
    CellPtr param;
  };
  struct TokenUse {
    CellPtr param;
    CellPtr current;
  };

  ScopeKind kind() const { return kind_; }
  uint64_t id() const { return id_; }
  Scope* parent() const { return parent_; }
  const std::string& name() const { return name_; }
  const std::vector<CellPtr>& parameters() const { return params_; }
  const std::vector<std::string>& parameter_names() const { return param_names_; }
  const std::vector<Capture>& captures() const { return captures_; }
  const std::vector<SlotUse>& slots() const { return slots_; }
  const std::map<std::string, TokenUse>& tokens() const { return tokens_; }
  const std::vector<TraceNodePtr>& nodes() const { return nodes_; }

  /// Innermost scope of this thread; null: eager.
  static Scope* current();

 private:
  friend class ScopeGuard;
  SlotUse& use(const SlotPtr& slot);

  ScopeKind kind_;
  uint64_t id_;
  std::string name_;
  Scope* parent_;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
  std::weak_ptr<const bool> parent_alive_;  ///< of parent_, which may end before this scope
  std::vector<CellPtr> params_;
  std::vector<std::string> param_names_;
  std::vector<Capture> captures_;
  std::unordered_map<const Cell*, size_t> capture_index_;
  std::vector<SlotUse> slots_;
  std::unordered_map<const Slot*, size_t> slot_index_;
  std::map<std::string, TokenUse> tokens_;
  std::vector<TraceNodePtr> nodes_;
  std::vector<CellPtr> cells_;
};

/// Makes `scope` the current one of this thread until the guard's end. Guards that end in another
/// order than the opposite of their beginnings, or on another thread, do no harm.
class ScopeGuard {
 public:
  struct Mark {
    explicit Mark(Scope* s) : scope(s) {}
    Scope* scope;
    std::atomic<bool> ended{false};
  };
  explicit ScopeGuard(Scope* scope);
  ~ScopeGuard();
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  std::shared_ptr<Mark> mark_;
};

/// How a scope's graph is laid out: which cells and slots its parameters are, in order.
struct Lowered {
  GraphPtr graph;
  std::vector<CellPtr> captures;      ///< outer cells, one a capture parameter
  std::vector<SlotPtr> slots;         ///< one a slot parameter
  std::vector<std::string> tokens;    ///< effect classes, one a token parameter
  std::vector<int32_t> slot_results;  ///< index into `slots` for each slot result
};

/// Order of parameters: declared, captures, slots, tokens. Order of results: outputs, written
/// slots, and for regions tokens. Regions list captures, slots and tokens as `layout` says (the
/// union over sibling regions), so that siblings have one signature.
struct RegionLayout {
  std::vector<CellPtr> captures;
  std::vector<SlotPtr> slots;
  std::vector<SlotPtr> written;
  std::vector<std::string> tokens;
  bool pass_captures = false;  ///< a loop body also returns its captures, unchanged
  bool only_outputs = false;   ///< a loop condition returns nothing else
};
Result<Lowered> lower(const Scope& scope, const std::vector<CellPtr>& outputs,
                      const RegionLayout* layout);

/// Adds what `scope` uses to `layout`.
void extend_layout(const Scope& scope, RegionLayout* layout);

}  // namespace tracefire::trace
