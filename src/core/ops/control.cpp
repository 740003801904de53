// SPDX-License-Identifier: Apache-2.0
// The control family: operations with regions. A region captures nothing; its parameters are the
// operands, effect tokens among them.

#include "core/ops/rows.h"
#include "tracefire/error.h"

namespace tracefire {
namespace {

std::string type_list(const Types& types) {
  std::string text;
  for (const ValueType& type : types) text += (text.empty() ? "" : ", ") + type.str();
  return "(" + text + ")";
}

Types param_types(const Graph& region) {
  Types types;
  for (const Param& param : region.params) types.push_back(param.type);
  return types;
}

Types result_types(const Graph& region) {
  Types types;
  for (const ResultValue& result : region.results) types.push_back(region.type(result.value));
  return types;
}

Status need_params(const Node& node, size_t region, const char* name, const Types& operands) {
  const Types params = param_types(*node.regions[region]);
  if (params == operands) return {};
  return error(ErrorCode::kBadGraph, "region '", name, "' takes ", type_list(params),
               " and the operands are ", type_list(operands), "; both must be equal.");
}

Status need_condition(const ValueType& type, const char* what) {
  if (type.dtype == DType::kBool && type.shape.rank() == 0) return {};
  return error(ErrorCode::kDTypeMismatch, what, " is ", type.str(),
               "; it must be one truth value, bool().");
}

Status infer_if(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_condition(inputs[0], "the predicate"));
  const Types operands(inputs.begin() + 1, inputs.end());
  TF_RETURN_IF_ERROR(need_params(*node, 0, "then", operands));
  TF_RETURN_IF_ERROR(need_params(*node, 1, "else", operands));
  const Types then_types = result_types(*node->regions[0]);
  const Types else_types = result_types(*node->regions[1]);
  if (then_types != else_types) {
    return error(ErrorCode::kShapeMismatch, "one branch returns ", type_list(then_types),
                 " and the other ", type_list(else_types),
                 "; both must return equally many values of equal types.");
  }
  node->outputs = then_types;
  return {};
}

Status infer_while(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_params(*node, 0, "cond", inputs));
  TF_RETURN_IF_ERROR(need_params(*node, 1, "body", inputs));
  const Types tests = result_types(*node->regions[0]);
  if (tests.size() != 1) {
    return error(ErrorCode::kBadGraph, "region 'cond' returns ", type_list(tests),
                 "; it must return one truth value, bool().");
  }
  TF_RETURN_IF_ERROR(need_condition(tests[0], "the result of region 'cond'"));
  const Types after = result_types(*node->regions[1]);
  if (after != inputs) {
    return error(ErrorCode::kShapeMismatch, "the loop starts with ", type_list(inputs),
                 " and its body returns ", type_list(after),
                 "; types must stay the same from turn to turn.");
  }
  node->outputs = after;
  return {};
}

Status infer_call(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_params(*node, 0, "body", inputs));
  node->outputs = result_types(*node->regions[0]);
  return {};
}

/// What may stand in a fused loop: one result element from one element of each input.
bool fusible(const OpRow& row) {
  const std::string_view name = row.name;
  return row.op_class == OpClass::kElementwise || name == "constant" || name == "iota" ||
         name == "extent" || name == "broadcast_to" || name == "reshape" ||
         name == "random_bits";
}

Status infer_fused(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_params(*node, 0, "body", inputs));
  const Graph& body = *node->regions[0];
  for (const Node& part : body.nodes) {
    const OpRow& row = OpTable::instance().row(part.op);
    if (fusible(row)) continue;
    return error(ErrorCode::kBadGraph, "the loop contains ", row.name,
                 ", which does not work element by element.");
  }
  const Types results = result_types(body);
  for (const ValueType& type : results) {
    if (type.shape == results[0].shape) continue;
    return error(ErrorCode::kBadGraph, "the loop returns ", type_list(results),
                 "; all results must have one shape.");
  }
  node->outputs = results;
  return {};
}

Status infer_token(const Types&, Node* node) {
  const std::string& effect = node->attrs.text("effect");
  bool known = false;
  for (const OpRow& row : OpTable::instance().rows()) known = known || effect == row.effect;
  if (!known || effect.empty()) {
    return error(ErrorCode::kBadAttribute, "attribute 'effect' is '", effect,
                 "'; it must be the class of an operation with effects: 'print', 'host' or "
                 "'assert'.");
  }
  set_output(node, DType::kToken, Shape());
  return {};
}

/// core/grad differentiates control nodes region by region and never asks the row.
std::vector<Value> grad_by_region(GradContext&) {
  error(ErrorCode::kInternal,
        "the gradient of a control node was asked of its row; please report "
        "it.")
      .throw_if_error();
  return {};
}

/// Operands and results; node_cost adds the regions.
OpRow control(const char* name, const char* tf_name, std::vector<const char*> input_names,
              int regions, InferFn infer, const char* doc) {
  return OpRow{.name = name,
               .tf_name = tf_name,
               .op_class = OpClass::kControl,
               .arity = {0, -1},
               .input_names = std::move(input_names),
               .output_names = {},
               .attrs = {},
               .infer = infer,
               .gradient = {grad_by_region, 1u << 31, 0},
               .cost = no_cost,
               .doc = doc,
               .regions = regions};
}

}  // namespace

std::vector<OpRow> control_rows() {
  std::vector<OpRow> rows;
  rows.push_back(control("if", "If", {"pred", "operands"}, 2, infer_if,
                         "pred bool [] ? then(operands) : else(operands). Both regions take all "
                         "operands and return values of equal types; only one runs."));
  rows.back().arity.min = 1;
  rows.push_back(control("while", "While", {"operands"}, 2, infer_while,
                         "Repeats operands = body(operands) while cond(operands) is true; returns "
                         "the last operands. A gradient needs max_iterations."));
  rows.back().attrs = {{"max_iterations", AttrType::kInteger, int64_t{-1},
                        "the loop stops after so many turns; -1: no limit"}};
  rows.push_back(control("call", "PartitionedCall", {"operands"}, 1, infer_call,
                         "body(operands): a graph used as an operation."));
  rows.push_back(control("fused", "Fused", {"operands"}, 1, infer_fused,
                         "body(operands) as one loop over elements: operands broadcast against the "
                         "one shape that all results have."));
  rows.back().cost = traffic_cost;
  rows.push_back(OpRow{
      .name = "token",
      .tf_name = "NoOp",
      .op_class = OpClass::kControl,
      .arity = {0, 0},
      .input_names = {},
      .output_names = {"token"},
      .attrs = {{"effect", AttrType::kText, std::nullopt, "class of the effects it orders"}},
      .infer = infer_token,
      .gradient = no_gradient("it has no operand"),
      .cost = no_cost,
      .doc = "Start of a chain of effects: each operation of the class takes the token of the one "
             "before it and returns its own."});
  return rows;
}

}  // namespace tracefire
