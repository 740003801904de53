// SPDX-License-Identifier: Apache-2.0
// Gradients of recorded work: the recorded nodes become a graph, the gradient room continues it,
// and what it added is recorded in turn.
#include <algorithm>
#include <unordered_map>

#include "core/base/guard.h"
#include "core/engine/engine.h"
#include "core/engine/splice.h"
#include "core/grad/grad.h"
#include "core/ops/op_table.h"
#include "tracefire/grad.h"

namespace tracefire {
namespace {

/// A node as a tape keeps it: structure by id, values only where a gradient names them.
struct TapeEntry {
  Node node;
  std::vector<uint64_t> inputs, outputs;
  std::vector<ValueType> input_types;
};

/// Builds the forward graph and remembers which value each cell is.
class GradientGraph {
 public:
  GradientGraph() : builder_(OpTable::instance(), "gradient") {}

  void add_cell(const trace::CellPtr& cell) { cells_[cell->id] = cell; }
  Value leaf(uint64_t id, const ValueType& type) {
    const Value value = builder_.param(
        type, "", type.dtype == DType::kToken ? ParamKind::kToken : ParamKind::kInput);
    values_[id] = value;
    return value;
  }
  Status add(const Node& node, const std::vector<uint64_t>& inputs,
             const std::vector<ValueType>& types, const std::vector<uint64_t>& outputs) {
    Node copy = node;
    copy.inputs.clear();
    for (size_t i = 0; i < inputs.size(); ++i) {
      auto found = values_.find(inputs[i]);
      copy.inputs.push_back(found != values_.end() ? found->second : leaf(inputs[i], types[i]));
    }
    TF_ASSIGN(Value first, builder_.add(std::move(copy)));
    for (size_t k = 0; k < outputs.size(); ++k) {
      values_[outputs[k]] = {first.node, static_cast<int32_t>(k)};
    }
    return {};
  }

  Result<Tensors> run(const Tensors& outputs, const Tensors& sources, const Tensors& output_grads) {
    if (!output_grads.empty() && output_grads.size() != outputs.size()) {
      return error(ErrorCode::kBadArity, "gradients of ", outputs.size(),
                   " outputs were asked with ", output_grads.size(), " output gradients");
    }
    std::vector<Value> targets, seeds, wanted;
    for (size_t i = 0; i < outputs.size(); ++i) {
      targets.push_back(value_of(outputs[i]));
      if (output_grads.empty()) {
        const ValueType& type = builder_.type(targets.back());
        seeds.push_back(
            builder_.op("broadcast_to", {builder_.scalar(1, type.dtype)}, {{"shape", type.shape}}));
      } else {
        seeds.push_back(value_of(output_grads[i]));
      }
    }
    for (const Tensor& source : sources) wanted.push_back(value_of(source));
    // Effects up to here have been recorded; they must not happen a second time.
    const auto recorded = static_cast<int32_t>(builder_.graph().nodes.size());
    TF_ASSIGN(std::vector<Value> grads, gradients(&builder_, targets, seeds, wanted));
    TF_RETURN_IF_ERROR(builder_.status());
    std::map<Value, trace::CellPtr> known;
    for (const auto& [id, cell] : cells_) {
      auto found = values_.find(id);
      if (found != values_.end()) known[found->second] = cell;
    }
    TF_ASSIGN(std::vector<trace::CellPtr> cells,
              splice(builder_.graph(), recorded, grads, std::move(known)));
    Tensors result;
    for (size_t i = 0; i < cells.size(); ++i) {
      // A gradient is where its source is, whatever devices lie between.
      Tensor grad = cells[i] ? Tensor(std::move(cells[i])) : Tensor();
      const Device home = sources[i].device();
      result.push_back(grad.defined() && home.is_set() ? grad.to(home) : grad);
    }
    return result;
  }

 private:
  Value value_of(const Tensor& tensor) {
    const trace::CellPtr& cell = tensor.cell();
    add_cell(cell);
    auto found = values_.find(cell->id);
    return found != values_.end() ? found->second : leaf(cell->id, cell->type);
  }

  Builder builder_;
  std::unordered_map<uint64_t, Value> values_;
  std::unordered_map<uint64_t, trace::CellPtr> cells_;
};

void check_tensors(const Tensors& outputs, const Tensors& sources,
                   const Tensors& output_grads = {}) {
  auto check = [](const Tensors& tensors, const char* what) {
    for (const Tensor& tensor : tensors) {
      if (!tensor.defined()) {
        error(ErrorCode::kBadAttribute, "gradients received an undefined ", what).throw_if_error();
      }
    }
  };
  check(outputs, "output");
  check(sources, "source");
  check(output_grads, "gradient of an output");
}

}  // namespace

struct Tape::State final : trace::NodeListener {
  std::vector<TapeEntry> entries;
  std::unordered_map<uint64_t, trace::CellPtr> residuals;

  void recorded(const trace::TraceNodePtr& node,
                const std::vector<trace::CellPtr>& outputs) override {
    const Gradient& gradient = OpTable::instance().row(node->node.op).gradient;
    TapeEntry entry;
    entry.node = node->node;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const trace::CellPtr& input = node->inputs[i];
      entry.inputs.push_back(input->id);
      entry.input_types.push_back(input->type);
      const uint32_t bit = i < 31 ? 1u << i : 1u << 31;
      if ((gradient.reads_inputs & (bit | 1u << 31)) != 0) residuals[input->id] = input;
    }
    for (size_t k = 0; k < outputs.size(); ++k) {
      entry.outputs.push_back(outputs[k]->id);
      if ((gradient.reads_outputs & (1u << std::min<size_t>(k, 31))) != 0) {
        residuals[outputs[k]->id] = outputs[k];
      }
    }
    entries.push_back(std::move(entry));
  }
};

Tape::Tape() : state_(std::make_shared<State>()) { resume(); }

Tape::~Tape() { stop(); }

void Tape::resume() {
  if (!state_->is_recording()) trace::NodeListener::start(state_);
}

void Tape::stop() { state_->stop(); }

void Tape::watch(const Tensor& tensor) {
  check_tensors({}, {tensor});
  state_->residuals[tensor.cell()->id] = tensor.cell();
}

Tensors Tape::gradients(const Tensors& outputs, const Tensors& sources,
                        const Tensors& output_grads) {
  check_tensors(outputs, sources, output_grads);
  GradientGraph graph;
  for (const auto& [id, cell] : state_->residuals) graph.add_cell(cell);
  for (const TapeEntry& entry : state_->entries) {
    graph.add(entry.node, entry.inputs, entry.input_types, entry.outputs).throw_if_error();
  }
  return guarded([&] { return graph.run(outputs, sources, output_grads); }).value();
}

Tensors gradients(const Tensors& outputs, const Tensors& sources, const Tensors& output_grads) {
  check_tensors(outputs, sources, output_grads);
  trace::Scope* scope = trace::Scope::current();
  if (scope == nullptr) {
    error(ErrorCode::kValueInTrace,
          "gradients of eager work need a Tape that recorded it; outside of a traced function "
          "nothing else remembers what was computed")
        .throw_if_error();
  }
  GradientGraph graph;
  for (const trace::TraceNodePtr& traced : scope->nodes()) {
    std::vector<uint64_t> inputs, ids;
    std::vector<ValueType> types;
    for (const trace::CellPtr& input : traced->inputs) {
      graph.add_cell(input);
      inputs.push_back(input->id);
      types.push_back(input->type);
    }
    for (const auto& weak : traced->outputs) {
      trace::CellPtr cell = weak.lock();
      if (cell) graph.add_cell(cell);
      ids.push_back(cell ? cell->id : 0);
    }
    graph.add(traced->node, inputs, types, ids).throw_if_error();
  }
  Tensors local_outputs, local_sources, local_grads;
  auto import = [&](const Tensors& from, Tensors* to) {
    for (const Tensor& tensor : from) {
      to->emplace_back(tensor.defined() ? scope->import(tensor.cell()).value() : nullptr);
    }
  };
  import(outputs, &local_outputs);
  import(sources, &local_sources);
  import(output_grads, &local_grads);
  return guarded([&] { return graph.run(local_outputs, local_sources, local_grads); }).value();
}

}  // namespace tracefire
