// SPDX-License-Identifier: Apache-2.0
#include "core/ops/infer.h"

#include <algorithm>

namespace tracefire {

Status need_type(const Types& inputs, size_t index, const TypeRule& rule) {
  if (rule.allows(inputs[index].dtype)) return {};
  return error(ErrorCode::kDTypeMismatch, "input ", index, " is ", inputs[index].str(),
               "; its element type must be ", rule.words, ". Convert it with cast first.");
}

Status need_same_type(const Types& inputs, size_t first, size_t last) {
  for (size_t i = first + 1; i <= last; ++i) {
    if (inputs[i].dtype == inputs[first].dtype) continue;
    return error(ErrorCode::kDTypeMismatch, "input ", first, " is ", inputs[first].str(),
                 " and input ", i, " is ", inputs[i].str(),
                 "; both must have the same element type. Convert one of them with cast.");
  }
  return {};
}

Status need_rank(const Types& inputs, size_t index, int rank, const char* meaning) {
  if (inputs[index].shape.rank() == rank) return {};
  return error(ErrorCode::kShapeMismatch, "input ", index, " (", meaning, ") is ",
               inputs[index].str(), " with ", inputs[index].shape.rank(), " axes; it must have ",
               rank, ". Reshape it.");
}

Status need_type_attr(const Node& node, const char* name, const TypeRule& rule) {
  const DType dtype = node.attrs.dtype(name);
  if (rule.allows(dtype)) return {};
  return error(ErrorCode::kBadAttribute, "attribute '", name, "' is ", dtype_name(dtype),
               "; it must be ", rule.words, ".");
}

namespace {

Status no_broadcast(const Shape& a, const Shape& b, Dim x, Dim y) {
  const char* hint = x.is_symbol() || y.is_symbol()
                         ? "a symbolic size is known to fit only itself and 1"
                         : "sizes must be equal or 1, counted from the last axis";
  return error(ErrorCode::kShapeMismatch, "shapes ", a.str(), " and ", b.str(),
               " do not broadcast: sizes ", x.str(), " and ", y.str(), " differ; ", hint,
               ". Reshape, transpose or broadcast_to one operand.");
}

}  // namespace

Result<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<Dim> dims(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    const int ia = a.rank() - rank + i, ib = b.rank() - rank + i;
    const Dim x = ia < 0 ? Dim(1) : a[ia], y = ib < 0 ? Dim(1) : b[ib];
    if (x == y || y == Dim(1)) {
      dims[static_cast<size_t>(i)] = x;
    } else if (x == Dim(1)) {
      dims[static_cast<size_t>(i)] = y;
    } else {
      return no_broadcast(a, b, x, y);
    }
  }
  return Shape(std::move(dims));
}

Result<Shape> broadcast_shapes(const std::vector<Shape>& shapes) {
  Shape all;
  for (const Shape& shape : shapes) {
    TF_ASSIGN(all, broadcast_shapes(all, shape));
  }
  return all;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) return false;
  for (int i = 1; i <= from.rank(); ++i) {
    const Dim x = from[from.rank() - i];
    if (x != to[to.rank() - i] && x != Dim(1)) return false;
  }
  return true;
}

Result<int> normal_axis(int64_t axis, int rank, const char* attr) {
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  return error(ErrorCode::kBadAxis, "attribute '", attr, "' names axis ", axis,
               " of a tensor with ", rank, " axes; ",
               rank ? concat_text("it must be from ", -rank, " to ", rank - 1, ".")
                    : std::string("a scalar has none."));
}

Status normalize_axis_attr(Node* node, const char* name, int rank, int* axis) {
  TF_ASSIGN(*axis, normal_axis(node->attrs.integer(name), rank, name));
  node->attrs.set(name, int64_t{*axis});
  return {};
}

Status normalize_axes_attr(Node* node, const char* name, int rank, std::vector<int>* axes) {
  axes->clear();
  for (int64_t given : node->attrs.ints(name)) {
    TF_ASSIGN(const int axis, normal_axis(given, rank, name));
    if (std::find(axes->begin(), axes->end(), axis) != axes->end()) {
      return error(ErrorCode::kBadAxis, "attribute '", name, "' names axis ", axis,
                   " twice; each axis may be named once.");
    }
    axes->push_back(axis);
  }
  std::sort(axes->begin(), axes->end());
  node->attrs.set(name, std::vector<int64_t>(axes->begin(), axes->end()));
  return {};
}

AxisSplit split_at(const Shape& shape, int axis) {
  AxisSplit split{1, shape[axis], 1};
  for (int i = 0; i < axis; ++i) split.outer = split.outer * shape[i];
  for (int i = axis + 1; i < shape.rank(); ++i) split.inner = split.inner * shape[i];
  return split;
}

namespace {

/// A product of sizes as a number times symbols, so that equal products are recognised whatever
/// the order of the factors.
struct Factors {
  int64_t number = 1;
  std::vector<int32_t> symbols;  // sorted
};

Factors factors(const Shape& shape) {
  Factors result;
  for (Dim dim : shape) {
    if (dim.is_symbol()) {
      result.symbols.push_back(dim.symbol());
    } else if (dim.value() >= 0 &&
               __builtin_mul_overflow(result.number, dim.value(), &result.number)) {
      result.number = Dim::kUnbounded;  // no tensor is that large; equal to nothing but itself
    }
  }
  std::sort(result.symbols.begin(), result.symbols.end());
  return result;
}

void cancel(Factors* a, Factors* b) {
  std::vector<int32_t> only_a, only_b;
  std::set_difference(a->symbols.begin(), a->symbols.end(), b->symbols.begin(), b->symbols.end(),
                      std::back_inserter(only_a));
  std::set_difference(b->symbols.begin(), b->symbols.end(), a->symbols.begin(), a->symbols.end(),
                      std::back_inserter(only_b));
  a->symbols = std::move(only_a);
  b->symbols = std::move(only_b);
}

Dim product(const Factors& factors) {
  Dim result = factors.number;
  for (int32_t symbol : factors.symbols) result = result * Dim::from_symbol(symbol);
  return result;
}

Status elements_differ(const Shape& from, const Shape& wanted) {
  return error(ErrorCode::kShapeMismatch, "shape ", from.str(), " has ", from.elements().str(),
               " elements and cannot become ", wanted.str(),
               "; both must have equally many, for every value of the symbolic sizes.");
}

}  // namespace

bool same_elements(const Shape& a, const Shape& b) {
  Factors fa = factors(a), fb = factors(b);
  if (fa.number == 0 && fb.number == 0) return true;
  cancel(&fa, &fb);
  if (fa.symbols.empty() && fb.symbols.empty()) return fa.number == fb.number;
  return product(fa) == product(fb);
}

Result<Shape> resolve_reshape(const Shape& from, const Shape& wanted) {
  int hole = -1;
  for (int i = 0; i < wanted.rank(); ++i) {
    const Dim dim = wanted[i];
    if (dim.is_symbol() || dim.value() >= 0) continue;
    if (dim.value() != -1 || hole >= 0) {
      return error(ErrorCode::kBadAttribute, "attribute 'shape' is ", wanted.str(),
                   "; its sizes must be 0 or more, with at most one -1.");
    }
    hole = i;
  }
  if (hole < 0) {
    if (!same_elements(from, wanted)) return elements_differ(from, wanted);
    return wanted;
  }
  Factors total = factors(from), known = factors(wanted);  // -1 is no factor
  if (known.number == 0) return elements_differ(from, wanted);
  cancel(&total, &known);
  Shape result = wanted;
  if (known.symbols.empty() && total.number % known.number == 0) {
    total.number /= known.number;
    result[hole] = product(total);
    return result;
  }
  const Dim all = product(total), rest = product(known);
  const Dim quotient = floor_div(all, rest);
  if (quotient * rest != all) return elements_differ(from, wanted);
  result[hole] = quotient;
  return result;
}

Dim min_dim(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) return std::min(a.value(), b.value());
  if (a == b) return a;
  if (a.is_constant() && b.bound() <= a.value()) return b;
  if (b.is_constant() && a.bound() <= b.value()) return a;
  return a + b - max(a, b);
}

double type_elements(const ValueType& type) {
  double elements = 1;
  for (Dim dim : type.shape) elements *= dim.is_constant() ? static_cast<double>(dim.value()) : 0;
  return elements;
}

double type_bytes(const ValueType& type) {
  return type_elements(type) * static_cast<double>(dtype_size(type.dtype));
}

double traffic(const Node& node, const Types& inputs) {
  double bytes = 0;
  for (const ValueType& type : inputs) bytes += type_bytes(type);
  for (const ValueType& type : node.outputs) bytes += type_bytes(type);
  return bytes;
}

Cost traffic_cost(const Node& node, const Types& inputs) { return {0, traffic(node, inputs)}; }

Cost picked_cost(const Node& node, const Types& inputs) {
  double bytes = 0;
  for (size_t i = 1; i < inputs.size(); ++i) bytes += type_bytes(inputs[i]);
  for (const ValueType& type : node.outputs) bytes += 2 * type_bytes(type);
  return {0, bytes};
}

Cost no_cost(const Node&, const Types&) { return {}; }

}  // namespace tracefire
