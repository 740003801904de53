// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/graph/graph.h"

namespace tracefire {

/// What free symbols stand for elsewhere.
using SymbolMap = std::unordered_map<int32_t, Dim>;

/// Free symbols that a node receives: those of its input types, shape attributes and regions.
std::unordered_set<int32_t> symbols_into(const std::vector<ValueType>& inputs, const Node& node);

/// Whether a node's written types are those its row infers. Each inference of a data-dependent size
/// makes a new symbol, so a symbol that is not in `known` may stand for another one, if always for
/// the same and with at least its bound. Physical layouts are not compared.
bool same_up_to_new_symbols(const std::vector<ValueType>& written,
                            const std::vector<ValueType>& inferred,
                            const std::unordered_set<int32_t>& known);

/// Learns from `from` against `to` (same rank) what free symbols stand for; symbols that `map` has
/// already stay as they are. Dims that are no free symbol teach nothing.
void match_symbols(const Shape& from, const Shape& to, SymbolMap* map);

ValueType substitute(const ValueType& type, const SymbolMap& map);
Attrs substitute(const Attrs& attrs, const SymbolMap& map);
/// The graph with the symbols of all its types and shape attributes replaced; itself where none is.
GraphPtr substitute(const GraphPtr& graph, const SymbolMap& map);

}  // namespace tracefire
