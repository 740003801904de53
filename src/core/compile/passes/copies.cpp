// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "core/compile/passes/placement.h"
#include "core/graph/builder.h"

namespace tracefire {
namespace {

/// Writes the graph again with copies on edges between devices.
class CopyInserter {
 public:
  CopyInserter(const Graph& source, Device results)
      : known_(KnownOps::get()),
        source_(source),
        results_(results),
        rewriter_(OpTable::instance(), source) {}

  /// True where some edge or result crosses devices, or a copy goes nowhere.
  bool needed() const {
    for (const Node& node : source_.nodes) {
      if (node.op == known_.copy) {
        if (device_of(source_, node.inputs[0]) == node.device) return true;
        continue;
      }
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        if (crosses(node.inputs[k], operand_device(node, k))) return true;
      }
    }
    for (const ResultValue& result : source_.results) {
      if (crosses(result.value, result_device(result))) return true;
    }
    return false;
  }

  Result<GraphPtr> run() {
    for (size_t i = 0; i < source_.nodes.size(); ++i) {
      const int32_t index = static_cast<int32_t>(i);
      const Node& node = source_.nodes[i];
      Node now = node;
      if (node.op == known_.copy) {
        const Value from = node.inputs[0];
        if (device_of(source_, from) == node.device) {
          rewriter_.set({index, 0}, rewriter_.map(from));
          continue;
        }
        if (const auto known = copies_.find({from, node.device}); known != copies_.end()) {
          rewriter_.set({index, 0}, known->second);
          continue;
        }
        now.inputs = rewriter_.map(node.inputs);
      } else {
        for (size_t k = 0; k < node.inputs.size(); ++k) {
          TF_ASSIGN(now.inputs[k], on_device(node.inputs[k], operand_device(node, k), node));
        }
      }
      TF_ASSIGN(const Value first, rewriter_.builder().add(std::move(now)));
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        rewriter_.set({index, static_cast<int32_t>(k)}, {first.node, static_cast<int32_t>(k)});
      }
      if (node.op == known_.copy) copies_[{node.inputs[0], node.device}] = first;
    }
    Builder& builder = rewriter_.builder();
    static const Node kNobody;
    for (const ResultValue& result : source_.results) {
      const Value value = result.value;
      const Node& producer = value.is_param() ? kNobody : source_.node(value);
      TF_ASSIGN(const Value now, on_device(value, result_device(result), producer));
      builder.result(now, result.slot);
    }
    TF_ASSIGN(const GraphPtr graph, builder.finish());
    return remove_dead(OpTable::instance(), *graph);
  }

 private:
  bool crosses(Value value, Device target) const {
    const Device from = device_of(source_, value);
    return from.is_set() && target.is_set() && from != target &&
           source_.type(value).dtype != DType::kString;
  }

  /// Where the node wants an operand; unset: anywhere. The host reads a predicate where it is.
  Device operand_device(const Node& node, size_t index) const {
    return node.op == known_.if_op && index == 0 ? Device{} : node.device;
  }

  Device result_device(const ResultValue& result) const {
    if (result.slot >= 0) return source_.params[static_cast<size_t>(result.slot)].device;
    return results_;
  }

  /// The new value that stands for `value` on `target`.
  Result<Value> on_device(Value value, Device target, const Node& user) {
    if (!crosses(value, target)) return rewriter_.map(value);
    if (const auto known = copies_.find({value, target}); known != copies_.end()) {
      return known->second;
    }
    Node node;
    if (!value.is_param()) {
      const Node& producer = source_.node(value);
      // Back to where it came from: the original is still there.
      if (producer.op == known_.copy && device_of(source_, producer.inputs[0]) == target) {
        return rewriter_.map(producer.inputs[0]);
      }
      // A constant is made where it is needed.
      if (producer.op == known_.constant || producer.op == known_.iota) {
        node = producer;
        node.device_by_user = user.device_by_user;
      }
    }
    if (node.outputs.empty()) {
      node.op = known_.copy;
      node.inputs = {rewriter_.map(value)};
      node.location = user.location;
      node.name = user.name;
    }
    node.device = target;
    TF_ASSIGN(const Value now, rewriter_.builder().add(std::move(node)));
    copies_[{value, target}] = now;
    return now;
  }

  const KnownOps& known_;
  const Graph& source_;
  Device results_;
  Rewriter rewriter_;
  std::map<std::pair<Value, Device>, Value> copies_;
};

}  // namespace

Result<GraphPtr> insert_copies(const GraphPtr& graph, Device results, bool* changed) {
  CopyInserter inserter(*graph, results);
  if (!inserter.needed()) return graph;
  *changed = true;
  return inserter.run();
}

}  // namespace tracefire
