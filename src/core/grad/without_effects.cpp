// SPDX-License-Identifier: Apache-2.0
#include "core/grad/regions.h"
#include "core/ops/op_table.h"

namespace tracefire {
namespace {

bool is_token(const ValueType& type) { return type.dtype == DType::kToken; }

/// Copies a region's data part node by node. A value that cannot be had without its effect maps to
/// an invalid Value, and so does all that is computed from it.
class DataCopy {
 public:
  DataCopy(const OpSet& ops, const Graph& source)
      : ops_(ops), source_(source), builder_(ops, source.name), nodes_(source.nodes.size()) {}

  Result<GraphPtr> run() {
    for (const Param& param : source_.params) {
      params_.push_back(is_token(param.type)
                            ? Value{}
                            : builder_.param(param.type, param.name, ParamKind::kInput));
    }
    for (size_t i = 0; i < source_.nodes.size(); ++i) {
      nodes_[i].resize(source_.nodes[i].outputs.size());
      TF_RETURN_IF_ERROR(copy(i));
    }
    for (const ResultValue& result : source_.results) {
      if (is_token(source_.type(result.value))) continue;
      const Value value = map(result.value);
      if (!value.valid()) return lost(result.value);
      builder_.result(value);
    }
    TF_ASSIGN(const GraphPtr graph, builder_.finish());
    return remove_dead(ops_, *graph);
  }

 private:
  Value map(Value old) const {
    if (old.is_param()) return params_[static_cast<size_t>(old.index)];
    return nodes_[static_cast<size_t>(old.node)][static_cast<size_t>(old.index)];
  }

  Status copy(size_t index) {
    const Node& old = source_.nodes[index];
    if (!ops_.effect(old.op).empty() || ops_.name(old.op) == "token") return {};
    Node node = old;
    node.inputs.clear();
    for (Value input : old.inputs) {
      if (is_token(source_.type(input))) continue;
      const Value value = map(input);
      if (!value.valid()) return {};
      node.inputs.push_back(value);
    }
    for (GraphPtr& region : node.regions) {
      TF_ASSIGN(region, without_effects(ops_, *region));
    }
    node.outputs.clear();
    for (const ValueType& type : old.outputs) {
      if (!is_token(type)) node.outputs.push_back(type);
    }
    TF_ASSIGN(const Value first, builder_.add(std::move(node)));
    int32_t data = 0;
    for (size_t k = 0; k < old.outputs.size(); ++k) {
      if (!is_token(old.outputs[k])) nodes_[index][k] = {first.node, data++};
    }
    return {};
  }

  /// Names the effect that `value` comes from.
  Status lost(Value value) const {
    while (!value.is_param()) {
      const Node& node = source_.node(value);
      if (node.inputs.empty()) break;
      if (!ops_.effect(node.op).empty()) {
        const std::string where = node.location.file ? " at " + node.location.str() : "";
        return error(ErrorCode::kNoGradient, ops_.name(node.op), where,
                     " stands in a branch or loop whose gradient is asked; that part would have to "
                     "run again, and effects must not happen twice. Move the call out of the "
                     "branch or loop, or put stop_gradient after it.");
      }
      Value next = node.inputs[0];
      for (Value input : node.inputs) {
        if (!is_token(source_.type(input)) && !map(input).valid()) next = input;
      }
      value = next;
    }
    return error(ErrorCode::kInternal, "a region lost a value. Please report it.");
  }

  const OpSet& ops_;
  const Graph& source_;
  Builder builder_;
  std::vector<Value> params_;
  std::vector<std::vector<Value>> nodes_;
};

}  // namespace

Result<GraphPtr> without_effects(const OpSet& ops, const Graph& region) {
  return DataCopy(ops, region).run();
}

}  // namespace tracefire
