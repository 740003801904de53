// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "backends/ref/array.h"
#include "core/base/status.h"
#include "core/ops/op_table.h"

namespace tracefire::ref {

/// A failed data check, as a device leaves it in its error word.
struct Failure {
  ErrorCode code = ErrorCode::kInternal;
  int64_t detail = 0;
};

/// One evaluation of a node whose symbols have numbers. `out` arrives as zeros of the result types;
/// a result whose size depends on data arrives empty. A function fills it without rounding.
struct Eval {
  const Node& node;
  const std::vector<Array>& in;
  std::vector<Array> out;
  std::optional<Failure> failure;

  const Attrs& attrs() const { return node.attrs; }
  std::string_view name() const { return OpTable::instance().name(node.op); }
  void fail(ErrorCode code, int64_t detail) {
    if (!failure) failure = Failure{code, detail};
  }
};
using EvalFn = void (*)(Eval& e);

struct Entry {
  const char* op;
  EvalFn fn;
};

// Families, as in core/ops.
std::vector<Entry> unary_entries();
std::vector<Entry> binary_entries();
std::vector<Entry> movement_entries();
std::vector<Entry> indexing_entries();
std::vector<Entry> reduction_entries();
std::vector<Entry> product_entries();
std::vector<Entry> random_entries();
std::vector<Entry> composite_entries();
std::vector<Entry> string_entries();

/// The function of a row; nullptr for control rows, effects and tokens.
EvalFn find_eval(OpId op);

/// Results of one node on host arrays, rounded to their types. `failure` tells of a failed check.
Result<std::vector<Array>> evaluate(const Node& node, const std::vector<Array>& inputs,
                                    std::optional<Failure>* failure);

/// Runs a whole graph, regions included: if, while, call and fused are walked through; tokens are
/// empty arrays; print writes nothing; assert fails. host_call is not possible here (kNoKernel).
/// The first failed check is left in `failure`; where it is null, it ends the run with its error.
Result<std::vector<Array>> run_graph(const Graph& graph, const std::vector<Array>& params,
                                     std::optional<Failure>* failure = nullptr);

}  // namespace tracefire::ref
