// SPDX-License-Identifier: Apache-2.0
#include "backends/ref/oracle.h"

#include "core/graph/builder.h"

namespace tracefire::ref {

EvalFn find_eval(OpId op) {
  static const std::vector<EvalFn> table = [] {
    const OpTable& ops = OpTable::instance();
    std::vector<EvalFn> by_id(ops.rows().size());
    for (auto family :
         {unary_entries, binary_entries, movement_entries, indexing_entries, reduction_entries,
          product_entries, random_entries, composite_entries, string_entries}) {
      for (const Entry& entry : family()) by_id[ops.id(entry.op)] = entry.fn;
    }
    return by_id;
  }();
  return table[op];
}

Result<std::vector<Array>> evaluate(const Node& node, const std::vector<Array>& inputs,
                                    std::optional<Failure>* failure) {
  const EvalFn fn = find_eval(node.op);
  if (!fn) {
    return error(ErrorCode::kNoKernel, OpTable::instance().name(node.op),
                 " cannot be computed by the oracle, which has no effects and no host functions.");
  }
  Eval e{node, inputs, {}, std::nullopt};
  for (const ValueType& type : node.outputs) {
    e.out.push_back(type.shape.is_constant() ? Array(type.dtype, type.shape.sizes())
                                             : Array(type.dtype, {0}));
  }
  fn(e);
  for (Array& array : e.out) settle(&array);
  *failure = e.failure;
  return std::move(e.out);
}

namespace {

/// Walks a graph whose values are host arrays.
class Walk {
 public:
  Walk(const Graph& graph, DimEnv env, std::optional<Failure>* failure)
      : graph_(graph), env_(std::move(env)), failure_(failure), nodes_(graph.nodes.size()) {}

  Result<std::vector<Array>> run(const std::vector<Array>& params) {
    if (params.size() != graph_.params.size()) {
      return error(ErrorCode::kBadArity, "the graph '", graph_.name, "' has ", graph_.params.size(),
                   " parameters and received ", params.size(), " arrays.");
    }
    params_ = params;
    for (size_t i = 0; i < params.size(); ++i) learn(graph_.params[i].type, params[i]);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      std::vector<Array> inputs;
      for (Value input : node.inputs) inputs.push_back(at(input));
      TF_ASSIGN(nodes_[i], step(node, inputs));
      for (size_t k = 0; k < node.outputs.size(); ++k) learn(node.outputs[k], nodes_[i][k]);
    }
    std::vector<Array> results;
    for (const ResultValue& result : graph_.results) results.push_back(at(result.value));
    return results;
  }

 private:
  const Array& at(Value value) const {
    if (value.is_param()) return params_[static_cast<size_t>(value.index)];
    return nodes_[static_cast<size_t>(value.node)][static_cast<size_t>(value.index)];
  }

  /// Free symbols of a type get their numbers from the array.
  void learn(const ValueType& type, const Array& array) {
    for (int axis = 0; axis < type.shape.rank() && axis < array.rank(); ++axis) {
      const Dim dim = type.shape[axis];
      if (!dim.is_symbol() || free_symbols(dim) != std::vector<int32_t>{dim.symbol()}) continue;
      if (!env_.has(dim.symbol())) env_.set(dim.symbol(), array.sizes[static_cast<size_t>(axis)]);
    }
  }

  Result<std::vector<Array>> step(const Node& node, const std::vector<Array>& inputs) {
    const std::string_view name = OpTable::instance().name(node.op);
    if (name == "if") {
      const std::vector<Array> operands(inputs.begin() + 1, inputs.end());
      return region(node, inputs[0].whole[0] ? 0 : 1, operands);
    }
    if (name == "call" || name == "fused") return region(node, 0, inputs);
    if (name == "while") return loop(node, inputs);
    if (name == "token" || name == "print") {
      return std::vector<Array>(1, Array(DType::kToken, {}));
    }
    if (name == "assert") {
      if (inputs[0].whole[0]) return std::vector<Array>(1, Array(DType::kToken, {}));
      return error(ErrorCode::kAssertFailed, node.attrs.text("message"));
    }
    std::optional<Failure> failure;
    TF_ASSIGN(std::vector<Array> results, evaluate(bind_node(node, env_), inputs, &failure));
    if (failure && failure_) {
      if (!*failure_) *failure_ = failure;
    } else if (failure) {
      return error(failure->code, name, ": a data check failed at ", failure->detail, ".");
    }
    return results;
  }

  /// A region may use symbols that only the graph around it has arrays for.
  Result<std::vector<Array>> region(const Node& node, size_t index,
                                    const std::vector<Array>& operands) const {
    return Walk(*node.regions[index], env_, failure_).run(operands);
  }

  Result<std::vector<Array>> loop(const Node& node, std::vector<Array> state) const {
    const int64_t limit = node.attrs.integer("max_iterations");
    for (int64_t turn = 0; limit < 0 || turn < limit; ++turn) {
      TF_ASSIGN(const std::vector<Array> test, region(node, 0, state));
      if (!test[0].whole[0]) break;
      TF_ASSIGN(state, region(node, 1, state));
    }
    return state;
  }

  const Graph& graph_;
  DimEnv env_;
  std::optional<Failure>* failure_;
  std::vector<Array> params_;
  std::vector<std::vector<Array>> nodes_;
};

}  // namespace

Result<std::vector<Array>> run_graph(const Graph& graph, const std::vector<Array>& params,
                                     std::optional<Failure>* failure) {
  return Walk(graph, DimEnv(), failure).run(params);
}

}  // namespace tracefire::ref
