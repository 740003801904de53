// SPDX-License-Identifier: Apache-2.0
#include "core/graph/symbols.h"

#include "core/base/dim_text.h"

namespace tracefire {
namespace {

void add_symbols(const Shape& shape, std::unordered_set<int32_t>* out) {
  for (Dim dim : shape) {
    if (dim.is_constant()) continue;
    for (int32_t symbol : free_symbols(dim)) out->insert(symbol);
  }
}

void add_symbols(const Graph& graph, std::unordered_set<int32_t>* out);

void add_symbols(const Node& node, std::unordered_set<int32_t>* out) {
  for (const auto& [name, value] : node.attrs.entries()) {
    if (const Shape* shape = std::get_if<Shape>(&value)) add_symbols(*shape, out);
  }
  for (const GraphPtr& region : node.regions) {
    if (region) add_symbols(*region, out);
  }
}

void add_symbols(const Graph& graph, std::unordered_set<int32_t>* out) {
  for (const Param& param : graph.params) add_symbols(param.type.shape, out);
  for (const Node& node : graph.nodes) {
    add_symbols(node, out);
    for (const ValueType& type : node.outputs) add_symbols(type.shape, out);
  }
}

bool is_free(Dim dim) { return dim.is_symbol() && is_free_symbol(dim.symbol()); }

}  // namespace

std::unordered_set<int32_t> symbols_into(const std::vector<ValueType>& inputs, const Node& node) {
  std::unordered_set<int32_t> out;
  for (const ValueType& type : inputs) add_symbols(type.shape, &out);
  add_symbols(node, &out);
  return out;
}

bool same_up_to_new_symbols(const std::vector<ValueType>& written,
                            const std::vector<ValueType>& inferred,
                            const std::unordered_set<int32_t>& known) {
  if (written.size() != inferred.size()) return false;
  SymbolMap stands_for;  // inferred symbol -> written dim
  std::unordered_set<int32_t> taken;
  for (size_t i = 0; i < written.size(); ++i) {
    const Shape &a = written[i].shape, &b = inferred[i].shape;
    if (written[i].dtype != inferred[i].dtype || a.rank() != b.rank()) return false;
    for (int axis = 0; axis < a.rank(); ++axis) {
      Dim w = a[axis], n = b[axis];
      if (w == n || !is_free(n) || !is_free(w)) continue;
      if (known.count(n.symbol()) || known.count(w.symbol()) || w.bound() < n.bound()) continue;
      if (!stands_for.count(n.symbol()) && taken.insert(w.symbol()).second) {
        stands_for[n.symbol()] = w;
      }
    }
  }
  for (size_t i = 0; i < written.size(); ++i) {
    if (written[i].shape != inferred[i].shape.substitute(stands_for)) return false;
  }
  return true;
}

void match_symbols(const Shape& from, const Shape& to, SymbolMap* map) {
  for (int axis = 0; axis < from.rank() && axis < to.rank(); ++axis) {
    if (is_free(from[axis])) map->try_emplace(from[axis].symbol(), to[axis]);
  }
}

ValueType substitute(const ValueType& type, const SymbolMap& map) {
  return {type.dtype, type.shape.substitute(map)};
}

Attrs substitute(const Attrs& attrs, const SymbolMap& map) {
  Attrs out = attrs;
  for (const auto& [name, value] : attrs.entries()) {
    if (const Shape* shape = std::get_if<Shape>(&value)) out.set(name, shape->substitute(map));
  }
  return out;
}

GraphPtr substitute(const GraphPtr& graph, const SymbolMap& map) {
  if (map.empty() || !graph) return graph;
  std::unordered_set<int32_t> symbols;
  add_symbols(*graph, &symbols);
  bool any = false;
  for (int32_t symbol : symbols) {
    auto found = map.find(symbol);
    any = any || (found != map.end() && found->second != Dim::from_symbol(symbol));
  }
  if (!any) return graph;
  auto out = std::make_shared<Graph>(*graph);
  for (Param& param : out->params) param.type = substitute(param.type, map);
  for (Node& node : out->nodes) {
    node.attrs = substitute(node.attrs, map);
    for (ValueType& type : node.outputs) type = substitute(type, map);
    for (GraphPtr& region : node.regions) region = substitute(region, map);
  }
  return out;
}

}  // namespace tracefire
