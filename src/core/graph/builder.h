// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/op_set.h"

namespace tracefire {

/// Builds a graph node by node; each node is inferred and checked as it is added.
class Builder {
 public:
  explicit Builder(const OpSet& ops, std::string name = "");
  /// Continues an existing graph (its values keep their numbers); results are dropped.
  Builder(const OpSet& ops, const Graph& graph);

  Value param(ValueType type, std::string name = "", ParamKind kind = ParamKind::kInput,
              Device device = {});
  /// Adds a node and returns its first result; others are {node, 1…}. Attributes not given take
  /// the row's defaults. Throws nothing: see add().
  Result<Value> add(OpId op, std::vector<Value> inputs, Attrs attrs = {},
                    std::vector<GraphPtr> regions = {});
  /// Adds a node as it is, with its regions, device and location. Where `node.outputs` is filled and
  /// agrees with what the row infers, those types are kept, with their layouts and their symbols of
  /// data-dependent sizes; else they are replaced.
  Result<Value> add(Node node);
  /// As add(), by name, for code that knows the op fits (gradients, decompositions): a failure is
  /// kept and returned by finish(), and the value returned is then invalid.
  Value op(std::string_view name, std::vector<Value> inputs, Attrs attrs = {},
           std::vector<GraphPtr> regions = {});
  /// The value of `result`, or keeps its failure as op() does.
  Value keep(Result<Value> result);
  /// Scalar constant of `dtype` (rank 0), with broadcasting left to the user op.
  Value scalar(double value, DType dtype);

  const ValueType& type(Value value) const { return graph_.type(value); }
  const Shape& shape(Value value) const { return graph_.type(value).shape; }
  DType dtype(Value value) const { return graph_.type(value).dtype; }
  const Graph& graph() const { return graph_; }
  const OpSet& ops() const { return ops_; }

  /// Location, name scope and device that nodes added from now on get (where they have none).
  void set_context(Location location, std::string name, Device device = {}, bool by_user = false);

  void result(Value value, int32_t slot = -1);
  const Status& status() const { return status_; }
  /// The finished graph, or the first failure. The builder is empty afterwards.
  Result<GraphPtr> finish();

 private:
  const OpSet& ops_;
  Graph graph_;
  Node context_;
  Status status_;
};

/// Adds all nodes of `graph` to `builder` with `args` for its parameters; returns its results'
/// values in `builder`, in order. Symbols of parameter types become the dims of `args`; symbols of
/// data-dependent sizes become new ones, so that a graph may be inlined twice.
Result<std::vector<Value>> inline_graph(const Graph& graph, const std::vector<Value>& args,
                                        Builder* builder);

/// Copies a graph node by node, so that a pass writes only what it changes.
class Rewriter {
 public:
  Rewriter(const OpSet& ops, const Graph& source);
  const Graph& source() const { return source_; }
  Builder& builder() { return builder_; }
  /// The value in the new graph that stands for `old`.
  Value map(Value old) const;
  std::vector<Value> map(const std::vector<Value>& olds) const;
  void set(Value old, Value now);
  /// Copies node `index` with mapped inputs and registers its results.
  void copy(int32_t index);
  /// Copies the results and returns the new graph without dead nodes (effects stay).
  Result<GraphPtr> finish();

 private:
  const Graph& source_;
  Builder builder_;
  std::vector<Value> params_;
  std::vector<std::vector<Value>> nodes_;
};

/// The graph without nodes that neither a result nor an effect needs.
GraphPtr remove_dead(const OpSet& ops, const Graph& graph);

}  // namespace tracefire
