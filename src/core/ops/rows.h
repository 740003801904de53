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

/// A row of a fixed number of inputs and the result "y"; what else it has is set by the caller.
OpRow make_row(OpClass op_class, const char* name, const char* tf_name,
               std::vector<const char*> input_names, std::vector<AttrSpec> attrs, InferFn infer,
               Gradient gradient, CostFn cost, const char* doc);

/// What an element-wise row without attributes says beside its operands.
struct Elementwise {
  const char* name;
  const char* tf_name;
  InferFn infer;
  Gradient gradient;
  CostFn cost;
  const char* doc;
};
OpRow elementwise_row(const Elementwise& row, std::vector<const char*> input_names,
                      const char* output_name);

}  // namespace tracefire
