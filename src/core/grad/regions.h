// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/graph/builder.h"

namespace tracefire {

/// Gradient of a control node (if, while, call, fused) appended to `b`. `out_grads[i]` is invalid
/// where none flows from result i; `wanted[i]` tells whether operand i needs a gradient. Returns
/// one Value an operand, invalid where none flows.
Result<std::vector<Value>> region_gradients(Builder* b, const Node& node,
                                            const std::vector<Value>& out_grads,
                                            const std::vector<bool>& wanted);

/// A copy of `region` that can run a second time: effects, their tokens and what asserts are gone,
/// also in regions inside. Parameters and results are the data ones, in order. kNoGradient where a
/// data result depends on what an effect returned.
Result<GraphPtr> without_effects(const OpSet& ops, const Graph& region);

}  // namespace tracefire
