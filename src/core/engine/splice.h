// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "core/engine/engine.h"
#include "core/graph/symbols.h"
#include "tracefire/function.h"

namespace tracefire {

/// Records the nodes `first`… of `graph` that `results` need into the current trace, with `known`
/// cells for values that exist already
/// and `symbols` for what free symbols stand for here; returns the cells of `results` (null for an
/// invalid value).
Result<std::vector<trace::CellPtr>> splice(const Graph& graph, int32_t first,
                                           const std::vector<Value>& results,
                                           std::map<Value, trace::CellPtr> known,
                                           const SymbolMap& symbols = {});

/// Records a call of a traced function into the function being traced.
Result<Tensors> splice_call(const trace::Lowered& callee, const Tensors& args);

Variable variable_of(const trace::SlotPtr& slot);

}  // namespace tracefire
