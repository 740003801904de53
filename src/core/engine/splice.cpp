// SPDX-License-Identifier: Apache-2.0
#include "core/engine/splice.h"

#include <algorithm>

#include "core/ops/op_table.h"

namespace tracefire {

Result<std::vector<trace::CellPtr>> splice(const Graph& graph, int32_t first,
                                           const std::vector<Value>& results,
                                           std::map<Value, trace::CellPtr> known,
                                           const SymbolMap& symbols) {
  std::vector<bool> needed(graph.nodes.size(), false);
  for (Value result : results) {
    if (result.valid() && !result.is_param() && known.count(result) == 0) {
      needed[static_cast<size_t>(result.node)] = true;
    }
  }
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (static_cast<int32_t>(i) >= first && OpTable::instance().row(node.op).effect[0] != '\0') {
      needed[i] = true;
    }
    if (!needed[i]) continue;
    for (Value input : node.inputs) {
      if (!input.is_param() && known.count(input) == 0) {
        needed[static_cast<size_t>(input.node)] = true;
      }
    }
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!needed[i]) continue;
    std::vector<trace::CellPtr> inputs;
    for (Value input : graph.nodes[i].inputs) {
      auto found = known.find(input);
      if (found == known.end()) {
        return error(ErrorCode::kInternal, "'", OpTable::instance().name(graph.nodes[i].op),
                     "' needs a value that was not kept");
      }
      inputs.push_back(found->second);
    }
    Node copy = graph.nodes[i];
    copy.inputs.clear();
    if (!symbols.empty()) {
      copy.attrs = substitute(copy.attrs, symbols);
      for (GraphPtr& region : copy.regions) region = substitute(region, symbols);
    }
    TF_ASSIGN(std::vector<trace::CellPtr> outputs,
              trace::record_node(std::move(copy), std::move(inputs)));
    for (size_t k = 0; k < outputs.size(); ++k) {
      known[{static_cast<int32_t>(i), static_cast<int32_t>(k)}] = outputs[k];
    }
  }
  std::vector<trace::CellPtr> cells;
  for (Value result : results) {
    cells.push_back(result.valid() ? known.at(result) : nullptr);
  }
  return cells;
}

namespace {

/// The types of `args` against those of the callee's parameters; what free symbols of parameters
/// stand for in this call.
Result<SymbolMap> match_arguments(const Graph& callee, const Tensors& args) {
  SymbolMap symbols;
  for (size_t i = 0; i < args.size(); ++i) {
    const ValueType& want = callee.params[i].type;
    const ValueType& got = args[i].cell()->type;
    bool fits = want.dtype == got.dtype && want.shape.rank() == got.shape.rank();
    if (fits) {
      match_symbols(want.shape, got.shape, &symbols);
      fits = substitute(want, symbols).shape == got.shape;
    }
    if (!fits) {
      return error(ErrorCode::kShapeMismatch, "'", callee.name, "' takes ", want.str(),
                   " as argument ", i, ", got ", got.str());
    }
  }
  return symbols;
}

/// The last token of the effect chain that begins with `token`: each ordered node takes the chain's
/// token and gives the next.
Value chain_end(const Graph& graph, Value token) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (std::find(node.inputs.begin(), node.inputs.end(), token) == node.inputs.end()) continue;
    for (size_t k = node.outputs.size(); k-- > 0;) {
      if (node.outputs[k].dtype != DType::kToken) continue;
      token = {static_cast<int32_t>(i), static_cast<int32_t>(k)};
      break;
    }
  }
  return token;
}

}  // namespace

Result<Tensors> splice_call(const trace::Lowered& callee, const Tensors& args) {
  const Graph& graph = *callee.graph;
  TF_ASSIGN(const SymbolMap symbols, match_arguments(graph, args));
  // What the callee's parameters are here, in their order: arguments, captures, slots, tokens.
  std::map<Value, trace::CellPtr> known;
  int32_t param = 0;
  for (const Tensor& arg : args) known[{-1, param++}] = arg.cell();
  for (const trace::CellPtr& capture : callee.captures) known[{-1, param++}] = capture;
  for (const trace::SlotPtr& slot : callee.slots) known[{-1, param++}] = trace::read_slot(slot);
  std::vector<Value> wanted;
  for (const ResultValue& result : graph.results) wanted.push_back(result.value);
  for (const std::string& effect : callee.tokens) {
    const Value token{-1, param++};
    known[token] = trace::effect_token(effect);
    wanted.push_back(chain_end(graph, token));
  }
  TF_ASSIGN(std::vector<trace::CellPtr> cells, splice(graph, 0, wanted, std::move(known), symbols));
  Tensors outputs;
  size_t slot_result = 0;
  for (size_t i = 0; i < graph.results.size(); ++i) {
    if (graph.results[i].slot < 0) {
      outputs.emplace_back(cells[i]);
    } else {
      const auto slot = static_cast<size_t>(callee.slot_results[slot_result++]);
      TF_RETURN_IF_ERROR(trace::assign_slot(callee.slots[slot], cells[i]));
    }
  }
  for (size_t t = 0; t < callee.tokens.size(); ++t) {
    trace::set_effect_token(callee.tokens[t], cells[graph.results.size() + t]);
  }
  return outputs;
}

}  // namespace tracefire
