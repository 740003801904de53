// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "core/compile/known_ops.h"
#include "core/graph/graph.h"

namespace tracefire {

/// Limits of one loop: registers, arguments and code size of a kernel.
struct FusionLimits {
  int inputs = 16;
  int outputs = 12;
  int instructions = 200;
  int search = 2000;  ///< nodes between two groups that are looked at before they may join
};

/// Finds which nodes of a graph become one loop. Groups grow along edges from producer to consumer;
/// two groups join where no path leaves one and enters the other through a third node.
class FusionGroups {
 public:
  /// Nodes in ascending order; `shape` is the loop's iteration space.
  struct Group {
    std::vector<int32_t> nodes;
    Shape shape;
  };

  FusionGroups(const Graph& graph, Device default_device);
  /// Groups that save a kernel or a memory access, by their last node.
  std::vector<Group> run();

  /// Constants that loops hold as immediates: each group has its own copy.
  static bool is_immediate(const KnownOps& known, const Node& node);

 private:
  /// What a group is while it grows. Indexed by the root of its nodes.
  struct Info {
    std::vector<int32_t> nodes;
    Dim elements;
    std::optional<Shape> rigid;  ///< shape of nodes that go by axes, not by linear order
    Shape shape;                 ///< of its last node
    int instructions = 0;
    int checks = 0;
  };

  bool fusible(int32_t index) const;
  bool is_rigid(const Node& node) const;
  int cost(const Node& node) const;
  int32_t root(int32_t index) const { return group_[static_cast<size_t>(index)]; }
  Info& info(int32_t index) { return infos_[static_cast<size_t>(root(index))]; }
  bool same_place(const Node& a, const Node& b) const;
  void try_merge(int32_t producer, int32_t consumer);
  bool compatible(const Info& a, const Info& b) const;
  bool within_limits(const Info& a, const Info& b) const;
  /// A path from group `from` to group `to` through nodes of neither. True also where the search
  /// would take too long: groups so far apart stay two loops.
  bool outside_path(int32_t from, int32_t to);
  void merge(int32_t from, int32_t into);
  /// Nodes of fewer elements that only one group uses move into it where they are cheap.
  void absorb_small();
  bool fits_into(const Info& small, const Info& big) const;
  /// Takes aliases at the border out of a group: outside they cost nothing.
  void peel_aliases(Info* group) const;

  const KnownOps& known_;
  const Graph& graph_;
  Device default_device_;
  FusionLimits limits_;
  std::vector<std::vector<int32_t>> users_;  ///< of each node, ascending, without duplicates
  std::vector<bool> is_result_;              ///< node gives a result of the graph
  std::vector<int32_t> group_;               ///< -1: not fusible
  std::vector<Info> infos_;
  std::vector<uint32_t> mark_;  ///< visited by search number stamp_
  uint32_t stamp_ = 0;
};

}  // namespace tracefire
