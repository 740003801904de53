// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/infer.h"
#include "core/ops/op_table.h"

namespace tracefire {

// Parts of families that fill more than one file; op_table.cpp takes the families only.
std::vector<OpRow> unary_rows();
std::vector<OpRow> binary_rows();
std::vector<OpRow> indexing_rows();
std::vector<OpRow> scatter_rows();
std::vector<OpRow> along_axis_rows();

/// Appends `more` to `rows`.
void append_rows(std::vector<OpRow>* rows, std::vector<OpRow> more);

}  // namespace tracefire
