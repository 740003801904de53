// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "core/engine/engine.h"
#include "core/graph/symbols.h"
#include "tracefire/function.h"

namespace tracefire {

/// Records the nodes of `graph` that `results` need, and from number `first` on also those with an
/// effect, into the current trace. `known` has the cells of values that exist already, `symbols`
/// what free symbols stand for here. Returns the cells of `results`, null for an invalid value.
Result<std::vector<trace::CellPtr>> splice(const Graph& graph, int32_t first,
                                           const std::vector<Value>& results,
                                           std::map<Value, trace::CellPtr> known,
                                           const SymbolMap& symbols = {});

/// Records a call of a traced function into the function being traced.
Result<Tensors> splice_call(const trace::Lowered& callee, const Tensors& args);

Variable variable_of(const trace::SlotPtr& slot);

}  // namespace tracefire
