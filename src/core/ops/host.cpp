// SPDX-License-Identifier: Apache-2.0
// The host family: effects seen outside the graph, and strings. The CPU is their place by design.
// An operation with an effect takes the token of its chain as last input and returns it last.

#include "core/ops/rows.h"

namespace tracefire {
namespace {

Status need_token(const Types& inputs) {
  const ValueType& last = inputs.back();
  if (last.dtype == DType::kToken) return {};
  return error(ErrorCode::kBadGraph, "the last input is ", last.str(),
               "; it must be the token of the chain of effects.");
}

/// All inputs but the token hold data.
Status need_effect_inputs(const Types& inputs) {
  TF_RETURN_IF_ERROR(need_token(inputs));
  for (size_t i = 0; i + 1 < inputs.size(); ++i) {
    TF_RETURN_IF_ERROR(need_type(inputs, i, kAnything));
  }
  return {};
}

ValueType token_type() { return {DType::kToken, Shape()}; }

Status infer_host_call(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_effect_inputs(inputs));
  const std::vector<int64_t>& dtypes = node->attrs.ints("dtypes");
  const std::vector<int64_t>& ranks = node->attrs.ints("ranks");
  const Shape& dims = node->attrs.shape("dims");
  Types outputs;
  int next = 0;
  for (size_t i = 0; i < dtypes.size() && i < ranks.size(); ++i) {
    ValueType type;
    type.dtype = static_cast<DType>(dtypes[i]);
    const bool known = dtypes[i] > 0 && dtypes[i] < static_cast<int64_t>(DType::kToken);
    if (!known || ranks[i] < 0 || ranks[i] > dims.rank() - next) break;
    for (int64_t k = 0; k < ranks[i]; ++k) type.shape.push_back(dims[next++]);
    outputs.push_back(type);
  }
  if (outputs.size() != dtypes.size() || outputs.size() != ranks.size() || next != dims.rank()) {
    return error(ErrorCode::kBadAttribute, "attributes 'dtypes' (", dtypes.size(),
                 " numbers), 'ranks' (", ranks.size(), " numbers) and 'dims' ", dims.str(),
                 " do not describe results; there must be one element type and one rank a result, "
                 "and as many sizes as the ranks sum up to.");
  }
  outputs.push_back(token_type());
  node->outputs = std::move(outputs);
  return {};
}

Status infer_print(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_effect_inputs(inputs));
  const std::string& format = node->attrs.text("format");
  size_t places = 0;
  for (size_t at = format.find("{}"); at != std::string::npos; at = format.find("{}", at + 2)) {
    ++places;
  }
  if (places > inputs.size() - 1) {
    return error(ErrorCode::kBadAttribute, "attribute 'format' has ", places, " places {} for ",
                 inputs.size() - 1, " values; there must be a value for each.");
  }
  node->outputs = {token_type()};
  return {};
}

Status infer_assert(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_effect_inputs(inputs));
  if (inputs[0].dtype != DType::kBool || inputs[0].shape.rank() != 0) {
    return error(ErrorCode::kDTypeMismatch, "the condition is ", inputs[0].str(),
                 "; it must be one truth value, bool(). Reduce it with reduce_all.");
  }
  node->outputs = {token_type()};
  return {};
}

Status infer_string_length(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kText));
  set_output(node, DType::kI32, inputs[0].shape);
  return {};
}

Status infer_string_map(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kText));
  set_output(node, DType::kString, inputs[0].shape);
  return {};
}

Status infer_string_join(const Types& inputs, Node* node) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    TF_RETURN_IF_ERROR(need_type(inputs, i, kText));
    shapes.push_back(inputs[i].shape);
  }
  TF_ASSIGN(const Shape shape, broadcast_shapes(shapes));
  set_output(node, DType::kString, shape);
  return {};
}

Status infer_as_string(const Types& inputs, Node* node) {
  TF_RETURN_IF_ERROR(need_type(inputs, 0, kOrdered));
  set_output(node, DType::kString, inputs[0].shape);
  return {};
}

OpRow host_row(const char* name, const char* tf_name, Arity arity,
               std::vector<const char*> input_names, std::vector<const char*> output_names,
               std::vector<AttrSpec> attrs, InferFn infer, const char* why_no_gradient,
               const char* doc) {
  return OpRow{.name = name,
               .tf_name = tf_name,
               .op_class = OpClass::kHost,
               .arity = arity,
               .input_names = std::move(input_names),
               .output_names = std::move(output_names),
               .attrs = std::move(attrs),
               .infer = infer,
               .gradient = no_gradient(why_no_gradient),
               .cost = traffic_cost,
               .doc = doc};
}

void add_effect_rows(std::vector<OpRow>* rows) {
  const char* none = "the graph does not see what it does";
  rows->push_back(host_row(
      "host_call", "PyFunc", {1, -1}, {"args", "token"}, {},
      {{"callback", AttrType::kInteger, std::nullopt, "number of the registered function"},
       {"dtypes", AttrType::kInts, std::vector<int64_t>(), "element type number of each result"},
       {"ranks", AttrType::kInts, std::vector<int64_t>(), "number of axes of each result"},
       {"dims", AttrType::kShape, Shape(), "sizes of all results, one after the other"}},
      infer_host_call, none,
      "Calls a function of the host program with copies of args; its results and the token come "
      "back. Calls happen in program order, on a thread of their own."));
  rows->back().effect = "host";
  rows->push_back(host_row("print", "PrintV2", {1, -1}, {"values", "token"}, {"token"},
                           {{"format", AttrType::kText, std::nullopt,
                             "the line; each {} stands for one value, what is left over follows"}},
                           infer_print, none, "Prints one line to stderr, in program order."));
  rows->back().effect = "print";
  rows->push_back(host_row(
      "assert", "Assert", {2, -1}, {"cond", "values", "token"}, {"token"},
      {{"message", AttrType::kText, std::string(), "what the error says, before the values"}},
      infer_assert, none,
      "The run fails with error AssertFailed where cond (bool []) is false; the error shows "
      "values."));
  rows->back().effect = "assert";
  rows->back().checks_data = true;
}

}  // namespace

std::vector<OpRow> host_rows() {
  std::vector<OpRow> rows;
  add_effect_rows(&rows);
  const char* none = "strings have none";
  rows.push_back(host_row("string_length", "StringLength", {1, 1}, {"x"}, {"y"}, {},
                          infer_string_length, none, "Bytes of each string, as int32."));
  rows.push_back(host_row("string_upper", "StringUpper", {1, 1}, {"x"}, {"y"}, {}, infer_string_map,
                          none, "Each string with the letters a to z in upper case."));
  rows.push_back(host_row("string_lower", "StringLower", {1, 1}, {"x"}, {"y"}, {}, infer_string_map,
                          none, "Each string with the letters A to Z in lower case."));
  rows.push_back(host_row(
      "string_join", "StringJoin", {1, -1}, {"x"}, {"y"},
      {{"separator", AttrType::kText, std::string(), "text between two parts"}}, infer_string_join,
      none, "The inputs' strings joined element by element; shapes broadcast together."));
  rows.push_back(
      host_row("as_string", "AsString", {1, 1}, {"x"}, {"y"},
               {{"precision", AttrType::kInteger, int64_t{-1},
                 "digits after the point; -1: as few as read back to the same number"}},
               infer_as_string, none,
               "Numbers as text, half types as float32 writes them; bool as true and false."));
  return rows;
}

}  // namespace tracefire
