// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/graph/graph.h"
#include "core/graph/op_set.h"

namespace tracefire {

struct PrintOptions {
  bool locations = false;
  bool devices = true;
};

/// The graph as text; parse() reads it back to an equal graph. One node a line:
///   graph mlp(%0: float32(N, 784), %1: slot float32(784, 10) "kernel") {
///     %2 = matmul(%0, %1) {transpose_a = false, transpose_b = false} : float32(N, 10) @/GPU:0
///     return %2, slot %1 = %3
///   }
/// Symbols print by name with their bound; two symbols of one name get a suffix.
std::string print(const OpSet& ops, const Graph& graph, PrintOptions options = {});

/// Reads print()'s text. Untrusted input: errors give line and column (kBadText), sizes and counts
/// are bounded before anything is allocated, types are inferred again and compared.
Result<GraphPtr> parse(const OpSet& ops, std::string_view text);

/// The written specification of a graph, run: topological order, arity, types equal to what the
/// row infers, regions capture nothing, one effect chain a class, slot results fit their
/// parameters. The message names op, node path, rule and source line (kBadGraph).
Status verify(const OpSet& ops, const Graph& graph);

/// Key under which equal graphs meet in a cache: ops, attributes, dtypes, shapes with symbols
/// renumbered by first use, devices, regions; not names or locations.
std::string cache_key(const OpSet& ops, const Graph& graph);

}  // namespace tracefire
