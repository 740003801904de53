// SPDX-License-Identifier: Apache-2.0
#include "core/compile/plan/plan.h"

#include <atomic>

#include "core/compile/passes/placement.h"

namespace tracefire {
namespace {

/// Turns nodes into steps and numbers their values.
class Planner {
 public:
  Planner(const GraphPtr& graph, const CompileOptions& options)
      : known_(KnownOps::get()), graph_(*graph), options_(options), program_(new Program) {
    static std::atomic<uint64_t> next_id{1};
    program_->id = next_id.fetch_add(1, std::memory_order_relaxed);
    program_->name = graph->name;
    program_->graph = graph;
    program_->precision = options.precision;
    program_->deterministic = options.deterministic;
    numbers_.resize(graph->nodes.size());
  }

  Result<ProgramPtr> run() {
    for (size_t i = 0; i < graph_.params.size(); ++i) {
      const Param& param = graph_.params[i];
      program_->params.push_back(static_cast<int32_t>(program_->values.size()));
      program_->values.push_back({.type = param.type,
                                  .device = device_of(graph_, {-1, static_cast<int32_t>(i)}),
                                  .param = static_cast<int32_t>(i)});
    }
    for (int32_t index : schedule(graph_)) TF_RETURN_IF_ERROR(add_step(index));
    for (const ResultValue& result : graph_.results) {
      program_->results.push_back(number(result.value));
      program_->result_slots.push_back(result.slot);
    }
    find_lives(program_.get());
    choose_slots(program_.get());
    find_size_reads(program_.get());
    find_checks(program_.get());
    judge_capture(program_.get());
    return ProgramPtr(std::move(program_));
  }

 private:
  int32_t number(Value value) const {
    if (value.is_param()) return program_->params[static_cast<size_t>(value.index)];
    return numbers_[static_cast<size_t>(value.node)] + value.index;
  }

  Status add_step(int32_t index) {
    const Node& node = graph_.nodes[static_cast<size_t>(index)];
    const NodeKind kind = node_kind(node);
    Step step;
    step.node = index;
    step.device = node.device;
    for (Value value : node.inputs) step.inputs.push_back(number(value));
    numbers_[static_cast<size_t>(index)] = static_cast<int32_t>(program_->values.size());
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      step.outputs.push_back(static_cast<int32_t>(program_->values.size()));
      program_->values.push_back(
          {.type = node.outputs[k], .device = device_of(graph_, {index, static_cast<int32_t>(k)})});
    }
    switch (kind) {
      case NodeKind::kNothing:
        return {};  // a token has no storage and takes no step
      case NodeKind::kAlias:
        step.kind = StepKind::kAlias;
        break;
      case NodeKind::kCopy:
        step.kind = StepKind::kCopy;
        break;
      case NodeKind::kHostCall:
        step.kind = StepKind::kHostCall;
        break;
      case NodeKind::kPrograms:
        TF_RETURN_IF_ERROR(add_regions(node, &step));
        break;
      case NodeKind::kKernel:
        TF_RETURN_IF_ERROR(add_kernel(node, &step));
        break;
    }
    step.placement = placement(node, kind);
    if (!node.fell_back.empty()) step.reason = node.fell_back;
    program_->steps.push_back(std::move(step));
    return {};
  }

  Status add_regions(const Node& node, Step* step) {
    step->kind = node.op == known_.if_op      ? StepKind::kIf
                 : node.op == known_.while_op ? StepKind::kWhile
                                              : StepKind::kCall;
    for (const GraphPtr& region : node.regions) {
      TF_ASSIGN(ProgramPtr program, plan(region, options_));
      step->regions.push_back(std::move(program));
    }
    return {};
  }

  Status add_kernel(const Node& node, Step* step) {
    TF_ASSIGN(Choice choice, choose_kernel(graph_, node, node.device, options_));
    if (!choice.kernel) {
      return error(ErrorCode::kNoKernel, OpTable::instance().name(node.op), " at ",
                   node.location.str(), ": no kernel of ", node.device.str(), " accepts it (",
                   choice.why_not(node.device), ").");
    }
    step->kernel = choice.kernel;
    step->loop = std::move(choice.loop);
    step->refusals = std::move(choice.refusals);
    step->reason = step->refusals.empty() ? "first in the list" : "first that accepts";
    return {};
  }

  Placement placement(const Node& node, NodeKind kind) const {
    if (!node.fell_back.empty()) return Placement::kFellBack;
    if (kind == NodeKind::kHostCall || belongs_on_host(graph_, node)) {
      return Placement::kHostByDesign;
    }
    const bool moves = kind == NodeKind::kCopy || kind == NodeKind::kAlias;
    const bool cpu_by_hand = node.device_by_user && node.device.kind == Device::kCpu &&
                             options_.device.kind != Device::kCpu;
    return cpu_by_hand && !moves ? Placement::kByUser : Placement::kOnDevice;
  }

  const KnownOps& known_;
  const Graph& graph_;
  const CompileOptions& options_;
  std::shared_ptr<Program> program_;
  std::vector<int32_t> numbers_;  ///< value of each node's first result
};

}  // namespace

Result<ProgramPtr> plan(const GraphPtr& graph, const CompileOptions& options) {
  return Planner(graph, options).run();
}

}  // namespace tracefire
