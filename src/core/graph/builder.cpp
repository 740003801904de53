// SPDX-License-Identifier: Apache-2.0
#include "core/graph/builder.h"

#include "core/base/element.h"
#include "core/graph/symbols.h"

namespace tracefire {
namespace {

Status bad_value(Value value, const char* what) {
  return error(ErrorCode::kBadGraph, what, " refers to the value (", value.node, ", ", value.index,
               "), which this graph does not have. A value that was made before and in the same "
               "graph was expected. Please report it.");
}

bool exists(const Graph& graph, Value value) {
  if (!value.valid() || value.index < 0) return false;
  size_t index = static_cast<size_t>(value.index);
  if (value.is_param()) return index < graph.params.size();
  size_t node = static_cast<size_t>(value.node);
  return node < graph.nodes.size() && index < graph.nodes[node].outputs.size();
}

}  // namespace

Builder::Builder(const OpSet& ops, std::string name) : ops_(ops) { graph_.name = std::move(name); }

Builder::Builder(const OpSet& ops, const Graph& graph) : ops_(ops), graph_(graph) {
  graph_.results.clear();
}

Value Builder::param(ValueType type, std::string name, ParamKind kind, Device device) {
  graph_.params.push_back({std::move(type), kind, std::move(name), device});
  return {-1, static_cast<int32_t>(graph_.params.size()) - 1};
}

Result<Value> Builder::add(OpId op, std::vector<Value> inputs, Attrs attrs,
                           std::vector<GraphPtr> regions) {
  Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  node.regions = std::move(regions);
  return add(std::move(node));
}

Result<Value> Builder::add(Node node) {
  if (!status_.ok()) return status_;
  std::vector<ValueType> types;
  types.reserve(node.inputs.size());
  for (Value input : node.inputs) {
    if (!exists(graph_, input)) return bad_value(input, "an input of a new node");
    types.push_back(graph_.type(input));
  }
  if (!node.location.file) node.location = context_.location;
  if (node.name.empty()) node.name = context_.name;
  if (!node.device.is_set()) {
    node.device = context_.device;
    node.device_by_user = context_.device_by_user;
  }
  std::vector<ValueType> written = std::move(node.outputs);
  node.outputs.clear();
  TF_RETURN_IF_ERROR(ops_.infer(types, &node));
  if (!written.empty() && written != node.outputs &&
      same_up_to_new_symbols(written, node.outputs, symbols_into(types, node))) {
    node.outputs = std::move(written);
  }
  graph_.nodes.push_back(std::move(node));
  return Value{static_cast<int32_t>(graph_.nodes.size()) - 1, 0};
}

Value Builder::keep(Result<Value> result) {
  if (result.ok()) return *result;
  if (status_.ok()) status_ = result.status();
  return {};
}

Value Builder::op(std::string_view name, std::vector<Value> inputs, Attrs attrs,
                  std::vector<GraphPtr> regions) {
  if (!status_.ok()) return {};
  std::optional<OpId> id = ops_.find(name);
  if (!id) {
    return keep(error(ErrorCode::kUnknownOp, "no operation is called '", name,
                      "'. A gradient or decomposition asked for it. Please report it."));
  }
  return keep(add(*id, std::move(inputs), std::move(attrs), std::move(regions)));
}

Value Builder::scalar(double value, DType dtype) {
  return op("constant", {},
            {{"dtype", dtype}, {"shape", Shape()}, {"bytes", element_bytes(value, dtype)}});
}

void Builder::set_context(Location location, std::string name, Device device, bool by_user) {
  context_.location = location;
  context_.name = std::move(name);
  context_.device = device;
  context_.device_by_user = by_user;
}

void Builder::result(Value value, int32_t slot) {
  if (status_.ok() && !exists(graph_, value)) status_ = bad_value(value, "a result");
  graph_.results.push_back({value, slot});
}

Result<GraphPtr> Builder::finish() {
  Graph graph = std::move(graph_);
  Status status = std::move(status_);
  graph_ = Graph();
  status_ = Status();
  if (!status.ok()) return status;
  return GraphPtr(std::make_shared<const Graph>(std::move(graph)));
}

Result<std::vector<Value>> inline_graph(const Graph& graph, const std::vector<Value>& args,
                                        Builder* builder) {
  if (args.size() != graph.params.size()) {
    return error(ErrorCode::kBadGraph, "the graph '", graph.name, "' was given ", args.size(),
                 " arguments for its ", graph.params.size(),
                 " parameters. One for each was expected. Please report it.");
  }
  SymbolMap symbols;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!exists(builder->graph(), args[i])) return bad_value(args[i], "an argument");
    const ValueType &wanted = graph.params[i].type, &given = builder->type(args[i]);
    if (wanted.dtype != given.dtype || wanted.shape.rank() != given.shape.rank()) {
      return error(ErrorCode::kBadGraph, "the graph '", graph.name, "' was given ", given.str(),
                   " for its parameter ", i, ", which is ", wanted.str(),
                   ". The same element type and rank were expected. Please report it.");
    }
    match_symbols(wanted.shape, given.shape, &symbols);
  }
  std::vector<Value> firsts;  // of each node
  auto place = [&](Value old) -> Value {
    if (!exists(graph, old)) return {};
    if (old.is_param()) return args[static_cast<size_t>(old.index)];
    size_t node = static_cast<size_t>(old.node);
    if (node >= firsts.size()) return {};
    return {firsts[node].node, old.index};
  };
  for (const Node& old : graph.nodes) {
    Node node = old;
    for (Value& input : node.inputs) input = place(input);
    node.attrs = substitute(node.attrs, symbols);
    for (GraphPtr& region : node.regions) region = substitute(region, symbols);
    node.outputs.clear();
    TF_ASSIGN(Value first, builder->add(std::move(node)));
    firsts.push_back(first);
    const std::vector<ValueType>& now = builder->graph().node(first).outputs;
    for (size_t i = 0; i < old.outputs.size() && i < now.size(); ++i) {
      match_symbols(old.outputs[i].shape, now[i].shape, &symbols);
    }
  }
  std::vector<Value> results;
  for (const ResultValue& result : graph.results) {
    if (!exists(graph, result.value)) return bad_value(result.value, "a result");
    results.push_back(place(result.value));
  }
  return results;
}

}  // namespace tracefire
