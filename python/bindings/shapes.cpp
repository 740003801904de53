// SPDX-License-Identifier: Apache-2.0
// Dtypes, devices, sizes and names as Python writes them.
#include <nanobind/stl/optional.h>

#include <algorithm>

#include "python/bindings/common.h"

namespace tracefire::python {
namespace {

bool is_python(nb::handle value, PyTypeObject& type) {
  return value.ptr() == reinterpret_cast<PyObject*>(&type);
}

std::optional<std::string> dtype_text(nb::handle value) {
  if (nb::isinstance<nb::str>(value)) return text_of(value);
  if (is_python(value, PyBool_Type)) return "bool";
  if (is_python(value, PyLong_Type)) return "int32";
  if (is_python(value, PyFloat_Type)) return "float32";
  if (is_python(value, PyComplex_Type)) return "complex64";
  if (is_python(value, PyUnicode_Type)) return "string";
  // np.dtype has name; np.float32, ml_dtypes.bfloat16 and other scalar types have __name__.
  for (const char* attribute : {"name", "__name__"}) {
    if (!nb::hasattr(value, attribute)) continue;
    nb::object name = value.attr(attribute);
    if (nb::isinstance<nb::str>(name)) return text_of(name);
  }
  return std::nullopt;
}

/// NumPy's spellings of what we name otherwise.
std::optional<DType> find_dtype(const std::string& name) {
  if (auto dtype = dtype_from_name(name)) return dtype;
  if (name == "bool_") return DType::kBool;
  if (name == "str" || name == "str_" || name == "bytes_") return DType::kString;
  return std::nullopt;
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (int i = 1; i < static_cast<int>(DType::kToken); ++i) {
    names.emplace_back(dtype_name(static_cast<DType>(i)));
  }
  return names;
}

Dim dim_of(nb::handle value, bool symbols) {
  if (nb::isinstance<Dim>(value)) return nb::cast<Dim>(value);
  if (value.is_none() && symbols) return Dim::fresh("N");
  if (PyIndex_Check(value.ptr()) && !nb::isinstance<nb::bool_>(value)) {
    nb::object index = nb::steal(PyNumber_Index(value.ptr()));
    int overflow = 0;
    const long long number =
        index.is_valid() ? PyLong_AsLongLongAndOverflow(index.ptr(), &overflow) : -1;
    if (PyErr_Occurred()) throw nb::python_error();
    if (overflow == 0) return Dim(number);
  }
  fail(ErrorCode::kBadAttribute,
       "a size of a shape is " + describe(value) + "; expected an integer" +
           (symbols ? ", a Dim, or None for a size that is known later"
                    : " or a Dim. Use tensor.dims where a size is symbolic"));
}

size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

void bind_dim(nb::module_& m) {
  const auto other = [](nb::handle value) { return dim_of(value, false); };
  nb::class_<Dim>(m, "Dim", "A size that is a number or a symbol, such as a batch size.")
      .def(
          "__init__",
          [](Dim* self, const std::string& name, std::optional<int64_t> bound) {
            new (self) Dim(Dim::fresh(name, bound.value_or(Dim::kUnbounded)));
          },
          nb::arg("name"), nb::arg("bound") = nb::none(),
          "A new symbol, different from every other; `bound` is the largest size it can have.")
      .def_prop_ro("value",
                   [](Dim self) -> nb::object {
                     return self.is_constant() ? nb::object(nb::int_(self.value()))
                                               : nb::object(nb::none());
                   })
      .def("__add__", [=](Dim a, nb::handle b) { return a + other(b); })
      .def("__radd__", [=](Dim a, nb::handle b) { return other(b) + a; })
      .def("__sub__", [=](Dim a, nb::handle b) { return a - other(b); })
      .def("__rsub__", [=](Dim a, nb::handle b) { return other(b) - a; })
      .def("__mul__", [=](Dim a, nb::handle b) { return a * other(b); })
      .def("__rmul__", [=](Dim a, nb::handle b) { return other(b) * a; })
      .def("__floordiv__", [=](Dim a, nb::handle b) { return floor_div(a, other(b)); })
      .def("__eq__",
           [=](Dim a, nb::handle b) {
             return (nb::isinstance<Dim>(b) || nb::isinstance<nb::int_>(b)) && a == other(b);
           })
      .def("__hash__",
           [](Dim self) {
             return self.is_symbol() ? -2 - static_cast<int64_t>(self.symbol()) : self.value();
           })
      .def("__str__", [](Dim self) { return self.str(); })
      .def("__repr__", [](Dim self) { return "Dim(" + self.str() + ")"; });
}

}  // namespace

std::string describe(nb::handle value) {
  if (value.is_none()) return "None";
  if (is_tensor(value)) {
    const auto& tensor = *nb::inst_ptr<Tensor>(value);
    return "Tensor " + std::string(dtype_name(tensor.dtype())) + " " + tensor.shape().str();
  }
  const std::string type = str_of(value.type().attr("__name__"));
  if (PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr()) || PyUnicode_Check(value.ptr())) {
    std::string text = shown_text(nb::repr(value));
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    return type + " " + text;
  }
  const bool vowel = std::string_view("aeiouAEIOU").find(type[0]) != std::string_view::npos;
  return (vowel ? "an " : "a ") + type;
}

std::string closest(const std::string& name, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t d = distance(name, candidate);
    if (d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

DType dtype_of(nb::handle value) {
  const auto text = dtype_text(value);
  if (text) {
    if (auto dtype = find_dtype(*text); dtype && *dtype != DType::kToken) return *dtype;
  }
  std::string all;
  for (const std::string& name : dtype_names()) all += (all.empty() ? "" : ", ") + name;
  const std::string near = text ? closest(*text, dtype_names()) : "";
  fail(ErrorCode::kBadAttribute, "no element type is " + describe(value) + "; expected one of " +
                                     all + (near.empty() ? "" : ". Did you mean '" + near + "'?"));
}

std::optional<DType> optional_dtype(nb::handle value) {
  if (value.is_none()) return std::nullopt;
  return dtype_of(value);
}

Device device_of(nb::handle value) {
  if (value.is_none()) return {};
  if (!nb::isinstance<nb::str>(value)) {
    fail(ErrorCode::kUnknownDevice, "a device is " + describe(value) +
                                        "; expected a name such as '/GPU:0' or '/CPU:0'");
  }
  return parse_device(text_of(value));
}

Shape shape_of(nb::handle value, bool symbols) {
  if (nb::isinstance<nb::str>(value) || !PySequence_Check(value.ptr())) {
    if (PyIndex_Check(value.ptr()) || nb::isinstance<Dim>(value)) {
      return Shape({dim_of(value, symbols)});
    }
    fail(ErrorCode::kBadAttribute, "a shape is " + describe(value) +
                                       "; expected a sequence of integers such as (128, 10)");
  }
  Shape shape;
  for (nb::handle size : nb::borrow<nb::sequence>(value)) shape.push_back(dim_of(size, symbols));
  return shape;
}

nb::tuple shape_tuple(const Shape& shape) {
  nb::list sizes;
  for (Dim dim : shape) {
    if (dim.is_constant()) {
      sizes.append(dim.value());
    } else {
      sizes.append(nb::none());
    }
  }
  return nb::tuple(sizes);
}

void bind_shapes(nb::module_& m) { bind_dim(m); }

}  // namespace tracefire::python
