// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "core/compile/passes/passes.h"
#include "core/compile/passes/simplifier.h"

namespace tracefire {
namespace {

/// A walk leaves work only where a rule met an operand that was simplified after it.
constexpr int kMaxWalks = 4;

size_t mix(size_t hash, size_t part) {
  return (hash ^ (part + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2)));
}

size_t hash_node(const Node& node) {
  size_t hash = node.op;
  for (Value value : node.inputs) {
    hash = mix(hash, static_cast<size_t>(value.node));
    hash = mix(hash, static_cast<size_t>(value.index));
  }
  for (const auto& [name, attr] : node.attrs.entries()) {
    if (const auto* text = std::get_if<std::string>(&attr)) {
      hash = mix(hash, std::hash<std::string>()(*text));
    }
  }
  return hash;
}

/// Equal bit by bit: -0 and 0 are different numbers, NaN is equal to itself.
bool same_attrs(const Attrs& a, const Attrs& b) {
  const auto &x = a.entries(), &y = b.entries();
  if (x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i].first != y[i].first) return false;
    const double* p = std::get_if<double>(&x[i].second);
    const double* q = std::get_if<double>(&y[i].second);
    if (p && q) {
      if (std::memcmp(p, q, sizeof(double)) != 0) return false;
    } else if (!(x[i].second == y[i].second)) {
      return false;
    }
  }
  return true;
}

}  // namespace

Simplifier::Simplifier(const Graph& source)
    : table_(OpTable::instance()),
      known_(KnownOps::get()),
      source_(source),
      rewriter_(table_, source),
      builder_(rewriter_.builder()) {}

Result<GraphPtr> Simplifier::run() {
  for (size_t i = 0; i < source_.nodes.size(); ++i) {
    Node node = source_.nodes[i];
    const int32_t index = static_cast<int32_t>(i);
    const int32_t outputs = static_cast<int32_t>(node.outputs.size());
    node.inputs = rewriter_.map(node.inputs);
    origin_.device = node.device;
    origin_.device_by_user = node.device_by_user;
    origin_.location = node.location;
    origin_.name = node.name;
    // What fell back stays as the user wrote it, so that reports name it.
    const bool plain = outputs == 1 && node.fell_back.empty();
    const Value first = plain ? simplified(std::move(node)) : add(std::move(node));
    if (!first.valid()) break;  // the builder keeps the reason
    for (int32_t k = 0; k < outputs; ++k) {
      rewriter_.set({index, k}, {first.node, first.index + k});
    }
  }
  TF_RETURN_IF_ERROR(builder_.status());
  TF_ASSIGN(GraphPtr graph, rewriter_.finish());
  changed_ = changed_ || graph->nodes.size() != source_.nodes.size();
  return graph;
}

Value Simplifier::simplified(Node node) {
  // Rules work with the types of the node in the new graph.
  const Value replaced = rule(node);
  if (!replaced.valid()) return add(std::move(node));
  changed_ = true;
  return replaced;
}

Value Simplifier::add(Node node) {
  const OpRow& row = table_.row(node.op);
  bool pure = row.effect[0] == '\0' && node.regions.empty() && row.size_output < 0 &&
              node.op != known_.token;
  const size_t hash = pure ? hash_node(node) : 0;
  if (pure) {
    const auto [from, to] = seen_.equal_range(hash);
    for (auto it = from; it != to; ++it) {
      const Node& other = builder_.graph().nodes[static_cast<size_t>(it->second)];
      if (other.op == node.op && other.inputs == node.inputs && other.device == node.device &&
          other.device_by_user == node.device_by_user &&
          other.fell_back.empty() == node.fell_back.empty() &&
          same_attrs(other.attrs, node.attrs)) {
        changed_ = true;
        return {it->second, 0};
      }
    }
  }
  const Value value = builder_.keep(builder_.add(std::move(node)));
  if (pure && value.valid()) seen_.emplace(hash, value.node);
  return value;
}

Value Simplifier::make(OpId op, std::vector<Value> inputs, Attrs attrs) {
  Node node;
  node.op = op;
  for (Value value : inputs) {
    if (!value.valid()) return {};
  }
  node.attrs = std::move(attrs);
  node.device = origin_.device;
  node.device_by_user = origin_.device_by_user;
  node.location = origin_.location;
  node.name = origin_.name;
  std::vector<ValueType> types;
  for (Value value : inputs) types.push_back(builder_.graph().type(value));
  node.inputs = std::move(inputs);
  const Status inferred = table_.infer(types, &node);  // rules read the result's type
  if (!inferred.ok()) return builder_.keep(Result<Value>(inferred));
  return simplified(std::move(node));
}

Result<GraphPtr> simplify(const GraphPtr& source, const CompileOptions& options, bool* changed) {
  TF_ASSIGN(GraphPtr graph, rewrite_regions(source, options, changed, simplify));
  for (int walk = 0; walk < kMaxWalks; ++walk) {
    Simplifier simplifier(*graph);
    TF_ASSIGN(const GraphPtr now, simplifier.run());
    if (!simplifier.changed()) break;
    graph = now;
    *changed = true;
  }
  return graph;
}

}  // namespace tracefire
