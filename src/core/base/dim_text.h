// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "tracefire/shape.h"

namespace tracefire {

/// `dim` as text, with `name(symbol)` for each free symbol: "(N * 28 + 1)", "((N + 1) // 2)",
/// "max(N, 1)". Parts are ordered by their text, so that equal names give equal text in whatever
/// order the symbols were made.
std::string dim_text(Dim dim, const std::function<std::string(int32_t)>& name);

/// The name that a free symbol was made with ("" for a derived one).
std::string symbol_name(int32_t symbol);
/// True for a symbol that is not derived from others.
bool is_free_symbol(int32_t symbol);

}  // namespace tracefire
