// SPDX-License-Identifier: Apache-2.0
#include "core/engine/splice.h"

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

Result<Tensors> splice_call(const trace::Lowered& callee, const Tensors& args) {
  const Graph& graph = *callee.graph;
  std::map<Value, trace::CellPtr> known;
  SymbolMap symbols;
  int32_t param = 0;
  for (size_t i = 0; i < args.size(); ++i, ++param) {
    const ValueType& want = graph.params[i].type;
    const ValueType& got = args[i].cell()->type;
    if (want.dtype != got.dtype || want.shape.rank() != got.shape.rank()) {
      return error(ErrorCode::kShapeMismatch, "'", graph.name, "' takes ", want.str(),
                   " as argument ", i, ", got ", got.str());
    }
    match_symbols(want.shape, got.shape, &symbols);
    if (substitute(want, symbols).shape != got.shape) {
      return error(ErrorCode::kShapeMismatch, "'", graph.name, "' takes ", want.str(),
                   " as argument ", i, ", got ", got.str());
    }
    known[{-1, param}] = args[i].cell();
  }
  for (const trace::CellPtr& capture : callee.captures) known[{-1, param++}] = capture;
  for (const trace::SlotPtr& slot : callee.slots) known[{-1, param++}] = trace::read_slot(slot);
  const int32_t first_token = param;
  for (const std::string& effect : callee.tokens) {
    known[{-1, param++}] = trace::effect_token(effect);
  }
  std::vector<Value> wanted;
  for (const ResultValue& result : graph.results) wanted.push_back(result.value);
  // The end of each effect chain: the last token made from the parameter's.
  std::map<std::string, Value> chain_end;
  for (size_t t = 0; t < callee.tokens.size(); ++t) {
    Value end{-1, first_token + static_cast<int32_t>(t)};
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      for (Value input : node.inputs) {
        if (input != end) continue;
        for (size_t k = node.outputs.size(); k-- > 0;) {
          if (node.outputs[k].dtype == DType::kToken) {
            end = {static_cast<int32_t>(i), static_cast<int32_t>(k)};
            break;
          }
        }
        break;
      }
    }
    chain_end[callee.tokens[t]] = end;
    wanted.push_back(end);
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
