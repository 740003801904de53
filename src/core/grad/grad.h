// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/graph/builder.h"

namespace tracefire {

/// Reverse mode, graph to graph: appends to `b`, which continues the forward graph, the nodes that
/// compute the gradient of  sum over i of <outputs[i], output_grads[i]>  with respect to each value
/// of `wrt`, and returns those gradients in order. A value that no differentiable path connects
/// with an output gets an invalid Value.
///
/// output_grads[i] has the type of outputs[i]; invalid stands for ones. Outputs are floating point
/// (kDTypeMismatch); integer values of `wrt` get an invalid Value.
///
/// Gradient nodes carry the location, device and "gradients/" + name of the node they belong to;
/// afterwards the builder's context is that of the last one.
///
/// Contributions to one value are added in a fixed order. Regions are run again for their gradient,
/// without their effects: if and call become nodes of the same kind; while needs max_iterations and
/// keeps the variables of every turn (arrays of that length). kNoGradient names an operation
/// without a gradient that a path really goes through, its source line and the row's reason.
Result<std::vector<Value>> gradients(Builder* b, const std::vector<Value>& outputs,
                                     const std::vector<Value>& output_grads,
                                     const std::vector<Value>& wrt);

}  // namespace tracefire
