// SPDX-License-Identifier: Apache-2.0
// The public edge of the trace: tensors, variables, scopes, operations by name.
#include <algorithm>

#include "core/base/guard.h"
#include "core/ops/op_table.h"
#include "core/ops/row_names.h"
#include "core/trace/flush.h"
#include "tracefire/apply.h"
#include "tracefire/config.h"
#include "tracefire/control.h"
#include "tracefire/tensor.h"

namespace tracefire {
namespace {

const trace::Cell& cell_of(const Tensor& tensor) {
  if (!tensor.defined()) {
    error(ErrorCode::kBadAttribute, "an undefined tensor was used; assign a value first")
        .throw_if_error();
  }
  return *tensor.cell();
}

void check_dtype(const char* what, DType dtype, DType wanted) {
  if (dtype == wanted) return;
  error(ErrorCode::kDTypeMismatch, "values of type ", dtype_name(wanted), " were asked of a ", what,
        " of type ", dtype_name(dtype), "; cast it first")
      .throw_if_error();
}

const trace::SlotPtr& slot_of(const Variable& variable) {
  if (!variable.defined()) {
    error(ErrorCode::kBadUsage, "an undefined variable was used; make it with an initial value")
        .throw_if_error();
  }
  return variable.slot();
}

OpSpec make_spec(const OpRow& row) {
  OpSpec spec;
  spec.name = row.name;
  spec.tf_name = row.tf_name;
  spec.op_class = op_class_name(row.op_class);
  spec.ordered = row.effect[0] != '\0';
  // The token of an ordered op is the trace's affair.
  spec.min_inputs = row.arity.min - (spec.ordered ? 1 : 0);
  spec.max_inputs = row.arity.max < 0 ? -1 : row.arity.max - (spec.ordered ? 1 : 0);
  spec.inputs.assign(row.input_names.begin(), row.input_names.end());
  spec.outputs.assign(row.output_names.begin(), row.output_names.end());
  for (const tracefire::AttrSpec& attr : row.attrs) {
    spec.attrs.push_back({attr.name, attr_type_name(attr.type), attr.fallback, attr.doc});
  }
  spec.doc = row.doc;
  spec.has_regions = row.regions > 0;
  return spec;
}

}  // namespace

DType Tensor::dtype() const { return cell_of(*this).type.dtype; }
const Shape& Tensor::shape() const { return cell_of(*this).type.shape; }
Device Tensor::device() const { return cell_of(*this).device; }

Tensor Tensor::to(Device device) const {
  cell_of(*this);
  return Tensor(trace::moved_to(cell_, device).value());
}

void Tensor::check_count(size_t count, const std::vector<int64_t>& sizes) {
  const Dim elements = Shape::of(sizes).elements();  // saturates
  const bool possible =
      std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size >= 0; });
  const int64_t expected = elements.value();
  if (!possible || static_cast<int64_t>(count) != expected) {
    error(ErrorCode::kShapeMismatch, count, " values were given for shape ", Shape::of(sizes).str(),
          ", which has ", expected)
        .throw_if_error();
  }
}

void Tensor::expect_dtype(DType expected) const { check_dtype("tensor", dtype(), expected); }
void HostArray::expect_dtype(DType wanted) const { check_dtype("host array", dtype, wanted); }

Variable::Variable(const Tensor& initial, std::string name, bool trainable) {
  const trace::Cell& cell = cell_of(initial);
  if (cell.scope != 0) {
    error(ErrorCode::kValueInTrace, "variable '", name,
          "' gets its initial value from a function being traced; create it before tracing")
        .throw_if_error();
  }
  if (!cell.type.shape.is_constant()) {
    error(ErrorCode::kSymbolUnbound, "variable '", name, "' gets an initial value of shape ",
          cell.type.shape.str(), ", which depends on data; sizes of variables must be numbers")
        .throw_if_error();
  }
  slot_ = std::make_shared<trace::Slot>();
  slot_->id = trace::next_id();
  slot_->name = std::move(name);
  slot_->type = cell.type;
  slot_->device = cell.device;
  slot_->trainable = trainable;
  slot_->current = initial.cell();
}

Tensor Variable::read() const { return Tensor(trace::read_slot(slot_of(*this))); }
void Variable::assign(const Tensor& value) const {
  cell_of(value);
  trace::assign_slot(slot_of(*this), value.cell()).throw_if_error();
}
const std::string& Variable::name() const { return slot_of(*this)->name; }
bool Variable::trainable() const { return slot_of(*this)->trainable; }
DType Variable::dtype() const { return slot_of(*this)->type.dtype; }
const Shape& Variable::shape() const { return slot_of(*this)->type.shape; }
Device Variable::device() const { return slot_of(*this)->device; }

const std::vector<OpSpec>& op_specs() {
  static const std::vector<OpSpec> specs = [] {
    std::vector<OpSpec> out;
    for (const OpRow& row : OpTable::instance().rows()) out.push_back(make_spec(row));
    return out;
  }();
  return specs;
}

Tensors apply_op(int op, std::span<const Tensor> inputs, const AttrList& attrs) {
  const auto rows = OpTable::instance().rows();
  if (op < 0 || op >= static_cast<int>(rows.size())) {
    error(ErrorCode::kUnknownOp, "operation number ", op, " does not exist; there are ",
          rows.size())
        .throw_if_error();
  }
  std::vector<trace::CellPtr> cells;
  cells.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    cell_of(input);
    cells.push_back(input.cell());
  }
  Attrs set;
  for (const auto& [name, value] : attrs) set.set(name, value);
  auto outputs = guarded([&] {
                   return trace::record(static_cast<OpId>(op), std::move(cells), std::move(set));
                 }).value();
  std::vector<Tensor> tensors;
  tensors.reserve(outputs.size());
  for (trace::CellPtr& cell : outputs) tensors.emplace_back(std::move(cell));
  return tensors;
}

Tensors apply_op(std::string_view op, std::span<const Tensor> inputs, const AttrList& attrs) {
  const auto id = OpTable::instance().find(op);
  if (!id) {
    error(ErrorCode::kUnknownOp, "there is no operation '", op, "'; docs/ops.md lists all")
        .throw_if_error();
  }
  return apply_op(static_cast<int>(*id), inputs, attrs);
}

DeviceScope::DeviceScope(Device device) {
  if (device.is_set()) trace::firer().check_device(device).throw_if_error();
  before_ = trace::context().device;
  trace::context().device = device;
}
DeviceScope::~DeviceScope() {
  trace::context().device = before_;
  if (trace::Scope::current() == nullptr && trace::eager().inside == 0) {
    trace::flush_pending(Trigger::kScopeEnd);
  }
}

NameScope::NameScope(const std::string& name) {
  auto& names = trace::context().names;
  names.push_back(names.empty() ? name : names.back() + "/" + name);
}
NameScope::~NameScope() {
  auto& names = trace::context().names;
  if (!names.empty()) names.pop_back();  // none: it ends on another thread than it began on
}

void flush() {
  trace::flush_pending(Trigger::kExit);
  trace::take_failure().throw_if_error();
}

}  // namespace tracefire
