// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/compile/compile.h"
#include "core/graph/builder.h"

namespace tracefire {

// The passes, one a file. Each returns the graph it got where it has nothing to change.

/// exp(d) / sum(exp(d)) with d = x - max(x) -> softmax; d - log(sum(exp(d))) -> log_softmax.
Result<GraphPtr> raise_softmax(const GraphPtr& graph, const CompileOptions& options, bool* changed);
/// The nodes of a called graph in place of the call.
Result<GraphPtr> inline_calls(const GraphPtr& graph, const CompileOptions& options, bool* changed);
/// A device for each node, and copies between devices.
Result<GraphPtr> place(const GraphPtr& graph, const CompileOptions& options, bool* changed);
/// Composites that no kernel of their device accepts -> smaller nodes, placed.
Result<GraphPtr> decompose(const GraphPtr& graph, const CompileOptions& options, bool* changed);
/// Identities, constants, casts and changes of shape, implicit broadcasting, equal nodes.
Result<GraphPtr> simplify(const GraphPtr& graph, const CompileOptions& options, bool* changed);
/// Element-wise nodes of one iteration space -> `fused` nodes.
Result<GraphPtr> fuse(const GraphPtr& graph, const CompileOptions& options, bool* changed);

/// Runs `pass` on the regions of if, while and call nodes and puts the results in.
Result<GraphPtr> rewrite_regions(const GraphPtr& graph, const CompileOptions& options,
                                 bool* changed, decltype(Pass::run) pass);

}  // namespace tracefire
