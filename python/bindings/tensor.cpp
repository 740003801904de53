// SPDX-License-Identifier: Apache-2.0
// Tensor and Variable.
#include "tracefire/tensor.h"

#include <nanobind/stl/optional.h>

#include "python/bindings/arrays.h"
#include "python/bindings/elements.h"
#include "tracefire/config.h"

namespace tracefire::python {
namespace {

std::string dtype_text(DType dtype) { return std::string(dtype_name(dtype)); }

nb::object element_object(const Tensor& tensor, const char* purpose) {
  if (unlocked([&] { return tensor.element_count(); }) != 1) {
    fail(ErrorCode::kShapeMismatch, describe(nb::cast(tensor)) + " was asked " + purpose +
                                        "; expected one element. Index or reduce it first");
  }
  if (tensor.dtype() == DType::kString) {
    const std::string text = unlocked([&] { return tensor.strings()[0]; });
    return nb::bytes(text.data(), text.size());
  }
  char element[16];
  unlocked([&] { tensor.copy_to(element, dtype_size(tensor.dtype())); });
  return to_python(load_element(tensor.dtype(), element));
}

nb::object nested_list(const std::vector<int64_t>& sizes, size_t axis, size_t* next,
                       const std::function<nb::object(size_t)>& element) {
  if (axis == sizes.size()) return element((*next)++);
  nb::list list;
  for (int64_t i = 0; i < sizes[axis]; ++i)
    list.append(nested_list(sizes, axis + 1, next, element));
  return list;
}

nb::object tensor_list(const Tensor& tensor) {
  size_t next = 0;
  if (tensor.dtype() == DType::kString) {
    const auto strings = unlocked([&] { return tensor.strings(); });
    return nested_list(tensor.sizes(), 0, &next, [&](size_t i) -> nb::object {
      return nb::bytes(strings[i].data(), strings[i].size());
    });
  }
  const HostValue view = fetch_value(tensor);
  const size_t size = dtype_size(view.dtype);
  const auto* data = static_cast<const char*>(view.data);
  return nested_list(view.sizes, 0, &next, [&](size_t i) {
    return to_python(load_element(view.dtype, data + i * size));
  });
}

/// The value for people: all of a small one, the beginning of a large one, "traced" of none.
std::string value_text(const Tensor& tensor) {
  constexpr size_t kShown = 1000;
  try {
    if (unlocked([&] { return tensor.element_count(); }) > kShown) return "...";
    return str_of(tensor_list(tensor));
  } catch (const Error& error) {
    if (error.number() == static_cast<uint16_t>(ErrorCode::kValueInTrace)) return "traced";
    return "failed: " + std::string(error.what());
  }
}

std::string tensor_repr(const Tensor& tensor) {
  std::string text =
      "<Tensor: shape=" + tensor.shape().str() + ", dtype=" + dtype_text(tensor.dtype());
  if (tensor.device().is_set()) text += ", device=" + tensor.device().str();
  const std::string value = value_text(tensor);
  return text + (value == "traced" ? ", traced>" : ", value=" + value + ">");
}

size_t tensor_length(const Tensor& tensor) {
  if (tensor.rank() == 0) throw nb::type_error("len() of a tensor of shape ()");
  const Dim first = tensor.shape()[0];
  return static_cast<size_t>(first.is_constant() ? first.value()
                                                 : unlocked([&] { return tensor.sizes()[0]; }));
}

nb::object tensor_index(const Tensor& tensor) {
  if (!is_integer(tensor.dtype()) && tensor.dtype() != DType::kBool) {
    fail(ErrorCode::kDTypeMismatch, describe(nb::cast(tensor)) +
                                        " was used as an index; expected an integer tensor. Cast "
                                        "it to int32");
  }
  return element_object(tensor, "as an index");
}

nb::tuple dims_tuple(const Shape& shape) {
  nb::list dims;
  for (Dim dim : shape) {
    if (dim.is_constant()) {
      dims.append(dim.value());
    } else {
      dims.append(nb::cast(dim));
    }
  }
  return nb::tuple(dims);
}

/// For pickle: bytes (a list of them for strings), dtype and sizes.
nb::tuple tensor_state(const Tensor& tensor) {
  const std::vector<int64_t> sizes = unlocked([&] { return tensor.sizes(); });
  nb::tuple shape = shape_tuple(Shape::of(sizes));
  if (tensor.dtype() == DType::kString) {
    nb::list strings;
    for (const std::string& text : unlocked([&] { return tensor.strings(); })) {
      strings.append(nb::bytes(text.data(), text.size()));
    }
    return nb::make_tuple(strings, "string", shape);
  }
  const HostValue view = fetch_value(tensor);
  return nb::make_tuple(nb::bytes(static_cast<const char*>(view.data), view.bytes),
                        dtype_text(view.dtype), shape);
}

Tensor tensor_from_state(const nb::tuple& state) {
  const DType dtype = dtype_of(nb::object(state[1]));
  const std::vector<int64_t> sizes = shape_of(nb::object(state[2])).sizes();
  nb::object data = state[0];
  if (dtype == DType::kString) {
    return Tensor::from_strings(std::move(read_elements(data, dtype).strings), sizes);
  }
  const auto bytes = nb::cast<nb::bytes>(data);
  const Shape shape = Shape::of(sizes);
  if (bytes.size() != static_cast<size_t>(shape.elements().value()) * dtype_size(dtype)) {
    fail(ErrorCode::kBadFile, "a pickled tensor holds " + std::to_string(bytes.size()) +
                                  " bytes; expected those of " + dtype_text(dtype) + " " +
                                  shape.str() + ". The file is damaged");
  }
  return unlocked([&] { return Tensor::from_host(bytes.c_str(), dtype, sizes); });
}

void bind_tensor_class(nb::module_& m) {
  constructed(nb::class_<Tensor>(
                  m, "Tensor", nb::dynamic_attr(), nb::is_weak_referenceable(),
                  "A lazy, immutable array. Work happens when a value is looked at, or earlier."),
              "Tensor", "Call tracefire.tensor(value)")
      .def_prop_ro(
          "shape", [](const Tensor& t) { return shape_tuple(t.shape()); },
          "Sizes as integers, None where a size is symbolic.")
      .def_prop_ro(
          "dims", [](const Tensor& t) { return dims_tuple(t.shape()); },
          "Sizes as integers and Dims.")
      .def_prop_ro("dtype", [](const Tensor& t) { return dtype_text(t.dtype()); })
      .def_prop_ro(
          "device", [](const Tensor& t) { return t.device().str(); },
          "Such as '/GPU:0'; known without waiting for the value.")
      .def_prop_ro("ndim", [](const Tensor& t) { return t.rank(); })
      .def_prop_ro(
          "size", [](const Tensor& t) { return unlocked([&] { return t.element_count(); }); },
          "Number of elements.")
      .def(
          "to",
          [](const Tensor& t, nb::handle device) {
            const Device target = device_of(device);
            return recorded([&] { return t.to(target); });
          },
          nb::arg("device"), "The same value on another device.")
      .def(
          "wait", [](const Tensor& t) { unlocked([&] { t.wait(); }); },
          "Waits for the value and raises what went wrong in computing it.")
      .def(
          "item", [](const Tensor& t) { return element_object(t, "for its item"); },
          "The only element as a Python number.")
      .def("tolist", &tensor_list, "The elements as nested lists of Python numbers.")
      .def("__bool__",
           [](const Tensor& t) {
             return PyObject_IsTrue(element_object(t, "for its truth").ptr()) == 1;
           })
      .def("__int__", [](const Tensor& t) { return nb::int_(element_object(t, "as an int")); })
      .def("__float__", [](const Tensor& t) { return nb::float_(element_object(t, "as a float")); })
      .def("__complex__",
           [](const Tensor& t) {
             nb::object type = nb::borrow(reinterpret_cast<PyObject*>(&PyComplex_Type));
             return type(element_object(t, "as a complex number"));
           })
      .def("__index__", &tensor_index)
      .def("__len__", &tensor_length)
      .def("__repr__", &tensor_repr)
      .def("__getstate__", &tensor_state)
      .def(
          "__setstate__",
          [](Tensor* self, const nb::tuple& state) { new (self) Tensor(tensor_from_state(state)); })
      .def("__copy__", [](nb::handle self) { return nb::borrow(self); })
      .def("__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); });
  m.def(
      "tensor",
      [](nb::handle value, nb::handle dtype, nb::handle device) -> nb::object {
        const auto wanted = optional_dtype(dtype);
        const Device target = device_of(device);
        if (is_tensor(value) && !target.is_set() &&
            (!wanted || nb::inst_ptr<Tensor>(value)->dtype() == *wanted)) {
          return nb::borrow(value);
        }
        return wrap(make_tensor(value, wanted, target));
      },
      nb::arg("value").none(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      "A tensor of an array, a number, a string or nested lists of them.\n\n"
      "Arrays keep their dtype; Python integers become int32 (int64 where they must), floats\n"
      "float32. Host data is copied. Inside a function being traced up to 64 bytes become a\n"
      "constant of it; larger arrays become inputs that it keeps.");
}

/// Host data in the variable's dtype; fractions are not cut off without being asked for.
Tensor value_for(const Variable& variable, nb::handle value) {
  if (is_integer(variable.dtype())) {
    const DType given = make_tensor(value, std::nullopt, {}, false).dtype();
    if (is_floating(given) || is_complex(given)) {
      fail(ErrorCode::kDTypeMismatch, describe(value) + " holds " + dtype_text(given) +
                                          " and was assigned to a variable of " +
                                          dtype_text(variable.dtype()) +
                                          "; expected whole numbers. Round them first, or cast");
    }
  }
  return make_tensor(value, variable.dtype());
}

void bind_variable_class(nb::module_& m) {
  nb::class_<Variable>(m, "Variable", nb::dynamic_attr(), nb::is_weak_referenceable(),
                       "Storage that can be assigned to, also inside traced functions.")
      .def(
          "__init__",
          [](Variable* self, nb::handle initial, std::optional<std::string> name, bool trainable,
             nb::handle dtype, nb::handle device) {
            Tensor value = make_tensor(initial, optional_dtype(dtype), device_of(device), false);
            new (self) Variable(value, name.value_or(""), trainable);
          },
          nb::arg("initial").none(), nb::arg("name").none() = "", nb::arg("trainable") = true,
          nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none())
      .def(
          "read", [](const Variable& v) { return v.read(); },
          "The value at this point of the program.")
      .def(
          "assign",
          [](nb::handle self, nb::handle value) {
            const Variable& v = *nb::inst_ptr<Variable>(self);
            v.assign(is_tensor(value) ? *nb::inst_ptr<Tensor>(value) : value_for(v, value));
            return nb::borrow(self);
          },
          nb::arg("value").none(),
          "Numbers and arrays take the variable's dtype; tensors must have it. Returns the "
          "variable.")
      .def("numpy", [](const Variable& v) { return nb::cast(v.read()).attr("numpy")(); })
      .def(
          "__array__",
          [](const Variable& v, nb::handle dtype, nb::handle copy) {
            return nb::cast(v.read()).attr("__array__")(dtype, copy);
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def_prop_ro("name", &Variable::name)
      .def_prop_ro("trainable", &Variable::trainable)
      .def_prop_ro("shape", [](const Variable& v) { return shape_tuple(v.shape()); })
      .def_prop_ro("dtype", [](const Variable& v) { return dtype_text(v.dtype()); })
      .def_prop_ro("ndim", [](const Variable& v) { return v.shape().rank(); })
      .def_prop_ro("size",
                   [](const Variable& v) {
                     const Tensor value = v.read();
                     return unlocked([&] { return value.element_count(); });
                   })
      .def_prop_ro("device", [](const Variable& v) { return v.device().str(); })
      .def("__hash__", [](const Variable& v) { return std::hash<const void*>()(v.slot().get()); })
      .def("__repr__", [](const Variable& v) {
        return "<Variable '" + v.name() + "': shape=" + v.shape().str() +
               ", dtype=" + dtype_text(v.dtype()) + ", device=" + v.device().str() + ">";
      });
}

}  // namespace

void bind_tensor(nb::module_& m) {
  bind_tensor_class(m);
  bind_variable_class(m);
}

}  // namespace tracefire::python
