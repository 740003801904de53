// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <queue>

#include "core/compile/passes/fusion_groups.h"
#include "core/compile/passes/passes.h"
#include "core/compile/passes/placement.h"

namespace tracefire {
namespace {

/// A group as a graph of its own, with what it reads and gives in terms of the source graph.
struct Loop {
  GraphPtr region;
  std::vector<Value> inputs;
  std::vector<Value> outputs;  ///< of nodes that compute; in the loop's shape
  /// Members that only rename and are read outside, with the member whose bytes they are.
  struct Alias {
    int32_t node, source;
  };
  std::vector<Alias> aliases;
  const Node* face = nullptr;  ///< node whose name and line stand for the loop
};

/// "dense: add+relu+less+2 more": scope and operations of a loop, for logs.
std::string loop_name(const Graph& graph, const FusionGroups::Group& group, const Node& face) {
  constexpr size_t kShown = 4;
  const KnownOps& known = KnownOps::get();
  std::vector<std::string_view> ops;
  for (int32_t index : group.nodes) {
    const OpId op = graph.nodes[static_cast<size_t>(index)].op;
    if (known.is_alias(op)) continue;
    const std::string_view name = OpTable::instance().name(op);
    if (std::find(ops.begin(), ops.end(), name) == ops.end()) ops.push_back(name);
  }
  std::string text = face.name.empty() ? "" : face.name + ": ";
  for (size_t i = 0; i < std::min(ops.size(), kShown); ++i) {
    text += (i ? "+" : "") + std::string(ops[i]);
  }
  if (ops.size() > kShown) text += "+" + std::to_string(ops.size() - kShown) + " more";
  return text;
}

/// Writes one group as the region of a fused node.
class LoopBuilder {
 public:
  LoopBuilder(const Graph& graph, const FusionGroups::Group& group)
      : known_(KnownOps::get()),
        table_(OpTable::instance()),
        graph_(graph),
        group_(group),
        builder_(table_, "loop") {}

  Result<Loop> run(const std::vector<bool>& escapes) {
    for (int32_t index : group_.nodes) add(index);
    std::vector<bool> is_output(graph_.nodes.size(), false);
    for (int32_t index : group_.nodes) {
      if (!escapes[static_cast<size_t>(index)]) continue;
      const int32_t source = unaliased(index);
      if (source != index) loop_.aliases.push_back({index, source});
      is_output[static_cast<size_t>(source)] = true;
    }
    for (int32_t index : group_.nodes) {
      if (!is_output[static_cast<size_t>(index)]) continue;
      Value value = values_.at({index, 0});
      if (builder_.status().ok() && builder_.shape(value) != group_.shape) {
        value = builder_.op("reshape", {value}, {{"shape", group_.shape}});
      }
      builder_.result(value);
      loop_.outputs.push_back({index, 0});
    }
    TF_ASSIGN(loop_.region, builder_.finish());
    return std::move(loop_);
  }

 private:
  /// The member whose bytes `index` gives: itself, or what it is an alias of.
  int32_t unaliased(int32_t index) const {
    while (true) {
      const Node& node = graph_.nodes[static_cast<size_t>(index)];
      if (!known_.is_alias(node.op) || node.inputs[0].is_param() || !inside(node.inputs[0].node)) {
        return index;
      }
      index = node.inputs[0].node;
    }
  }

  bool inside(int32_t index) const {
    return std::binary_search(group_.nodes.begin(), group_.nodes.end(), index);
  }

  void add(int32_t index) {
    const Node& source = graph_.nodes[static_cast<size_t>(index)];
    Node node = source;
    node.device = {};
    node.device_by_user = false;
    for (Value& input : node.inputs) input = operand(input, source);
    const bool checks = table_.row(source.op).checks_data;
    const bool named = loop_.face && table_.row(loop_.face->op).checks_data;
    if (checks || !(named || known_.is_alias(source.op))) loop_.face = &source;
    values_[{index, 0}] = builder_.keep(builder_.add(std::move(node)));
  }

  /// The region's value for an operand: a member, an immediate, or a parameter.
  Value operand(Value value, const Node& user) {
    // A key is read whole, other operands element by element: one of each where it is both.
    auto& known = user.op == known_.random_bits ? keys_ : values_;
    if (const auto it = known.find(value); it != known.end()) return it->second;
    if (!value.is_param() && FusionGroups::is_immediate(known_, graph_.node(value))) {
      Node constant = graph_.node(value);
      constant.device = {};
      constant.device_by_user = false;
      return values_[value] = builder_.keep(builder_.add(std::move(constant)));
    }
    loop_.inputs.push_back(value);
    return known[value] = builder_.param(graph_.type(value));
  }

  const KnownOps& known_;
  const OpTable& table_;
  const Graph& graph_;
  const FusionGroups::Group& group_;
  Builder builder_;
  Loop loop_;
  std::map<Value, Value> values_, keys_;
};

/// Writes the graph with one node a group.
class Fuser {
 public:
  Fuser(const Graph& graph, const CompileOptions& options,
        const std::vector<FusionGroups::Group>& groups)
      : graph_(graph),
        options_(options),
        groups_(groups),
        rewriter_(OpTable::instance(), graph),
        unit_(graph.nodes.size(), -1) {
    for (size_t g = 0; g < groups.size(); ++g) {
      for (int32_t index : groups[g].nodes) {
        unit_[static_cast<size_t>(index)] = static_cast<int32_t>(g);
      }
    }
    find_escapes();
  }

  Result<GraphPtr> run() {
    for (const auto& unit : order()) {
      if (unit.group < 0) {
        rewriter_.copy(unit.last);
      } else {
        TF_RETURN_IF_ERROR(write(groups_[static_cast<size_t>(unit.group)]));
      }
    }
    return rewriter_.finish();
  }
  bool changed() const { return changed_; }

 private:
  /// A node alone, or a group, ordered by the last of its nodes.
  struct Unit {
    int32_t last;
    int32_t group;
    bool operator>(const Unit& other) const { return last > other.last; }
  };

  void find_escapes() {
    escapes_.assign(graph_.nodes.size(), false);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (Value value : graph_.nodes[i].inputs) {
        if (value.is_param()) continue;
        const size_t producer = static_cast<size_t>(value.node);
        if (unit_[producer] < 0 || unit_[producer] != unit_[i]) escapes_[producer] = true;
      }
    }
    for (const ResultValue& result : graph_.results) {
      if (!result.value.is_param()) escapes_[static_cast<size_t>(result.value.node)] = true;
    }
  }

  /// Units so that each comes after what it reads, otherwise in the order of the graph.
  std::vector<Unit> order() const {
    const size_t nodes = graph_.nodes.size(), count = groups_.size() + nodes;
    const auto id = [&](int32_t index) {
      const int32_t group = unit_[static_cast<size_t>(index)];
      return group >= 0 ? static_cast<size_t>(group) : groups_.size() + static_cast<size_t>(index);
    };
    std::vector<std::vector<size_t>> users(count);
    std::vector<int> waits(count, 0);
    for (size_t i = 0; i < nodes; ++i) {
      const size_t user = id(static_cast<int32_t>(i));
      for (Value value : graph_.nodes[i].inputs) {
        if (value.is_param() || id(value.node) == user) continue;
        users[id(value.node)].push_back(user);
        ++waits[user];
      }
    }
    const auto unit = [&](size_t number) -> Unit {
      if (number >= groups_.size()) return {static_cast<int32_t>(number - groups_.size()), -1};
      return {groups_[number].nodes.back(), static_cast<int32_t>(number)};
    };
    std::priority_queue<Unit, std::vector<Unit>, std::greater<Unit>> ready;
    for (size_t i = 0; i < count; ++i) {
      const bool member = i >= groups_.size() && unit_[i - groups_.size()] >= 0;
      if (!member && waits[i] == 0) ready.push(unit(i));
    }
    std::vector<Unit> result;
    while (!ready.empty()) {
      const Unit next = ready.top();
      ready.pop();
      result.push_back(next);
      for (size_t user : users[id(next.last)]) {
        if (--waits[user] == 0) ready.push(unit(user));
      }
    }
    return result;
  }

  Status write(const FusionGroups::Group& group) {
    TF_ASSIGN(const Loop loop, LoopBuilder(graph_, group).run(escapes_));
    const Node& last = graph_.nodes[static_cast<size_t>(group.nodes.back())];
    Node node;
    node.op = KnownOps::get().fused;
    node.inputs = rewriter_.map(loop.inputs);
    node.regions = {loop.region};
    node.device = last.device;
    node.device_by_user = last.device_by_user;
    node.location = loop.face->location;
    node.name = loop_name(graph_, group, *loop.face);
    Builder& builder = rewriter_.builder();
    TF_RETURN_IF_ERROR(OpTable::instance().infer(input_types(builder.graph(), node), &node));
    if (node.device.is_set()) {
      TF_ASSIGN(const Choice choice, choose_kernel(builder.graph(), node, node.device, options_));
      if (!choice.kernel) return copy_apart(group);
    }
    builder.set_context(node.location, loop.face->name, node.device, node.device_by_user);
    TF_ASSIGN(const Value first, builder.add(std::move(node)));
    const auto shaped = [&](Value value, const Shape& shape) {
      return shape == group.shape ? value : builder.op("reshape", {value}, {{"shape", shape}});
    };
    std::map<int32_t, Value> raw;
    for (size_t k = 0; k < loop.outputs.size(); ++k) {
      const Value value{first.node, static_cast<int32_t>(k)};
      raw[loop.outputs[k].node] = value;
      rewriter_.set(loop.outputs[k], shaped(value, graph_.type(loop.outputs[k]).shape));
    }
    for (const Loop::Alias& alias : loop.aliases) {
      rewriter_.set({alias.node, 0},
                    shaped(raw.at(alias.source), graph_.type({alias.node, 0}).shape));
    }
    builder.set_context({}, "");
    changed_ = true;
    return builder.status();
  }

  /// The device cannot run the loop as one: its nodes stay.
  Status copy_apart(const FusionGroups::Group& group) {
    for (int32_t index : group.nodes) rewriter_.copy(index);
    return rewriter_.builder().status();
  }

  const Graph& graph_;
  const CompileOptions& options_;
  const std::vector<FusionGroups::Group>& groups_;
  Rewriter rewriter_;
  std::vector<int32_t> unit_;  ///< group of each node, or -1
  std::vector<bool> escapes_;  ///< read outside its group, or a result
  bool changed_ = false;
};

}  // namespace

Result<GraphPtr> fuse(const GraphPtr& source, const CompileOptions& options, bool* changed) {
  TF_ASSIGN(const GraphPtr graph, rewrite_regions(source, options, changed, fuse));
  const std::vector<FusionGroups::Group> groups = FusionGroups(*graph, options.device).run();
  if (groups.empty()) return graph;
  Fuser fuser(*graph, options, groups);
  TF_ASSIGN(const GraphPtr now, fuser.run());
  if (!fuser.changed()) return graph;
  *changed = true;
  return now;
}

}  // namespace tracefire
