// SPDX-License-Identifier: Apache-2.0
#include "core/ops/op_table.h"

#include <algorithm>
#include <iterator>

#include "core/ops/infer.h"
#include "core/ops/row_names.h"

namespace tracefire {
namespace {

/// Edits (insert, delete, replace) that turn `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

/// " Did you mean 'x'?", or "" where no name is near.
std::string proposal(std::string_view wrong, const std::vector<std::string_view>& names) {
  std::string_view best;
  size_t least = std::max<size_t>(2, wrong.size() / 3) + 1;
  if (wrong.size() <= 64) {  // longer names are no typing errors
    for (std::string_view name : names) {
      const size_t distance = edit_distance(wrong, name);
      if (distance < least) {
        least = distance;
        best = name;
      }
    }
  }
  return best.empty() ? std::string() : concat_text(" Did you mean '", best, "'?");
}

// An AttrType is the place of its alternative in Attr.
static_assert(
    std::variant_size_v<Attr> == 7 &&
    std::is_same_v<std::variant_alternative_t<static_cast<size_t>(AttrType::kFlag), Attr>, bool> &&
    std::is_same_v<std::variant_alternative_t<static_cast<size_t>(AttrType::kText), Attr>,
                   std::string> &&
    std::is_same_v<std::variant_alternative_t<static_cast<size_t>(AttrType::kShape), Attr>, Shape>);

const char* attr_words(const Attr& attr) {
  return attr_type_words(static_cast<AttrType>(attr.index()));
}

std::string input_list(const OpRow& row) {
  std::string text;
  for (const char* name : row.input_names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text.empty() ? "none" : text;
}

Status check_arity(const OpRow& row, size_t given) {
  const int count = static_cast<int>(given);
  if (count >= row.arity.min && (row.arity.max < 0 || count <= row.arity.max)) return {};
  std::string wanted = concat_text(row.arity.min);
  if (row.arity.max < 0) {
    wanted += " or more";
  } else if (row.arity.max != row.arity.min) {
    wanted += concat_text(" to ", row.arity.max);
  }
  return error(ErrorCode::kBadArity, "got ", count, count == 1 ? " input" : " inputs",
               "; the operation takes ", wanted, " (", input_list(row), ").");
}

Status fit_attr(const AttrSpec& spec, const Attr& given, Node* node) {
  if (given.index() == static_cast<size_t>(spec.type)) return {};
  if (spec.type == AttrType::kReal && std::holds_alternative<int64_t>(given)) {
    node->attrs.set(spec.name, static_cast<double>(std::get<int64_t>(given)));
    return {};
  }
  if (spec.type == AttrType::kShape && std::holds_alternative<std::vector<int64_t>>(given)) {
    node->attrs.set(spec.name, Shape::of(std::get<std::vector<int64_t>>(given)));
    return {};
  }
  return error(ErrorCode::kBadAttribute, "attribute '", spec.name, "' is ", attr_words(given),
               "; it must be ", attr_type_words(spec.type), ".");
}

Status check_attrs(const OpRow& row, Node* node) {
  for (const auto& [name, value] : node->attrs.entries()) {
    const bool known =
        std::any_of(row.attrs.begin(), row.attrs.end(),
                    [&, &wanted = name](const AttrSpec& spec) { return wanted == spec.name; });
    if (known) continue;
    std::vector<std::string_view> names;
    std::string list;
    for (const AttrSpec& spec : row.attrs) {
      names.push_back(spec.name);
      list += (list.empty() ? "" : ", ") + std::string(spec.name);
    }
    return error(ErrorCode::kBadAttribute, "there is no attribute '", name, "'; the operation has ",
                 list.empty() ? "none" : list, ".", proposal(name, names));
  }
  for (const AttrSpec& spec : row.attrs) {
    if (const Attr* given = node->attrs.find(spec.name)) {
      const Attr copy = *given;
      TF_RETURN_IF_ERROR(fit_attr(spec, copy, node));
    } else if (spec.fallback) {
      node->attrs.set(spec.name, *spec.fallback);
    } else {
      return error(ErrorCode::kBadAttribute, "attribute '", spec.name, "' (", spec.doc,
                   ") is missing; it must be ", attr_type_words(spec.type), ".");
    }
  }
  return {};
}

Status infer_row(const OpRow& row, const std::vector<ValueType>& inputs, Node* node) {
  TF_RETURN_IF_ERROR(check_arity(row, inputs.size()));
  TF_RETURN_IF_ERROR(check_attrs(row, node));
  if (static_cast<int>(node->regions.size()) != row.regions) {
    return error(ErrorCode::kBadArity, "got ", node->regions.size(),
                 " regions; the operation takes ", row.regions, ".");
  }
  TF_RETURN_IF_ERROR(row.infer(inputs, node));
  if (!row.output_names.empty() && node->outputs.size() != row.output_names.size()) {
    return error(ErrorCode::kInternal, "the row names ", row.output_names.size(),
                 " results, its shape function gave ", node->outputs.size(),
                 ". This is a bug of Tracefire; please report it.");
  }
  for (const ValueType& output : node->outputs) {
    for (Dim dim : output.shape) {
      if (dim.is_symbol() || dim.value() >= 0) continue;
      return error(ErrorCode::kBadAttribute, "the result would have shape ", output.shape.str(),
                   "; its sizes must be 0 or more, or symbols.");
    }
  }
  return {};
}

}  // namespace

OpTable::OpTable() {
  for (auto family : {elementwise_rows, movement_rows, reduction_rows, product_rows, random_rows,
                      composite_rows, control_rows, host_rows}) {
    std::vector<OpRow> rows = family();
    std::move(rows.begin(), rows.end(), std::back_inserter(rows_));
  }
  for (size_t i = 0; i < rows_.size(); ++i) {
    by_name_.emplace_back(rows_[i].name, static_cast<OpId>(i));
  }
  std::sort(by_name_.begin(), by_name_.end());
}

const OpTable& OpTable::instance() {
  static const OpTable table;
  return table;
}

std::optional<OpId> OpTable::find(std::string_view name) const {
  const auto it = std::lower_bound(by_name_.begin(), by_name_.end(), std::pair(name, OpId{0}));
  if (it == by_name_.end() || it->first != name) return std::nullopt;
  return it->second;
}

OpId OpTable::id(std::string_view name) const {
  if (const auto found = find(name)) return *found;
  unknown_op(name).throw_if_error();
  return 0;
}

Status OpTable::infer(const std::vector<ValueType>& inputs, Node* node) const {
  const OpRow& row = rows_[node->op];
  Status status = infer_row(row, inputs, node);
  if (status.ok()) return status;
  std::string where = row.name;
  if (!node->name.empty()) where += " (" + node->name + ")";
  if (node->location.file) where += " at " + node->location.str();
  return status.prefixed(where + ": ");
}

Status unknown_op(std::string_view name) {
  std::vector<std::string_view> names;
  for (const OpRow& row : OpTable::instance().rows()) names.push_back(row.name);
  return error(ErrorCode::kUnknownOp, "there is no operation '", name,
               "'; docs/ops.md lists all names.", proposal(name, names));
}

Node bind_node(const Node& node, const DimEnv& env) {
  Node bound = node;
  for (ValueType& type : bound.outputs) type.shape = type.shape.bind(env);
  for (const auto& [name, attr] : node.attrs.entries()) {
    const Shape* shape = std::get_if<Shape>(&attr);
    if (shape && !shape->is_constant()) bound.attrs.set(name, shape->bind(env));
  }
  return bound;
}

Cost node_cost(const Graph& graph, const Node& node, const DimEnv& env) {
  const OpRow& row = OpTable::instance().row(node.op);
  const Node bound = bind_node(node, env);
  Types inputs;
  for (Value value : node.inputs) {
    inputs.push_back(graph.type(value));
    inputs.back().shape = inputs.back().shape.bind(env);
  }
  Cost cost = row.cost(bound, inputs);
  for (const GraphPtr& region : node.regions) {
    Cost inner;
    for (const Node& part : region->nodes) {
      const Cost one = node_cost(*region, part, env);
      inner.flops += one.flops;
      inner.bytes += one.bytes;
    }
    // One pass through each region of a loop; of two branches, the dearer one.
    const bool branches = node.regions.size() == 2 && std::string_view(row.name) == "if";
    cost.flops = branches ? std::max(cost.flops, inner.flops) : cost.flops + inner.flops;
    if (std::string_view(row.name) != "fused") {  // a fused loop moves its operands only
      cost.bytes = branches ? std::max(cost.bytes, inner.bytes) : cost.bytes + inner.bytes;
    }
  }
  return cost;
}

}  // namespace tracefire
