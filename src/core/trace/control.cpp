// SPDX-License-Identifier: Apache-2.0
// Control flow: regions are traced in scopes of their own; what they capture, the slots they
// touch and their effect chains become operands and results of one node.
#include "tracefire/control.h"

#include "core/ops/op_table.h"
#include "core/trace/flush.h"
#include "core/trace/host_functions.h"

namespace tracefire {
namespace {

using trace::CellPtr;
using trace::Scope;
using trace::ScopeGuard;
using trace::ScopeKind;

struct Region {
  std::unique_ptr<Scope> scope;
  std::vector<CellPtr> outputs;
};

std::vector<CellPtr> cells_of(const Tensors& tensors, const char* what) {
  std::vector<CellPtr> cells;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) {
      error(ErrorCode::kBadAttribute, what, " received an undefined tensor").throw_if_error();
    }
    cells.push_back(tensor.cell());
  }
  return cells;
}

Tensors tensors_of(const std::vector<CellPtr>& cells) {
  Tensors tensors;
  for (const CellPtr& cell : cells) tensors.emplace_back(cell);
  return tensors;
}

Region trace_region(const char* name, const std::vector<CellPtr>& vars,
                    const std::function<Tensors(const Tensors&)>& body) {
  Region region;
  region.scope = std::make_unique<Scope>(ScopeKind::kRegion, name);
  Tensors params;
  for (const CellPtr& var : vars) {
    params.emplace_back(region.scope->parameter(var->type, "", var->device));
  }
  ScopeGuard guard(region.scope.get());
  for (const CellPtr& cell : cells_of(body(params), name)) {
    region.outputs.push_back(region.scope->import(cell).value());
  }
  return region;
}

/// Operands behind the loop variables: captures, slots' values, tokens, as the layout lists them.
void add_operands(const trace::RegionLayout& layout, std::vector<CellPtr>* operands) {
  operands->insert(operands->end(), layout.captures.begin(), layout.captures.end());
  for (const auto& slot : layout.slots) operands->push_back(trace::read_slot(slot));
  for (const auto& effect : layout.tokens) operands->push_back(trace::effect_token(effect));
}

/// Records the node and takes its slot and token results back into the surrounding scope.
Tensors record_control(const char* op, std::vector<CellPtr> operands, Attrs attrs,
                       std::vector<GraphPtr> regions, size_t results, size_t skip,
                       const trace::RegionLayout& layout) {
  Node node;
  node.op = OpTable::instance().id(op);
  node.attrs = std::move(attrs);
  node.regions = std::move(regions);
  auto outputs = trace::record_node(std::move(node), std::move(operands)).value();
  size_t next = results + skip;
  for (const auto& slot : layout.written) {
    trace::assign_slot(slot, outputs[next++]).throw_if_error();
  }
  for (const auto& effect : layout.tokens) trace::set_effect_token(effect, outputs[next++]);
  if (!layout.tokens.empty() && Scope::current() == nullptr) {
    trace::eager().effects.push_back(outputs[0]->producer);
  }
  outputs.resize(results);
  trace::after_record(outputs);
  return tensors_of(outputs);
}

template <class Function>
void check_function(const Function& function, const char* what) {
  if (function) return;
  error(ErrorCode::kBadAttribute, what, " was given an empty function").throw_if_error();
}

void check_predicate(const Tensor& pred, const char* what) {
  if (!pred.defined() || pred.dtype() != DType::kBool || pred.rank() != 0) {
    error(ErrorCode::kBadAttribute, what, " needs a condition of type bool and shape (), got ",
          pred.defined() ? pred.cell()->type.str() : std::string("nothing"))
        .throw_if_error();
  }
}

void check_body(size_t returned, size_t expected) {
  if (returned == expected) return;
  error(ErrorCode::kShapeMismatch, "while_loop: the body returns ", returned, " tensors for ",
        expected, " loop variables")
      .throw_if_error();
}

bool assigns(const Scope& scope) {
  trace::RegionLayout layout;
  trace::extend_layout(scope, &layout);
  return !layout.written.empty();
}

/// A loop whose condition assigns variables: it is a value of the loop, computed before the first
/// step and at the end of each, because the condition of the node itself returns nothing else.
Tensors while_assigning(const std::function<Tensor(const Tensors&)>& cond,
                        const std::function<Tensors(const Tensors&)>& body, const Tensors& vars,
                        int64_t max_iterations) {
  const auto behind_condition = [](Tensor condition, const Tensors& values) {
    check_predicate(condition, "while_loop");
    Tensors all{std::move(condition)};
    all.insert(all.end(), values.begin(), values.end());
    return all;
  };
  Tensors results = while_loop([](const Tensors& now) { return now[0]; },
                               [&](const Tensors& now) {
                                 const Tensors next = body(Tensors(now.begin() + 1, now.end()));
                                 check_body(next.size(), vars.size());
                                 return behind_condition(cond(next), next);
                               },
                               behind_condition(cond(vars), vars), max_iterations);
  results.erase(results.begin());
  return results;
}

}  // namespace

Tensors cond(const Tensor& pred, const std::function<Tensors()>& then_fn,
             const std::function<Tensors()>& else_fn) {
  check_predicate(pred, "cond");
  check_function(then_fn, "cond");
  check_function(else_fn, "cond");
  Region yes = trace_region("then", {}, [&](const Tensors&) { return then_fn(); });
  Region no = trace_region("else", {}, [&](const Tensors&) { return else_fn(); });
  if (yes.outputs.size() != no.outputs.size()) {
    error(ErrorCode::kShapeMismatch, "cond: the branches return ", yes.outputs.size(), " and ",
          no.outputs.size(), " tensors; they must return the same number")
        .throw_if_error();
  }
  for (size_t i = 0; i < yes.outputs.size(); ++i) {
    if (!(yes.outputs[i]->type == no.outputs[i]->type)) {
      error(ErrorCode::kShapeMismatch, "cond: result ", i, " is ", yes.outputs[i]->type.str(),
            " in one branch and ", no.outputs[i]->type.str(), " in the other")
          .throw_if_error();
    }
  }
  trace::RegionLayout layout;
  trace::extend_layout(*yes.scope, &layout);
  trace::extend_layout(*no.scope, &layout);
  GraphPtr then_graph = trace::lower(*yes.scope, yes.outputs, &layout).value().graph;
  GraphPtr else_graph = trace::lower(*no.scope, no.outputs, &layout).value().graph;
  std::vector<CellPtr> operands{pred.cell()};
  add_operands(layout, &operands);
  return record_control("if", std::move(operands), {}, {then_graph, else_graph}, yes.outputs.size(),
                        0, layout);
}

Tensors while_loop(const std::function<Tensor(const Tensors&)>& cond,
                   const std::function<Tensors(const Tensors&)>& body, const Tensors& vars,
                   int64_t max_iterations) {
  check_function(cond, "while_loop");
  check_function(body, "while_loop");
  std::vector<CellPtr> operands = cells_of(vars, "while_loop");
  Region test = trace_region("cond", operands, [&](const Tensors& now) {
    Tensor pred = cond(now);
    check_predicate(pred, "while_loop");
    return Tensors{pred};
  });
  if (assigns(*test.scope)) return while_assigning(cond, body, vars, max_iterations);
  Region step = trace_region("body", operands, body);
  check_body(step.outputs.size(), vars.size());
  for (size_t i = 0; i < vars.size(); ++i) {
    if (!(step.outputs[i]->type == operands[i]->type)) {
      error(ErrorCode::kShapeMismatch, "while_loop: variable ", i, " enters the body as ",
            operands[i]->type.str(), " and leaves it as ", step.outputs[i]->type.str(),
            "; dtype and shape must stay the same")
          .throw_if_error();
    }
  }
  trace::RegionLayout layout;
  trace::extend_layout(*test.scope, &layout);
  trace::extend_layout(*step.scope, &layout);
  // A loop returns all it carries, so every slot it reads is carried too.
  layout.written = layout.slots;
  layout.only_outputs = true;
  GraphPtr test_graph = trace::lower(*test.scope, test.outputs, &layout).value().graph;
  layout.only_outputs = false;
  layout.pass_captures = true;
  GraphPtr step_graph = trace::lower(*step.scope, step.outputs, &layout).value().graph;
  add_operands(layout, &operands);
  return record_control("while", std::move(operands), {{"max_iterations", max_iterations}},
                        {test_graph, step_graph}, vars.size(), layout.captures.size(), layout);
}

Tensors host_call(const HostFunction& function, const Tensors& inputs,
                  const std::vector<TensorSpec>& outputs) {
  check_function(function, "host_call");
  Attrs attrs;
  attrs.set("callback", trace::register_host_function(function));
  std::vector<int64_t> dtypes, ranks;
  Shape dims;
  for (const TensorSpec& output : outputs) {
    dtypes.push_back(static_cast<int64_t>(output.dtype));
    ranks.push_back(output.shape.rank());
    for (Dim dim : output.shape) dims.push_back(dim);
  }
  attrs.set("dtypes", std::move(dtypes));
  attrs.set("ranks", std::move(ranks));
  attrs.set("dims", std::move(dims));
  return tensors_of(trace::record(OpTable::instance().id("host_call"),
                                  cells_of(inputs, "host_call"), std::move(attrs))
                        .value());
}

void print(const std::string& format, const Tensors& values) {
  trace::record(OpTable::instance().id("print"), cells_of(values, "print"), {{"format", format}})
      .value();
}

}  // namespace tracefire
