// SPDX-License-Identifier: Apache-2.0
#include "core/grad/regions.h"

#include "core/grad/grad.h"
#include "core/ops/math.h"
#include "core/ops/op_table.h"

namespace tracefire {
namespace {

using Values = std::vector<Value>;
using Types = std::vector<ValueType>;

bool is_token(const ValueType& type) { return type.dtype == DType::kToken; }

/// The data part of a control node: what is left when tokens are taken away.
struct DataView {
  Values operands;             ///< data operands, without the predicate of if
  std::vector<size_t> inputs;  ///< their places among the node's inputs
  std::vector<bool> wanted;    ///< which of them need a gradient
  Values out_grads;            ///< of data results
};

DataView data_view(const Builder& b, const Node& node, const Values& out_grads,
                   const std::vector<bool>& wanted, size_t first_operand) {
  DataView view;
  for (size_t i = first_operand; i < node.inputs.size(); ++i) {
    if (is_token(b.type(node.inputs[i]))) continue;
    view.operands.push_back(node.inputs[i]);
    view.inputs.push_back(i);
    view.wanted.push_back(wanted[i]);
  }
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    if (!is_token(node.outputs[k])) view.out_grads.push_back(out_grads[k]);
  }
  return view;
}

Values params_like(Builder* b, const Types& types) {
  Values values;
  for (const ValueType& type : types) values.push_back(b->param(type));
  return values;
}

Types types_of(const Builder& b, const Values& values) {
  Types types;
  for (Value value : values) types.push_back(b.type(value));
  return types;
}

template <class T>
std::vector<T> pick(const std::vector<T>& all, const std::vector<bool>& which) {
  std::vector<T> picked;
  for (size_t i = 0; i < all.size(); ++i) {
    if (which[i]) picked.push_back(all[i]);
  }
  return picked;
}

std::vector<bool> valid_of(const Values& values) {
  std::vector<bool> valid;
  for (Value value : values) valid.push_back(value.valid());
  return valid;
}

void extend(Values* values, const Values& more) {
  values->insert(values->end(), more.begin(), more.end());
}

/// Gradients with zeros in place of those that do not flow.
Result<Values> dense_gradients(Builder* b, const Values& outputs, const Values& grads,
                               const Values& wrt) {
  TF_ASSIGN(Values found, gradients(b, outputs, grads, wrt));
  Math m(*b);
  for (size_t i = 0; i < wrt.size(); ++i) {
    if (!found[i].valid()) found[i] = m.zeros_like(wrt[i]);
  }
  return found;
}

/// region' (operands, gradients of the results in `flows`) -> gradients of the wanted operands.
Result<GraphPtr> gradient_region(const OpSet& ops, const Graph& region, const Types& operands,
                                 const std::vector<bool>& wanted, const std::vector<bool>& flows) {
  TF_ASSIGN(const GraphPtr pure, without_effects(ops, region));
  Builder b(ops, region.name + "_grad");
  const Values params = params_like(&b, operands);
  TF_ASSIGN(const Values results, inline_graph(*pure, params, &b));
  const Values outputs = pick(results, flows);
  const Values grads = params_like(&b, types_of(b, outputs));
  TF_ASSIGN(const Values found, dense_gradients(&b, outputs, grads, pick(params, wanted)));
  for (Value value : found) b.result(value);
  TF_ASSIGN(const GraphPtr graph, b.finish());
  return remove_dead(ops, *graph);
}

/// Results 0, 1, … of a new node as the gradients of the wanted operands of `node`.
Values scatter(const Node& node, const DataView& view, Value first) {
  Values grads(node.inputs.size());
  if (!first.valid()) return grads;
  int32_t next = first.index;
  for (size_t i = 0; i < view.inputs.size(); ++i) {
    if (view.wanted[i]) grads[view.inputs[i]] = {first.node, next++};
  }
  return grads;
}

/// if and call: the same kind of node over the gradients of the regions.
Result<Values> branch_gradients(Builder* b, const Node& node, const Values& out_grads,
                                const std::vector<bool>& wanted, bool has_predicate) {
  const DataView view = data_view(*b, node, out_grads, wanted, has_predicate ? 1 : 0);
  const std::vector<bool> flows = valid_of(view.out_grads);
  std::vector<GraphPtr> regions;
  for (const GraphPtr& region : node.regions) {
    TF_ASSIGN(GraphPtr grad,
              gradient_region(b->ops(), *region, types_of(*b, view.operands), view.wanted, flows));
    regions.push_back(std::move(grad));
  }
  Values inputs;
  if (has_predicate) inputs.push_back(node.inputs[0]);
  extend(&inputs, view.operands);
  extend(&inputs, pick(view.out_grads, flows));
  return scatter(node, view, b->op(has_predicate ? "if" : "call", inputs, {}, std::move(regions)));
}

/// Which parameters of a loop's body carry a gradient from turn to turn: `wanted`, and every
/// floating variable that comes to depend on one of them.
std::vector<bool> carried(const Graph& body, std::vector<bool> wanted) {
  for (bool grown = true; grown;) {
    grown = false;
    std::vector<bool> active(body.nodes.size());
    const auto is_active = [&](Value value) {
      return value.is_param()
                 ? wanted[static_cast<size_t>(value.index)]
                 : active[static_cast<size_t>(value.node)] && is_floating(body.type(value).dtype);
    };
    for (size_t i = 0; i < body.nodes.size(); ++i) {
      for (Value input : body.nodes[i].inputs) active[i] = active[i] || is_active(input);
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] || !is_active(body.results[i].value)) continue;
      wanted[i] = true;
      grown = true;
    }
  }
  return wanted;
}

Shape stacked(const Shape& shape, int64_t count) {
  std::vector<Dim> dims = shape.dims();
  dims.insert(dims.begin(), Dim(count));
  return Shape(std::move(dims));
}

/// The gradient of a loop: a loop that runs it again and keeps the variables of every turn, and one
/// that walks back through the turns.
class LoopGradient {
 public:
  LoopGradient(Builder* b, const Node& node, DataView view)
      : b_(*b),
        ops_(b->ops()),
        view_(std::move(view)),
        turns_(node.attrs.integer("max_iterations")) {}

  Result<Values> run(const Node& node) {
    TF_ASSIGN(cond_, without_effects(ops_, *node.regions[0]));
    TF_ASSIGN(body_, without_effects(ops_, *node.regions[1]));
    types_ = types_of(b_, view_.operands);
    carry_ = carried(*body_, view_.wanted);
    TF_ASSIGN(step_, gradient_region(ops_, *body_, types_, carry_, carry_));
    choose_kept();
    TF_ASSIGN(const Values kept, run_again());
    TF_ASSIGN(const Value first, walk_back(kept));
    return scatter_wanted(node, first);
  }

 private:
  /// Which variables the gradient of one turn reads, and which of those change from turn to turn.
  void choose_kept() {
    const UseCounts uses(*step_);
    for (size_t i = 0; i < types_.size(); ++i) {
      const bool read = uses.of({-1, static_cast<int32_t>(i)}) > 0;
      const bool fixed = body_->results[i].value == Value{-1, static_cast<int32_t>(i)};
      stacked_.push_back(read && !fixed);
    }
  }

  /// Results: number of turns, then one array [max_iterations, ...] a kept variable.
  Result<Values> run_again() {
    Math outer(b_);
    Values start = {b_.scalar(0, DType::kI64)};
    extend(&start, view_.operands);
    for (const ValueType& type : pick(types_, stacked_)) {
      start.push_back(outer.zeros(type.dtype, stacked(type.shape, turns_)));
    }
    TF_RETURN_IF_ERROR(b_.status());
    const Types state = types_of(b_, start);

    Builder cond(ops_, "cond");
    const Values cond_params = params_like(&cond, state);
    TF_ASSIGN(const Values test, inline_graph(*cond_, variables(cond_params), &cond));
    cond.result(test[0]);

    Builder body(ops_, "forward");
    Math m(body);
    const Values now = params_like(&body, state);
    TF_ASSIGN(const Values next, inline_graph(*body_, variables(now), &body));
    body.result(m.shift(now[0], 1));
    for (Value value : next) body.result(value);
    size_t stack = 1 + types_.size();
    for (size_t i = 0; i < types_.size(); ++i) {
      if (!stacked_[i]) continue;
      const Value row = m.reshape(now[1 + i], stacked(types_[i].shape, 1));
      body.result(
          m.op("dynamic_update_slice", {now[stack++], row, now[0]}, {{"axis", int64_t{0}}}));
    }
    TF_ASSIGN(const Value first, loop(std::move(start), &cond, &body));
    Values kept = {first};
    for (size_t i = 1 + types_.size(); i < stack; ++i) {
      kept.push_back({first.node, static_cast<int32_t>(i)});
    }
    return kept;
  }

  /// State: turns left, gradients of the carried variables, fixed variables, arrays.
  Result<Value> walk_back(const Values& kept) {
    Math outer(b_);
    Values start = {kept[0]};
    for (size_t i = 0; i < types_.size(); ++i) {
      if (!carry_[i]) continue;
      const Value grad = view_.out_grads[i];
      start.push_back(grad.valid() ? grad : outer.zeros_like(view_.operands[i]));
    }
    extend(&start, view_.operands);
    start.insert(start.end(), kept.begin() + 1, kept.end());
    TF_RETURN_IF_ERROR(b_.status());
    const Types state = types_of(b_, start);
    const size_t grads = pick(types_, carry_).size();

    Builder cond(ops_, "cond");
    const Values left = params_like(&cond, state);
    cond.result(cond.op("greater", {left[0], cond.scalar(0, DType::kI64)}));

    Builder body(ops_, "backward");
    Math m(body);
    const Values now = params_like(&body, state);
    const Value turn = m.shift(now[0], -1);
    Values args;
    size_t stack = 1 + grads + types_.size();
    for (size_t i = 0; i < types_.size(); ++i) {
      if (!stacked_[i]) {
        args.push_back(now[1 + grads + i]);
        continue;
      }
      const Value row =
          m.op("dynamic_slice", {now[stack++], turn}, {{"axis", int64_t{0}}, {"size", Shape{1}}});
      args.push_back(m.reshape(row, types_[i].shape));
    }
    args.insert(args.end(), now.begin() + 1, now.begin() + 1 + static_cast<std::ptrdiff_t>(grads));
    TF_RETURN_IF_ERROR(body.status());
    TF_ASSIGN(const Values next, inline_graph(*step_, args, &body));
    body.result(turn);
    for (Value value : next) body.result(value);
    for (size_t i = 1 + grads; i < now.size(); ++i) body.result(now[i]);
    TF_ASSIGN(const Value first, loop(std::move(start), &cond, &body));
    return Value{first.node, 1};
  }

  Values variables(const Values& state) const {
    const auto begin = state.begin() + 1;
    return Values(begin, begin + static_cast<std::ptrdiff_t>(types_.size()));
  }

  Result<Value> loop(Values start, Builder* cond, Builder* body) {
    TF_ASSIGN(GraphPtr cond_graph, cond->finish());
    TF_ASSIGN(GraphPtr body_graph, body->finish());
    const Value first =
        b_.op("while", std::move(start), {{"max_iterations", turns_}}, {cond_graph, body_graph});
    TF_RETURN_IF_ERROR(b_.status());
    return first;
  }

  /// As scatter(), where more variables than the wanted ones carry a gradient.
  Values scatter_wanted(const Node& node, Value first) const {
    Values grads(node.inputs.size());
    int32_t next = first.index;
    for (size_t i = 0; i < carry_.size(); ++i) {
      if (!carry_[i]) continue;
      if (view_.wanted[i]) grads[view_.inputs[i]] = {first.node, next};
      ++next;
    }
    return grads;
  }

  Builder& b_;
  const OpSet& ops_;
  DataView view_;
  int64_t turns_;
  GraphPtr cond_, body_, step_;
  Types types_;
  std::vector<bool> carry_;    ///< variables whose gradient goes from turn to turn
  std::vector<bool> stacked_;  ///< variables kept in arrays
};

}  // namespace

Result<std::vector<Value>> region_gradients(Builder* b, const Node& node, const Values& out_grads,
                                            const std::vector<bool>& wanted) {
  const std::string_view name = b->ops().name(node.op);
  if (name != "while") return branch_gradients(b, node, out_grads, wanted, name == "if");
  if (node.attrs.integer("max_iterations") < 0) {
    const std::string where = node.location.file ? " at " + node.location.str() : "";
    return error(ErrorCode::kNoGradient, "while", where,
                 " has no limit of turns, and a gradient through a loop keeps the variables of "
                 "every turn in arrays of that length. Give max_iterations, or put stop_gradient "
                 "before the loop.");
  }
  return LoopGradient(b, node, data_view(*b, node, out_grads, wanted, 0)).run(node);
}

}  // namespace tracefire
