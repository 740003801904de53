// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op_row.h"

namespace tracefire {

/// How a node is written in smaller ones: its row's decomposition, or one that only the compiler
/// knows. Null where it has no pieces.
DecomposeFn expansion(const Node& node);

/// True where the pieces become part of a loop: they are cheap to compute beside what uses them and
/// dear to write and read again.
bool expansion_fuses(const Node& node);

}  // namespace tracefire
