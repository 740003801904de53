// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/ops/op_row.h"

namespace tracefire {

// What the rows' shape functions share. Messages here start without the op's name: OpTable::infer
// puts "add at train.py:12: " in front of whatever a row returns.

using Types = std::vector<ValueType>;

/// Which element types an input may have, with the words for the message.
struct TypeRule {
  bool (*allows)(DType dtype);
  const char* words;
};
inline bool is_real(DType dtype) { return is_floating(dtype) || is_integer(dtype); }
inline bool is_integer_or_bool(DType dtype) { return is_integer(dtype) || dtype == DType::kBool; }
inline bool is_bool(DType dtype) { return dtype == DType::kBool; }
inline bool is_string(DType dtype) { return dtype == DType::kString; }
inline bool is_data(DType dtype) { return dtype != DType::kInvalid && dtype != DType::kToken; }
inline bool is_ordered(DType dtype) { return is_real(dtype) || dtype == DType::kBool; }
inline bool is_plain(DType dtype) { return is_data(dtype) && dtype != DType::kString; }

inline constexpr TypeRule kFloating{is_floating, "a floating type (float64, float32, float16, …)"};
inline constexpr TypeRule kReal{is_real, "a floating or integer type"};
inline constexpr TypeRule kInteger{is_integer, "an integer type"};
inline constexpr TypeRule kIntegerOrBool{is_integer_or_bool, "an integer type or bool"};
inline constexpr TypeRule kBoolean{is_bool, "bool"};
inline constexpr TypeRule kText{is_string, "string"};
inline constexpr TypeRule kOrdered{is_ordered, "a floating or integer type or bool"};
inline constexpr TypeRule kPlain{is_plain, "any type but string"};
inline constexpr TypeRule kAnything{is_data, "any type that holds data"};

/// Error (kDTypeMismatch) unless `rule` allows the type of input `index`.
Status need_type(const Types& inputs, size_t index, const TypeRule& rule);
/// Error (kDTypeMismatch) unless inputs `first`… `last` (inclusive) have one type.
Status need_same_type(const Types& inputs, size_t first, size_t last);
/// Error (kShapeMismatch) unless input `index` has exactly `rank` axes.
Status need_rank(const Types& inputs, size_t index, int rank, const char* meaning);
/// Error (kBadAttribute) unless the DType attribute `name` is allowed by `rule`.
Status need_type_attr(const Node& node, const char* name, const TypeRule& rule);

/// NumPy broadcasting: from the last axis, sizes are equal or one of them is 1. A symbol goes with
/// itself and with 1 only, because its number is not known here.
Result<Shape> broadcast_shapes(const Shape& a, const Shape& b);
/// All of `shapes`, from left to right.
Result<Shape> broadcast_shapes(const std::vector<Shape>& shapes);
/// True where `from` broadcasts to exactly `to`.
bool broadcasts_to(const Shape& from, const Shape& to);

/// `axis` counted from 0, or kBadAxis.
Result<int> normal_axis(int64_t axis, int rank, const char* attr);
/// Makes the axis attribute `name` of the node count from 0.
Status normalize_axis_attr(Node* node, const char* name, int rank, int* axis);
/// Makes the ints attribute `name` count from 0, ascending, without duplicates.
Status normalize_axes_attr(Node* node, const char* name, int rank, std::vector<int>* axes);

/// Product of the sizes before, at and after `axis`.
struct AxisSplit {
  Dim outer, size, inner;
};
AxisSplit split_at(const Shape& shape, int axis);

/// True where both shapes surely have equally many elements, whatever their symbols are.
bool same_elements(const Shape& a, const Shape& b);
/// The one -1 of `wanted` replaced so that it has as many elements as `from`.
Result<Shape> resolve_reshape(const Shape& from, const Shape& wanted);
/// min(a, b), exact for numbers, symbolic otherwise.
Dim min_dim(Dim a, Dim b);

/// One result.
inline void set_output(Node* node, DType dtype, Shape shape) {
  node->outputs.assign(1, ValueType{dtype, std::move(shape)});
}

/// Bytes of a value with bound sizes; 0 where a size is still a symbol.
double type_bytes(const ValueType& type);
double type_elements(const ValueType& type);
/// Bytes of all inputs and results of a node.
double traffic(const Node& node, const Types& inputs);

/// `flops` operations for each element of the first result.
template <int flops>
Cost elementwise_cost(const Node& node, const Types& inputs) {
  return {flops * type_elements(node.outputs[0]), traffic(node, inputs)};
}
/// `flops` operations for each element of the first input.
template <int flops>
Cost input_cost(const Node& node, const Types& inputs) {
  return {flops * type_elements(inputs[0]), traffic(node, inputs)};
}
/// Bytes only.
Cost traffic_cost(const Node& node, const Types& inputs);
/// Reads of the first input count as much as is written, not the whole input.
Cost picked_cost(const Node& node, const Types& inputs);
/// Nothing.
Cost no_cost(const Node& node, const Types& inputs);

}  // namespace tracefire
