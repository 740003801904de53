// SPDX-License-Identifier: Apache-2.0
#include "core/compile/passes/fusion_groups.h"

#include <algorithm>
#include <set>

#include "core/compile/compile.h"
#include "core/compile/constants.h"
#include "core/compile/passes/placement.h"

namespace tracefire {
namespace {

/// Longest table that a loop picks from; longer constants are read from memory.
constexpr int64_t kMaxImmediates = 4;
/// Most instructions that are computed again for every element instead of once.
constexpr int kCheap = 6;

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) return false;
  for (int i = 0; i < from.rank(); ++i) {
    const Dim target = to[i + to.rank() - from.rank()];
    if (from[i] != target && from[i] != Dim(1)) return false;
  }
  return true;
}

}  // namespace

bool FusionGroups::is_immediate(const KnownOps& known, const Node& node) {
  if (node.op != known.constant) return false;
  const ConstantView view(node);
  return view.ok() && (view.splat() || view.elements() <= kMaxImmediates);
}

FusionGroups::FusionGroups(const Graph& graph, Device default_device)
    : known_(KnownOps::get()),
      graph_(graph),
      default_device_(default_device),
      users_(graph.nodes.size()),
      is_result_(graph.nodes.size(), false),
      group_(graph.nodes.size(), -1),
      infos_(graph.nodes.size()),
      mark_(graph.nodes.size(), 0) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (Value value : graph.nodes[i].inputs) {
      if (value.is_param()) continue;
      std::vector<int32_t>& users = users_[static_cast<size_t>(value.node)];
      const int32_t user = static_cast<int32_t>(i);
      if (users.empty() || users.back() != user) users.push_back(user);
    }
  }
  for (const ResultValue& result : graph.results) {
    if (!result.value.is_param()) is_result_[static_cast<size_t>(result.value.node)] = true;
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const int32_t index = static_cast<int32_t>(i);
    if (!fusible(index)) continue;
    const Node& node = graph.nodes[i];
    group_[i] = index;
    Info& info = infos_[i];
    info.nodes = {index};
    info.shape = node.outputs[0].shape;
    info.elements = info.shape.elements();
    if (is_rigid(node)) info.rigid = info.shape;
    info.instructions = cost(node);
    info.checks = OpTable::instance().row(node.op).checks_data ? 1 : 0;
  }
}

bool FusionGroups::fusible(int32_t index) const {
  const Node& node = graph_.nodes[static_cast<size_t>(index)];
  if (node.op == known_.constant || node.op == known_.fused || !node.fell_back.empty()) {
    return false;  // what fell back stays one by one, so that reports name it
  }
  return emit_loop(graph_, node) != nullptr;
}

bool FusionGroups::is_rigid(const Node& node) const {
  if (node.op == known_.iota) return true;
  const Dim elements = node.outputs[0].shape.elements();
  for (Value value : node.inputs) {
    const Dim count = graph_.type(value).shape.elements();
    if (node.op != known_.random_bits && count != elements && count != Dim(1)) return true;
  }
  return false;
}

int FusionGroups::cost(const Node& node) const {
  if (known_.is_alias(node.op) || node.op == known_.broadcast_to) return 0;
  if (node.op == known_.random_bits) return 40;
  if (node.op == known_.iota) return 1;
  const Cost cost = OpTable::instance().row(node.op).cost(node, input_types(graph_, node));
  // Rows count operations an element; transcendental functions count as several.
  const double elements = node.outputs[0].shape.is_constant()
                              ? static_cast<double>(node.outputs[0].shape.elements().value())
                              : 0;
  return elements > 0 ? std::max(1, static_cast<int>(cost.flops / elements)) : 1;
}

bool FusionGroups::same_place(const Node& a, const Node& b) const {
  if (a.device != b.device) return false;
  // On the device where everything goes, a scope that names it changes nothing.
  return a.device_by_user == b.device_by_user || a.device == default_device_;
}

bool FusionGroups::compatible(const Info& a, const Info& b) const {
  if (a.elements != b.elements || a.checks + b.checks > 1) return false;
  if (a.rigid && b.rigid && *a.rigid != *b.rigid) return false;
  // The key of random numbers is read from memory, not computed in the loop.
  const auto key_inside = [this](const Info& random, const Info& other) {
    for (int32_t index : random.nodes) {
      const Node& node = graph_.nodes[static_cast<size_t>(index)];
      if (node.op != known_.random_bits || node.inputs[0].is_param()) continue;
      const auto& nodes = other.nodes;
      if (std::binary_search(nodes.begin(), nodes.end(), node.inputs[0].node)) return true;
    }
    return false;
  };
  return !key_inside(a, b) && !key_inside(b, a);
}

bool FusionGroups::within_limits(const Info& a, const Info& b) const {
  if (a.instructions + b.instructions > limits_.instructions) return false;
  const auto inside = [&](int32_t index) {
    return std::binary_search(a.nodes.begin(), a.nodes.end(), index) ||
           std::binary_search(b.nodes.begin(), b.nodes.end(), index);
  };
  std::set<Value> inputs;
  int outputs = 0;
  for (const Info* info : {&a, &b}) {
    for (int32_t index : info->nodes) {
      for (Value value : graph_.nodes[static_cast<size_t>(index)].inputs) {
        if (value.is_param()) {
          inputs.insert(value);
        } else if (!inside(value.node) &&
                   !is_immediate(known_, graph_.nodes[static_cast<size_t>(value.node)])) {
          inputs.insert(value);
        }
      }
      bool escapes = is_result_[static_cast<size_t>(index)];
      for (int32_t user : users_[static_cast<size_t>(index)]) escapes = escapes || !inside(user);
      outputs += escapes;
    }
  }
  return static_cast<int>(inputs.size()) <= limits_.inputs && outputs <= limits_.outputs;
}

bool FusionGroups::outside_path(int32_t from, int32_t to) {
  ++stamp_;
  const int32_t last = infos_[static_cast<size_t>(to)].nodes.back();
  std::vector<int32_t> work;
  // Users of a node; a group is entered as a whole, because it runs as one.
  const auto leave = [&](int32_t index, bool start) -> bool {
    for (int32_t user : users_[static_cast<size_t>(index)]) {
      const int32_t group = root(user);
      if (group == from) continue;
      if (group == to) {
        if (!start) return true;
        continue;
      }
      const int32_t first = group < 0 ? user : infos_[static_cast<size_t>(group)].nodes.front();
      const size_t stamp_at = static_cast<size_t>(group < 0 ? user : group);
      if (first > last || mark_[stamp_at] == stamp_) continue;
      mark_[stamp_at] = stamp_;
      if (group < 0) {
        work.push_back(user);
      } else {
        const auto& nodes = infos_[static_cast<size_t>(group)].nodes;
        work.insert(work.end(), nodes.begin(), nodes.end());
      }
    }
    return false;
  };
  for (int32_t index : infos_[static_cast<size_t>(from)].nodes) leave(index, true);
  for (int looked_at = 0; !work.empty(); ++looked_at) {
    const int32_t index = work.back();
    work.pop_back();
    if (looked_at == limits_.search || leave(index, false)) return true;
  }
  return false;
}

void FusionGroups::merge(int32_t from, int32_t into) {
  Info& source = infos_[static_cast<size_t>(from)];
  Info& target = infos_[static_cast<size_t>(into)];
  std::vector<int32_t> nodes;
  std::merge(source.nodes.begin(), source.nodes.end(), target.nodes.begin(), target.nodes.end(),
             std::back_inserter(nodes));
  target.nodes = std::move(nodes);
  if (!target.rigid && source.elements == target.elements) target.rigid = source.rigid;
  target.instructions += source.instructions;
  target.checks += source.checks;
  for (int32_t index : source.nodes) group_[static_cast<size_t>(index)] = into;
  source = Info();
}

void FusionGroups::try_merge(int32_t producer, int32_t consumer) {
  const int32_t from = root(producer), into = root(consumer);
  if (from < 0 || from == into) return;
  const Info &a = infos_[static_cast<size_t>(from)], &b = infos_[static_cast<size_t>(into)];
  if (!same_place(graph_.nodes[static_cast<size_t>(producer)],
                  graph_.nodes[static_cast<size_t>(consumer)]) ||
      !compatible(a, b) || !within_limits(a, b) || outside_path(from, into)) {
    return;
  }
  merge(from, into);
}

bool FusionGroups::fits_into(const Info& small, const Info& big) const {
  if (small.elements == big.elements || small.instructions > kCheap || small.checks > 0) {
    return false;
  }
  const Shape& space = big.rigid ? *big.rigid : big.shape;
  for (int32_t index : small.nodes) {
    const Node& node = graph_.nodes[static_cast<size_t>(index)];
    if (node.op == known_.random_bits) return false;
    const Shape& shape = node.outputs[0].shape;
    if (shape.elements() == Dim(1)) continue;
    // It is aligned by axes, so the loop must be, too, and all who read it there.
    if (known_.is_alias(node.op) || !big.rigid || !broadcasts_to(shape, space)) return false;
    if (node.op != known_.iota) continue;
    const int axis = static_cast<int>(node.attrs.integer("axis"));
    if (shape[axis] != space[axis + space.rank() - shape.rank()]) return false;
  }
  return true;
}

void FusionGroups::absorb_small() {
  for (size_t i = graph_.nodes.size(); i-- > 0;) {
    const int32_t group = group_[i];
    if (group < 0) continue;
    const Info& small = infos_[static_cast<size_t>(group)];
    if (small.nodes.back() != static_cast<int32_t>(i)) continue;  // once a group, at its last node
    int32_t target = -1;
    bool one = true;
    for (int32_t index : small.nodes) {
      one = one && !is_result_[static_cast<size_t>(index)];
      for (int32_t user : users_[static_cast<size_t>(index)]) {
        const int32_t other = root(user);
        if (other == group) continue;
        one = one && other >= 0 && (target < 0 || target == other);
        target = other;
      }
    }
    if (!one || target < 0) continue;
    // All its users are there, so no path leads around.
    const Info& big = infos_[static_cast<size_t>(target)];
    if (same_place(graph_.nodes[i], graph_.nodes[static_cast<size_t>(big.nodes.back())]) &&
        fits_into(small, big) && within_limits(small, big)) {
      merge(group, target);
    }
  }
}

void FusionGroups::peel_aliases(Info* group) const {
  bool again = true;
  while (again) {
    again = false;
    for (size_t k = 0; k < group->nodes.size(); ++k) {
      const int32_t index = group->nodes[k];
      const Node& node = graph_.nodes[static_cast<size_t>(index)];
      if (!known_.is_alias(node.op)) continue;
      const auto inside = [&](int32_t other) {
        return std::binary_search(group->nodes.begin(), group->nodes.end(), other);
      };
      const Value input = node.inputs[0];
      bool between = !input.is_param() && inside(input.node), used = false;
      for (int32_t user : users_[static_cast<size_t>(index)]) used = used || inside(user);
      if (between && used) continue;
      group->nodes.erase(group->nodes.begin() + static_cast<std::ptrdiff_t>(k));
      again = true;
      break;
    }
  }
}

std::vector<FusionGroups::Group> FusionGroups::run() {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (group_[i] < 0) continue;
    for (Value value : graph_.nodes[i].inputs) {
      if (!value.is_param()) try_merge(value.node, static_cast<int32_t>(i));
    }
  }
  absorb_small();

  std::vector<Group> groups;
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    Info info = std::move(infos_[i]);
    if (info.nodes.empty()) continue;
    peel_aliases(&info);
    int work = 0, immediates = 0;
    for (int32_t index : info.nodes) {
      const Node& node = graph_.nodes[static_cast<size_t>(index)];
      work += !known_.is_alias(node.op);
      for (Value value : node.inputs) {
        immediates += !value.is_param() && is_immediate(known_, graph_.node(value));
      }
    }
    if (work + immediates < 2) continue;
    groups.push_back({std::move(info.nodes), info.rigid ? *info.rigid : info.shape});
  }
  return groups;
}

}  // namespace tracefire
