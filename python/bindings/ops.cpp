// SPDX-License-Identifier: Apache-2.0
// tracefire._core.ops: one function for each row of the op table, made when the module is loaded.
#include "tracefire/apply.h"

#include <cxxabi.h>

#include <algorithm>
#include <deque>

#include "python/bindings/common.h"

namespace tracefire::python {
namespace {

/// What a function of `ops` needs to know of its row. Lives as long as the process.
struct Op {
  int number;
  const OpSpec* spec;
  std::vector<PyObject*> attr_names;  ///< interned, so that a pointer comparison nearly always ends
  std::string doc;
  PyMethodDef method;
};

const char* expected_attr(std::string_view type) {
  if (type == "flag") return "True or False";
  if (type == "integer") return "an integer";
  if (type == "real") return "a number";
  if (type == "text") return "a str or bytes";
  if (type == "dtype") return "a dtype such as 'float32'";
  if (type == "ints") return "a sequence of integers";
  return "a sequence of sizes";
}

int64_t integer_of(nb::handle value) {
  nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  const int64_t number = index.is_valid() ? PyLong_AsLongLong(index.ptr()) : -1;
  if (PyErr_Occurred()) throw nb::python_error();
  return number;
}

/// The attribute's value, or nullopt where the Python object is of no fitting type.
std::optional<AttrValue> convert_attr(std::string_view type, nb::handle value) {
  PyObject* object = value.ptr();
  if (type == "flag") {
    if (PyBool_Check(object)) return object == Py_True;
    if (PyIndex_Check(object)) return integer_of(value) != 0;
  } else if (type == "integer") {
    if (PyIndex_Check(object)) return integer_of(value);
  } else if (type == "real") {
    if (PyFloat_Check(object)) return PyFloat_AsDouble(object);
    if (PyIndex_Check(object)) return static_cast<double>(integer_of(value));
    if (!PyUnicode_Check(object) && nb::hasattr(value, "__float__")) {
      nb::object number = nb::steal(PyNumber_Float(object));
      if (!number.is_valid()) throw nb::python_error();
      return PyFloat_AsDouble(number.ptr());
    }
  } else if (type == "text") {
    if (PyUnicode_Check(object) || PyBytes_Check(object)) return text_of(value);
  } else if (type == "dtype") {
    return dtype_of(value);
  } else if (type == "ints") {
    if (PyIndex_Check(object) && !is_tensor(value)) return std::vector<int64_t>{integer_of(value)};
    if (PyUnicode_Check(object) || !PySequence_Check(object) || is_tensor(value)) {
      return std::nullopt;
    }
    std::vector<int64_t> numbers;
    for (nb::handle item : nb::borrow<nb::sequence>(value)) {
      if (!PyIndex_Check(item.ptr())) return std::nullopt;
      numbers.push_back(integer_of(item));
    }
    return numbers;
  } else {
    return shape_of(value);
  }
  return std::nullopt;
}

const OpSpec::AttrSpec& find_attr(const Op& op, PyObject* name) {
  for (size_t i = 0; i < op.attr_names.size(); ++i) {
    if (op.attr_names[i] == name) return op.spec->attrs[i];
  }
  const auto text = shown_text(nb::handle(name));
  std::vector<std::string> names;
  std::string all;
  for (const auto& attr : op.spec->attrs) {
    if (attr.name == text) return attr;
    names.push_back(attr.name);
    all += (all.empty() ? "" : ", ") + attr.name;
  }
  const std::string near = closest(text, names);
  fail(ErrorCode::kBadAttribute,
       op.spec->name + " has no attribute '" + text + "'; expected " +
           (all.empty() ? "none: its operands are positional" : "one of " + all) +
           (near.empty() ? "" : ". Did you mean '" + near + "'?"));
}

void add_attr(const Op& op, PyObject* name, nb::handle value, AttrList* attrs) {
  const OpSpec::AttrSpec& attr = find_attr(op, name);
  if (value.is_none()) return;  // as if not given
  auto converted = convert_attr(attr.type, value);
  if (!converted) {
    fail(ErrorCode::kBadAttribute, op.spec->name + ": attribute '" + attr.name + "' is " +
                                       describe(value) + "; expected " + expected_attr(attr.type) +
                                       " (" + attr.doc + ")");
  }
  attrs->emplace_back(attr.name, std::move(*converted));
}

std::string input_name(const OpSpec& spec, size_t index) {
  return index < spec.inputs.size() ? " ('" + spec.inputs[index] + "')" : "";
}

void add_input(const Op& op, PyObject* value, Tensors* inputs) {
  if (is_tensor(value)) {
    inputs->push_back(*nb::inst_ptr<Tensor>(nb::handle(value)));
  } else if (nb::isinstance<Variable>(value)) {
    inputs->push_back(nb::inst_ptr<Variable>(nb::handle(value))->read());
  } else {
    fail(ErrorCode::kDTypeMismatch,
         op.spec->name + ": operand " + std::to_string(inputs->size()) +
             input_name(*op.spec, inputs->size()) + " is " + describe(value) +
             "; expected a Tensor. Make one with tracefire.tensor(); attributes go by keyword");
  }
}

nb::object give(Tensors outputs) {
  if (outputs.size() == 1) return wrap(std::move(outputs[0]));
  if (outputs.empty()) return nb::none();
  return nb::tuple(wrap_all(std::move(outputs)));
}

nb::object call(const Op& op, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  Tensors inputs;
  const bool one_list = count == 1 && op.spec->max_inputs < 0 &&
                        (PyList_Check(args[0]) || PyTuple_Check(args[0]));
  if (one_list) {
    for (nb::handle item : nb::handle(args[0])) add_input(op, item.ptr(), &inputs);
  } else {
    inputs.reserve(static_cast<size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) add_input(op, args[i], &inputs);
  }
  AttrList attrs;
  const Py_ssize_t keyword_count = keywords == nullptr ? 0 : PyTuple_Size(keywords);
  for (Py_ssize_t i = 0; i < keyword_count; ++i) {
    add_attr(op, PyTuple_GetItem(keywords, i), args[count + i], &attrs);
  }
  return give(recorded([&] { return apply_op(op.number, inputs, attrs); }));
}

PyObject* call_op(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  try {
    const auto* op = static_cast<const Op*>(PyCapsule_GetPointer(self, nullptr));
    return call(*op, args, count, keywords).release().ptr();
  } catch (abi::__forced_unwind&) {
    stop_thread();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

std::string python_text(const AttrValue& value) {
  nb::object object;
  if (const auto* flag = std::get_if<bool>(&value)) object = nb::bool_(*flag);
  if (const auto* integer = std::get_if<int64_t>(&value)) object = nb::int_(*integer);
  if (const auto* real = std::get_if<double>(&value)) object = nb::float_(*real);
  if (const auto* text = std::get_if<std::string>(&value)) object = nb::str(text->c_str());
  if (const auto* dtype = std::get_if<DType>(&value)) {
    // kInvalid stands for "as the operands".
    if (*dtype == DType::kInvalid) return "None";
    object = nb::str(std::string(dtype_name(*dtype)).c_str());
  }
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
    object = shape_tuple(Shape::of(*ints));
  }
  if (const auto* shape = std::get_if<Shape>(&value)) object = shape_tuple(*shape);
  return shown_text(nb::repr(object));
}

/// "name(x, y, /, *, axes, keepdims=False)".
std::string signature(const OpSpec& spec) {
  std::string text = spec.name + "(";
  if (spec.max_inputs < 0) {
    text += "*" + (spec.inputs.empty() ? std::string("tensors") : spec.inputs.back());
  } else {
    const auto count = static_cast<size_t>(spec.max_inputs);
    for (size_t i = 0; i < count && i < spec.inputs.size(); ++i) {
      text += spec.inputs[i] + (static_cast<int>(i) >= spec.min_inputs ? "=None, " : ", ");
    }
    if (count > 0) text += "/, ";
    if (!spec.attrs.empty()) text += "*, ";
  }
  if (spec.max_inputs < 0 && !spec.attrs.empty()) text += ", ";
  for (const auto& attr : spec.attrs) {
    if (!attr.fallback) text += attr.name + ", ";
  }
  for (const auto& attr : spec.attrs) {
    if (attr.fallback) text += attr.name + "=" + python_text(*attr.fallback) + ", ";
  }
  if (text.ends_with(", ")) text.resize(text.size() - 2);
  return text + ")";
}

std::string docstring(const OpSpec& spec) {
  std::string doc = signature(spec) + "\n--\n\n" + spec.doc;
  if (!spec.attrs.empty()) doc += "\n\nAttributes, by keyword:";
  for (const auto& attr : spec.attrs) {
    doc += "\n    " + attr.name + ": " + expected_attr(attr.type) + "; " + attr.doc;
  }
  return doc;
}

/// Rows that a caller of Python has better functions for: their attributes are the trace's affair.
bool is_bound(const OpSpec& spec) { return !spec.has_regions && spec.name != "host_call"; }

void add_ops(nb::module_& ops) {
  static std::deque<Op>& bound = *new std::deque<Op>;
  const auto& specs = op_specs();
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!is_bound(specs[i])) continue;
    Op& op = bound.emplace_back();
    op.number = static_cast<int>(i);
    op.spec = &specs[i];
    for (const auto& attr : specs[i].attrs) {
      op.attr_names.push_back(PyUnicode_InternFromString(attr.name.c_str()));
    }
    op.doc = docstring(specs[i]);
    op.method = {specs[i].name.c_str(),
                 reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_op)),
                 METH_FASTCALL | METH_KEYWORDS, op.doc.c_str()};
    nb::object self = nb::steal(PyCapsule_New(&op, nullptr, nullptr));
    nb::object function =
        nb::steal(PyCFunction_NewEx(&op.method, self.ptr(), ops.attr("__name__").ptr()));
    if (!function.is_valid()) throw nb::python_error();
    ops.attr(specs[i].name.c_str()) = function;
  }
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpSpec& spec : op_specs()) {
    if (is_bound(spec)) names.push_back(spec.name);
  }
  return names;
}

std::string unknown_op(const std::string& name) {
  const std::string near = closest(name, op_names());
  return "there is no operation '" + name + "'; expected one of the " +
         std::to_string(op_names().size()) + " that dir(tracefire._core.ops) lists" +
         (near.empty() ? "" : ". Did you mean '" + near + "'?");
}

nb::object missing_op(const std::string& name) {
  if (name.starts_with("__")) throw nb::attribute_error(name.c_str());
  try {
    fail(ErrorCode::kUnknownOp, unknown_op(name));
  } catch (const Error& error) {
    // AttributeError, so that hasattr() and getattr(..., default) answer.
    throw nb::attribute_error(error.what());
  }
}

nb::object apply_by_name(const std::string& name, nb::handle inputs, nb::dict attrs) {
  const auto& specs = op_specs();
  const auto found = std::find_if(specs.begin(), specs.end(),
                                  [&](const OpSpec& spec) { return spec.name == name; });
  if (found == specs.end()) fail(ErrorCode::kUnknownOp, unknown_op(name));
  Op op{static_cast<int>(found - specs.begin()), &*found, {}, {}, {}};
  Tensors operands;
  for (nb::handle input : inputs) add_input(op, input.ptr(), &operands);
  AttrList list;
  for (auto [key, value] : attrs) add_attr(op, key.ptr(), value, &list);
  return wrap_all(recorded([&] { return apply_op(op.number, operands, list); }));
}

nb::list specs_list() {
  nb::list list;
  for (const OpSpec& spec : op_specs()) {
    nb::dict row;
    nb::list attrs;
    for (const auto& attr : spec.attrs) {
      nb::dict item;
      item["name"] = attr.name;
      item["type"] = attr.type;
      item["default"] = attr.fallback ? nb::object(nb::str(python_text(*attr.fallback).c_str()))
                                      : nb::object(nb::none());
      item["doc"] = attr.doc;
      attrs.append(item);
    }
    nb::list inputs, outputs;
    for (const auto& name : spec.inputs) inputs.append(name);
    for (const auto& name : spec.outputs) outputs.append(name);
    row["name"] = spec.name;
    row["tf_name"] = spec.tf_name;
    row["op_class"] = spec.op_class;
    row["min_inputs"] = spec.min_inputs;
    row["max_inputs"] = spec.max_inputs;
    row["inputs"] = inputs;
    row["outputs"] = outputs;
    row["attrs"] = attrs;
    row["doc"] = spec.doc;
    row["has_regions"] = spec.has_regions;
    row["ordered"] = spec.ordered;
    row["bound"] = is_bound(spec);
    list.append(row);
  }
  return list;
}

}  // namespace

void bind_ops(nb::module_& m) {
  nb::module_ ops = m.def_submodule("ops", "Every operation: tensors by position, attributes by "
                                           "keyword.");
  add_ops(ops);
  ops.def("__getattr__", &missing_op);
  m.attr("stop_gradient") = ops.attr("stop_gradient");
  m.def("apply", &apply_by_name, nb::arg("op"), nb::arg("inputs"), nb::arg("attrs") = nb::dict(),
        "Records an operation by name; returns the list of its results.");
  m.def("op_specs", &specs_list, "The rows of the op table as dicts.");
}

}  // namespace tracefire::python
