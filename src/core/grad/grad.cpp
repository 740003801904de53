// SPDX-License-Identifier: Apache-2.0
#include "core/grad/grad.h"

#include <map>

#include "core/grad/regions.h"
#include "core/ops/math.h"
#include "core/ops/op_table.h"

namespace tracefire {
namespace {

std::string at(const OpRow& row, const Node& node) {
  std::string text = row.name;
  if (!node.name.empty()) text += " (" + node.name + ")";
  if (node.location.file) text += " at " + node.location.str();
  return text;
}

/// One reverse pass over the nodes that a builder has when it starts.
class Reverse {
 public:
  explicit Reverse(Builder* b) : b_(*b), nodes_(b->graph().nodes.size()) {}

  Status seed(const std::vector<Value>& outputs, const std::vector<Value>& grads);
  void activate(const std::vector<Value>& wrt);
  Status sweep();
  /// The sum of all contributions to `value`.
  Value total(Value value);

 private:
  bool active(Value value) const;
  Status visit(int32_t index);
  Result<std::vector<Value>> node_gradients(const Node& node, const std::vector<Value>& results,
                                            const std::vector<Value>& out_grads,
                                            const std::vector<bool>& wanted);
  Status contribute(const OpRow& row, const Node& node, Value input, Value grad);

  Builder& b_;
  size_t nodes_;
  std::map<Value, std::vector<Value>> parts_;
  std::map<Value, bool> active_params_;
  std::vector<std::vector<bool>> active_;  // by node, by result
};

Status Reverse::seed(const std::vector<Value>& outputs, const std::vector<Value>& grads) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ValueType type = b_.type(outputs[i]);
    if (!is_floating(type.dtype)) {
      return error(ErrorCode::kDTypeMismatch, "output ", i, " is ", type.str(),
                   "; only floating values have gradients. Convert it with cast first, or take the "
                   "gradient of another value.");
    }
    Value grad = i < grads.size() ? grads[i] : Value{};
    if (!grad.valid()) {
      Math m(b_);
      grad = m.broadcast_to(b_.scalar(1, type.dtype), type.shape);
      if (!grad.valid()) return b_.status();
    }
    const ValueType given = b_.type(grad);
    if (given.dtype != type.dtype || given.shape != type.shape) {
      return error(ErrorCode::kShapeMismatch, "the gradient of output ", i, " is ", given.str(),
                   "; it must have the type of the output, ", type.str(), ".");
    }
    parts_[outputs[i]].push_back(grad);
  }
  return {};
}

/// Marks every floating value that depends on one of `wrt` through floating values.
void Reverse::activate(const std::vector<Value>& wrt) {
  const Graph& graph = b_.graph();
  active_.resize(nodes_);
  for (size_t i = 0; i < nodes_; ++i) active_[i].resize(graph.nodes[i].outputs.size());
  for (Value value : wrt) {
    if (!is_floating(graph.type(value).dtype)) continue;
    if (value.is_param()) {
      active_params_[value] = true;
    } else {
      active_[static_cast<size_t>(value.node)][static_cast<size_t>(value.index)] = true;
    }
  }
  for (size_t i = 0; i < nodes_; ++i) {
    const Node& node = graph.nodes[i];
    bool any = false;
    for (Value input : node.inputs) any = any || active(input);
    if (!any) continue;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (is_floating(node.outputs[k].dtype)) active_[i][k] = true;
    }
  }
}

bool Reverse::active(Value value) const {
  if (value.is_param()) return active_params_.count(value) != 0;
  const size_t node = static_cast<size_t>(value.node);
  return node < active_.size() && active_[node][static_cast<size_t>(value.index)];
}

Value Reverse::total(Value value) {
  const auto it = parts_.find(value);
  if (it == parts_.end()) return {};
  std::vector<Value>& parts = it->second;
  Math m(b_);
  Value sum = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) sum = m.add(sum, parts[i]);
  parts.assign(1, sum);
  return sum;
}

Status Reverse::sweep() {
  for (size_t i = nodes_; i-- > 0;) {
    TF_RETURN_IF_ERROR(visit(static_cast<int32_t>(i)));
    TF_RETURN_IF_ERROR(b_.status());
  }
  return {};
}

Status Reverse::visit(int32_t index) {
  const size_t count = b_.graph().nodes[static_cast<size_t>(index)].outputs.size();
  std::vector<Value> results, out_grads;
  bool any = false;
  for (size_t k = 0; k < count; ++k) {
    const Value result{index, static_cast<int32_t>(k)};
    results.push_back(result);
    out_grads.push_back(active(result) ? total(result) : Value{});
    any = any || out_grads.back().valid();
  }
  if (!any) return {};
  const Node node = b_.graph().nodes[static_cast<size_t>(index)];  // a copy: adding nodes moves it
  const OpRow& row = OpTable::instance().row(node.op);
  std::vector<bool> wanted;
  any = false;
  for (Value input : node.inputs) {
    wanted.push_back(active(input));
    any = any || wanted.back();
  }
  if (!any) return {};  // one of `wrt` itself
  b_.set_context(node.location, "gradients/" + (node.name.empty() ? row.name : node.name),
                 node.device, node.device_by_user);
  TF_ASSIGN(const std::vector<Value> grads, node_gradients(node, results, out_grads, wanted));
  TF_RETURN_IF_ERROR(b_.status());
  for (size_t k = 0; k < node.inputs.size() && k < grads.size(); ++k) {
    if (wanted[k]) TF_RETURN_IF_ERROR(contribute(row, node, node.inputs[k], grads[k]));
  }
  return {};
}

Result<std::vector<Value>> Reverse::node_gradients(const Node& node,
                                                   const std::vector<Value>& results,
                                                   const std::vector<Value>& out_grads,
                                                   const std::vector<bool>& wanted) {
  const OpRow& row = OpTable::instance().row(node.op);
  if (row.op_class == OpClass::kControl) return region_gradients(&b_, node, out_grads, wanted);
  if (!row.gradient.fn) {
    return error(ErrorCode::kNoGradient, at(row, node), " has no gradient: ", row.gradient.why_not,
                 ". Put stop_gradient before it, or differentiate another quantity.");
  }
  GradContext context{b_, node, node.inputs, results, out_grads};
  return row.gradient.fn(context);
}

Status Reverse::contribute(const OpRow& row, const Node& node, Value input, Value grad) {
  if (!grad.valid()) return {};
  const ValueType given = b_.type(grad), wanted = b_.type(input);
  if (given.dtype != wanted.dtype || given.shape != wanted.shape) {
    return error(ErrorCode::kInternal, "the gradient of ", at(row, node), " is ", given.str(),
                 " for an operand that is ", wanted.str(), ". Please report it.");
  }
  parts_[input].push_back(grad);
  return {};
}

}  // namespace

Result<std::vector<Value>> gradients(Builder* b, const std::vector<Value>& outputs,
                                     const std::vector<Value>& output_grads,
                                     const std::vector<Value>& wrt) {
  TF_RETURN_IF_ERROR(b->status());
  Reverse reverse(b);
  reverse.activate(wrt);
  TF_RETURN_IF_ERROR(reverse.seed(outputs, output_grads));
  TF_RETURN_IF_ERROR(reverse.sweep());
  std::vector<Value> result;
  for (Value value : wrt) {
    result.push_back(is_floating(b->dtype(value)) ? reverse.total(value) : Value{});
  }
  TF_RETURN_IF_ERROR(b->status());
  return result;
}

}  // namespace tracefire
