// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "core/compile/known_ops.h"
#include "core/compile/plan/plan.h"

namespace tracefire {
namespace {

/// Candidates compared at each choice; beyond them the order of the graph rules.
constexpr size_t kWindow = 64;
/// Stands for a symbolic size while amounts of memory are compared.
constexpr int64_t kTypicalSize = 64;

class Scheduler {
 public:
  explicit Scheduler(const Graph& graph)
      : known_(KnownOps::get()),
        graph_(graph),
        users_(graph.nodes.size()),
        waits_(graph.nodes.size(), 0),
        pending_reads_(graph.nodes.size()),
        slot_readers_(graph.params.size(), 0),
        slots_(graph.nodes.size()) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      pending_reads_[i].assign(node.outputs.size(), 0);
      slots_[i].assign(node.outputs.size(), -1);
      for (Value value : node.inputs) {
        if (value.is_param()) {
          ++slot_readers_[static_cast<size_t>(value.index)];
        } else {
          users_[static_cast<size_t>(value.node)].push_back(static_cast<int32_t>(i));
          ++waits_[i];
          ++reads(value);
        }
      }
    }
    for (const ResultValue& result : graph.results) {
      if (result.value.is_param()) continue;
      ++reads(result.value);  // never freed
      if (result.slot < 0) continue;
      slots_[static_cast<size_t>(result.value.node)][static_cast<size_t>(result.value.index)] =
          result.slot;
    }
  }

  std::vector<int32_t> run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (waits_[i] == 0) ready_.push_back(static_cast<int32_t>(i));
    }
    std::vector<int32_t> order;
    order.reserve(graph_.nodes.size());
    while (!ready_.empty()) {
      const size_t at = choose();
      const int32_t index = ready_[at];
      ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(at));
      order.push_back(index);
      finish(index);
    }
    return order;
  }

 private:
  int& reads(Value value) {
    return pending_reads_[static_cast<size_t>(value.node)][static_cast<size_t>(value.index)];
  }
  int reads(Value value) const {
    return pending_reads_[static_cast<size_t>(value.node)][static_cast<size_t>(value.index)];
  }

  static double bytes(const ValueType& type) {
    double elements = 1;
    for (Dim dim : type.shape) {
      elements *= static_cast<double>(
          dim.is_constant() ? dim.value() : std::min<int64_t>(dim.bound(), kTypicalSize));
    }
    return elements * static_cast<double>(dtype_size(type.dtype));
  }

  /// Reads of parameter `slot` by nodes other than `index` that have not run.
  bool others_read(int32_t index, int32_t slot) const {
    int own = 0;
    for (Value value : graph_.nodes[static_cast<size_t>(index)].inputs) {
      own += value.is_param() && value.index == slot;
    }
    return slot_readers_[static_cast<size_t>(slot)] > own;
  }

  /// Bytes taken less bytes freed by running the node now.
  double growth(int32_t index) const {
    const Node& node = graph_.nodes[static_cast<size_t>(index)];
    if (known_.is_alias(node.op)) return 0;
    double total = 0;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const int32_t slot = slots_[static_cast<size_t>(index)][k];
      if (slot < 0) {
        total += bytes(node.outputs[k]);
      } else if (others_read(index, slot)) {
        // A variable's new value takes the old one's place, once nobody else needs that.
        return std::numeric_limits<double>::infinity();
      }
    }
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const Value value = node.inputs[k];
      if (value.is_param()) continue;
      const auto same = std::count(node.inputs.begin(), node.inputs.end(), value);
      const bool first = std::find(node.inputs.begin(), node.inputs.end(), value) ==
                         node.inputs.begin() + static_cast<std::ptrdiff_t>(k);
      if (first && reads(value) == same) total -= bytes(graph_.type(value));
    }
    return total;
  }

  bool writes_slot(int32_t index) const {
    const std::vector<int32_t>& slots = slots_[static_cast<size_t>(index)];
    return std::any_of(slots.begin(), slots.end(), [](int32_t slot) { return slot >= 0; });
  }

  /// Place in ready_ of the next node.
  size_t choose() const {
    size_t best = 0, first = ready_.size();
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < std::min(ready_.size(), kWindow); ++i) {
      const double now = growth(ready_[i]);
      if (first == ready_.size() && now < std::numeric_limits<double>::infinity()) first = i;
      // Of equals, the one that settles a variable: its gradient's memory is free then.
      const bool settles = writes_slot(ready_[i]) && !writes_slot(ready_[best]);
      if (now < least || (now == least && now <= 0 && settles)) {
        least = now;
        best = i;
      }
    }
    if (least <= 0) return best;
    return first < ready_.size() ? first : 0;
  }

  void finish(int32_t index) {
    for (Value value : graph_.nodes[static_cast<size_t>(index)].inputs) {
      if (value.is_param()) {
        --slot_readers_[static_cast<size_t>(value.index)];
      } else {
        --reads(value);
      }
    }
    for (int32_t user : users_[static_cast<size_t>(index)]) {
      if (--waits_[static_cast<size_t>(user)] > 0) continue;
      ready_.insert(std::lower_bound(ready_.begin(), ready_.end(), user), user);
    }
  }

  const KnownOps& known_;
  const Graph& graph_;
  std::vector<std::vector<int32_t>> users_;
  std::vector<int> waits_;
  std::vector<std::vector<int>> pending_reads_;  ///< of each result
  std::vector<int> slot_readers_;                ///< of each parameter
  std::vector<std::vector<int32_t>> slots_;      ///< parameter each result is stored to, or -1
  std::vector<int32_t> ready_;                   ///< ascending
};

}  // namespace

std::vector<int32_t> schedule(const Graph& graph) { return Scheduler(graph).run(); }

}  // namespace tracefire
