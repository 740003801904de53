// SPDX-License-Identifier: Apache-2.0
// Composites in primitives. What is recognised computes the same numbers, NaN and infinities
// included: log(softmax(x)) is left alone, because it is -inf where the softmax underflows, which
// log_softmax(x) is not.

#include "core/compile/known_ops.h"
#include "core/compile/passes/passes.h"

namespace tracefire {
namespace {

/// Reads patterns in a graph; values are those of the source.
class Matcher {
 public:
  explicit Matcher(const Graph& graph) : known_(KnownOps::get()), graph_(graph) {}

  const Node* producer(Value value, OpId op) const {
    if (value.is_param()) return nullptr;
    const Node& node = graph_.node(value);
    return node.op == op ? &node : nullptr;
  }

  /// `value` without explicit broadcasts to shapes that would be broadcast to anyhow.
  Value unrepeated(Value value) const {
    while (const Node* node = producer(value, known_.broadcast_to)) value = node->inputs[0];
    return value;
  }

  /// `value` is `op` over one axis of `of`, which stays as size 1; the axis, or -1.
  int axis_reduced(Value value, OpId op, Value of) const {
    value = unrepeated(value);
    Shape kept = graph_.type(of).shape;
    const Node* put_back = producer(value, known_.reshape);
    if (put_back) value = put_back->inputs[0];
    const Node* node = producer(value, op);
    if (!node || node->inputs[0] != of) return -1;
    const std::vector<int64_t>& axes = node->attrs.ints("axes");
    if (axes.size() != 1) return -1;
    const int axis = static_cast<int>(axes[0]);
    kept[axis] = 1;
    const Shape& shape = put_back ? put_back->outputs[0].shape : node->outputs[0].shape;
    return shape == kept ? axis : -1;
  }

  /// `value` is x - max(x) along `axis`; gives x, or an invalid value.
  Value unshifted(Value value, int axis) const {
    const Node* sub = producer(value, known_.sub);
    if (!sub) return {};
    const Value x = sub->inputs[0];
    // The gradient of the maximum cancels out, so it may have been stopped.
    Value top = unrepeated(sub->inputs[1]);
    if (const Node* stop = producer(top, known_.stop_gradient)) top = stop->inputs[0];
    return axis_reduced(top, known_.reduce_max, x) == axis ? x : Value{};
  }

  /// node = e / sum(e) with e = exp(x - max(x)).
  bool softmax(const Node& node, Value* x, int* axis) const {
    if (node.op != known_.div) return false;
    const Node* exp = producer(node.inputs[0], known_.exp);
    if (!exp) return false;
    *axis = axis_reduced(node.inputs[1], known_.reduce_sum, node.inputs[0]);
    if (*axis < 0) return false;
    *x = unshifted(exp->inputs[0], *axis);
    return x->valid();
  }

  /// node = d - log(sum(exp(d))) with d = x - max(x).
  bool log_softmax(const Node& node, Value* x, int* axis) const {
    if (node.op != known_.sub) return false;
    const Node* log = producer(unrepeated(node.inputs[1]), known_.log);
    if (!log) return false;
    Value total = unrepeated(log->inputs[0]);
    const Node* put_back = producer(total, known_.reshape);
    const Node* sum = producer(put_back ? put_back->inputs[0] : total, known_.reduce_sum);
    if (!sum) return false;
    const Node* exp = producer(sum->inputs[0], known_.exp);
    if (!exp || exp->inputs[0] != node.inputs[0]) return false;
    *axis = axis_reduced(total, known_.reduce_sum, sum->inputs[0]);
    if (*axis < 0) return false;
    *x = unshifted(node.inputs[0], *axis);
    return x->valid();
  }

 private:
  const KnownOps& known_;
  const Graph& graph_;
};

/// Replaces nodes for which `match` names another op and its operand; null where there is none.
template <class Match>
Result<GraphPtr> replace(const Graph& graph, const Match& match) {
  std::vector<Node> found(graph.nodes.size());
  bool any = false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) any |= match(graph.nodes[i], &found[i]);
  if (!any) return GraphPtr();
  Rewriter rewriter(OpTable::instance(), graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const int32_t index = static_cast<int32_t>(i);
    const Node& node = graph.nodes[i];
    Node& now = found[i];
    if (now.inputs.empty()) {
      rewriter.copy(index);
      continue;
    }
    now.inputs = rewriter.map(now.inputs);
    now.device = node.device;
    now.device_by_user = node.device_by_user;
    now.location = node.location;
    now.name = node.name;
    TF_ASSIGN(const Value value, rewriter.builder().add(std::move(now)));
    rewriter.set({index, 0}, value);
  }
  return rewriter.finish();
}

}  // namespace

Result<GraphPtr> raise_softmax(const GraphPtr& source, const CompileOptions& options,
                               bool* changed) {
  TF_ASSIGN(GraphPtr graph, rewrite_regions(source, options, changed, raise_softmax));
  const KnownOps& known = KnownOps::get();
  const Matcher matcher(*graph);
  TF_ASSIGN(const GraphPtr raised, replace(*graph, [&](const Node& node, Node* now) {
              Value x;
              int axis = -1;
              const bool plain = matcher.softmax(node, &x, &axis);
              if (!plain && !matcher.log_softmax(node, &x, &axis)) return false;
              now->op = plain ? known.softmax : known.log_softmax;
              now->inputs = {x};
              now->attrs.set("axis", static_cast<int64_t>(axis));
              return true;
            }));
  if (!raised) return graph;
  *changed = true;
  return raised;
}

}  // namespace tracefire
