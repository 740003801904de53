// SPDX-License-Identifier: Apache-2.0
#include "core/graph/builder.h"

namespace tracefire {

Rewriter::Rewriter(const OpSet& ops, const Graph& source)
    : source_(source), builder_(ops, source.name), nodes_(source.nodes.size()) {
  for (const Param& param : source.params) {
    params_.push_back(builder_.param(param.type, param.name, param.kind, param.device));
  }
}

Value Rewriter::map(Value old) const {
  size_t index = static_cast<size_t>(old.index);
  if (old.is_param()) return index < params_.size() ? params_[index] : Value{};
  if (!old.valid() || static_cast<size_t>(old.node) >= nodes_.size()) return {};
  const std::vector<Value>& results = nodes_[static_cast<size_t>(old.node)];
  return index < results.size() ? results[index] : Value{};
}

std::vector<Value> Rewriter::map(const std::vector<Value>& olds) const {
  std::vector<Value> out;
  out.reserve(olds.size());
  for (Value old : olds) out.push_back(map(old));
  return out;
}

void Rewriter::set(Value old, Value now) {
  if (old.is_param()) {
    params_[static_cast<size_t>(old.index)] = now;
    return;
  }
  std::vector<Value>& results = nodes_[static_cast<size_t>(old.node)];
  if (results.size() <= static_cast<size_t>(old.index)) {
    results.resize(source_.node(old).outputs.size());
  }
  results[static_cast<size_t>(old.index)] = now;
}

void Rewriter::copy(int32_t index) {
  Node node = source_.nodes[static_cast<size_t>(index)];
  int32_t outputs = static_cast<int32_t>(node.outputs.size());
  node.inputs = map(node.inputs);
  Value first = builder_.keep(builder_.add(std::move(node)));
  for (int32_t i = 0; i < outputs; ++i) {
    set({index, i}, first.valid() ? Value{first.node, i} : Value{});
  }
}

Result<GraphPtr> Rewriter::finish() {
  for (const ResultValue& result : source_.results) {
    builder_.result(map(result.value), result.slot);
  }
  const OpSet& ops = builder_.ops();
  TF_ASSIGN(GraphPtr graph, builder_.finish());
  return remove_dead(ops, *graph);
}

GraphPtr remove_dead(const OpSet& ops, const Graph& graph) {
  auto has_effect = [&ops](const Node& node) {
    if (!ops.effect(node.op).empty()) return true;
    for (const ValueType& type : node.outputs) {
      if (type.dtype == DType::kToken) return true;  // a region with effects inside
    }
    return false;
  };
  std::vector<bool> alive(graph.nodes.size());
  auto need = [&alive](Value value) {
    if (value.valid() && !value.is_param()) alive[static_cast<size_t>(value.node)] = true;
  };
  for (const ResultValue& result : graph.results) need(result.value);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    if (has_effect(graph.nodes[i])) alive[i] = true;
    if (!alive[i]) continue;
    for (Value input : graph.nodes[i].inputs) need(input);
  }
  auto out = std::make_shared<Graph>();
  out->name = graph.name;
  out->params = graph.params;
  std::vector<int32_t> moved(graph.nodes.size(), -2);
  auto place = [&moved](Value value) -> Value {
    if (value.is_param()) return value;
    return {moved[static_cast<size_t>(value.node)], value.index};
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!alive[i]) continue;
    moved[i] = static_cast<int32_t>(out->nodes.size());
    out->nodes.push_back(graph.nodes[i]);
    for (Value& input : out->nodes.back().inputs) input = place(input);
  }
  for (const ResultValue& result : graph.results) {
    out->results.push_back({place(result.value), result.slot});
  }
  return out;
}

}  // namespace tracefire
