// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tracefire/tensor.h"

namespace tracefire {

/// Value of an attribute. Raw bytes and texts are std::string. New alternatives are appended: their
/// order is part of cache keys and of saved graphs.
using AttrValue =
    std::variant<bool, int64_t, double, std::string, DType, std::vector<int64_t>, Shape>;
using AttrList = std::vector<std::pair<std::string, AttrValue>>;

/// What bindings need to know of a row of the op table.
struct OpSpec {
  struct AttrSpec {
    std::string name;
    std::string type;  ///< "flag" "integer" "real" "text" "dtype" "ints" "shape"
    std::optional<AttrValue> fallback;
    std::string doc;
  };
  std::string name;
  std::string tf_name;
  std::string op_class;
  int min_inputs = 0;
  int max_inputs = 0;  ///< -1: any number
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<AttrSpec> attrs;
  std::string doc;
  bool has_regions = false;
  bool ordered = false;  ///< member of an effect chain
};

/// All rows, in the order of their numbers, which another build may number otherwise.
TRACEFIRE_API const std::vector<OpSpec>& op_specs();

/// Records an operation by name or number; attributes not given take the row's defaults. Gives its
/// results. Typed functions for every row are in tracefire/ops.h. Throws kUnknownOp, kBadArity,
/// kBadAttribute, kShapeMismatch, kDTypeMismatch with the received values.
TRACEFIRE_API Tensors apply_op(std::string_view op, std::span<const Tensor> inputs,
                               const AttrList& attrs = {});
TRACEFIRE_API Tensors apply_op(int op, std::span<const Tensor> inputs, const AttrList& attrs = {});

}  // namespace tracefire
