// SPDX-License-Identifier: Apache-2.0
// From tensors to NumPy: zero-copy where the host reaches the tensor's memory.
#include "python/bindings/arrays.h"

namespace tracefire::python {
namespace {

/// Memory that Python objects look into through the buffer protocol.
struct HostBuffer {
  HostValue value;
  bool writable = false;
};

int get_buffer(PyObject* self, Py_buffer* buffer, int flags) {
  static char nothing = 0;
  const HostBuffer& memory = *nb::inst_ptr<HostBuffer>(nb::handle(self));
  void* data = memory.value.bytes == 0 ? &nothing : const_cast<void*>(memory.value.data);
  return PyBuffer_FillInfo(buffer, self, data, static_cast<Py_ssize_t>(memory.value.bytes),
                           memory.writable ? 0 : 1, flags);
}

nb::object tuple_of(const std::vector<int64_t>& sizes) {
  return shape_tuple(Shape::of(sizes));
}

nb::object tensor_numpy(const Tensor& tensor) {
  if (tensor.dtype() == DType::kString) {
    std::vector<std::string> strings;
    std::vector<int64_t> sizes;
    unlocked([&] {
      strings = tensor.strings();
      sizes = tensor.sizes();
    });
    return numpy_strings(strings, sizes);
  }
  return numpy_array(fetch_value(tensor), false);
}

/// Arrays of all tensors, read with one wait a device.
nb::list fetch_arrays(nb::handle values) {
  const Tensors tensors = tensors_of(values, "fetch");
  Tensors numbers;
  for (const Tensor& tensor : tensors) {
    if (tensor.dtype() != DType::kString) numbers.push_back(tensor);
  }
  std::vector<HostValue> read = fetch_values(numbers);
  nb::list arrays;
  size_t next = 0;
  for (const Tensor& tensor : tensors) {
    arrays.append(tensor.dtype() == DType::kString ? tensor_numpy(tensor)
                                                   : numpy_array(std::move(read[next++]), false));
  }
  return arrays;
}

nb::object tensor_array(const Tensor& tensor, nb::handle dtype, nb::handle copy) {
  const bool forbidden = !copy.is_none() && !nb::cast<bool>(copy);
  const bool wanted = !copy.is_none() && nb::cast<bool>(copy);
  nb::object array;
  bool copied = true;
  if (tensor.dtype() == DType::kString) {
    array = tensor_numpy(tensor);
  } else {
    HostValue value = fetch_value(tensor);
    copied = value.copied;
    array = numpy_array(std::move(value), false);
  }
  const bool converts = !dtype.is_none() && !array.attr("dtype").equal(dtype);
  if (forbidden && (copied || converts)) {
    fail(ErrorCode::kBadAttribute,
         describe(nb::cast(tensor)) + " on " + tensor.device().str() +
             " was asked for an array without a copy, which is impossible here; expected its own "
             "dtype and memory the host reaches. Use copy=None");
  }
  if (converts) return array.attr("astype")(dtype);
  return wanted ? array.attr("copy")() : array;
}

}  // namespace

std::vector<HostValue> fetch_values(const Tensors& tensors) {
  return unlocked([&] { return fetch(tensors); });
}

nb::object numpy_dtype(DType dtype) {
  const char* scalar = nullptr;
  switch (dtype) {
    case DType::kBF16: scalar = "bfloat16"; break;
    case DType::kF8E4M3: scalar = "float8_e4m3fn"; break;
    case DType::kF8E5M2: scalar = "float8_e5m2"; break;
    case DType::kI4: scalar = "int4"; break;
    case DType::kU4: scalar = "uint4"; break;
    default: break;
  }
  nb::object numpy = nb::module_::import_("numpy");
  if (scalar == nullptr) return numpy.attr("dtype")(std::string(dtype_name(dtype)));
  nb::object types;
  try {
    types = nb::module_::import_("ml_dtypes");
  } catch (nb::python_error&) {
    fail(ErrorCode::kDTypeMismatch,
         "a " + std::string(dtype_name(dtype)) +
             " tensor was asked as a NumPy array, which NumPy alone has no type for; expected the "
             "package ml_dtypes. Install it with pip, or cast the tensor to float32");
  }
  return numpy.attr("dtype")(types.attr(scalar));
}

nb::object numpy_array(HostValue value, bool writable) {
  nb::object dtype = numpy_dtype(value.dtype);
  nb::object shape = tuple_of(value.sizes);
  nb::object buffer = nb::cast(HostBuffer{std::move(value), writable});
  using namespace nb::literals;
  return nb::module_::import_("numpy").attr("ndarray")(shape, "dtype"_a = dtype,
                                                       "buffer"_a = buffer);
}

nb::object numpy_strings(const std::vector<std::string>& strings,
                         const std::vector<int64_t>& sizes) {
  nb::object numpy = nb::module_::import_("numpy");
  using namespace nb::literals;
  nb::object array = numpy.attr("empty")(nb::make_tuple(strings.size()), "dtype"_a = "O");
  for (size_t i = 0; i < strings.size(); ++i) {
    array[i] = nb::bytes(strings[i].data(), strings[i].size());
  }
  return array.attr("reshape")(tuple_of(sizes));
}

void bind_views(nb::module_& m) {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                                {0, nullptr}};
  nb::class_<HostBuffer>(m, "_HostBuffer", nb::type_slots(slots),
                         "Memory of a tensor, for arrays that look into it.");
  // Methods of Tensor, which bind_tensor() has made.
  auto tensor = nb::borrow<nb::class_<Tensor>>(m.attr("Tensor"));
  tensor
      .def("numpy", &tensor_numpy,
           "The value as a read-only NumPy array: the tensor's own memory on the CPU, a copy of it "
           "from a GPU. Strings become an array of bytes objects.")
      .def("__array__", &tensor_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def(
          "__dlpack__",
          [](const Tensor& self, nb::handle, nb::handle max_version, nb::handle dl_device,
             nb::handle copy) { return to_dlpack(self, max_version, dl_device, copy); },
          nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
          nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
      .def(
          "__dlpack_device__", [](const Tensor&) { return nb::make_tuple(1, 0); },
          "(1, 0): DLPack gives host memory, a copy where the tensor lives on a GPU.");
  m.def(
      "fetch", &fetch_arrays, nb::arg("tensors"),
      "The values of a list of tensors as read-only NumPy arrays: all fire together, and a GPU is\n"
      "waited for once instead of once for each tensor.");
  // NumPy arrays leave operators with a tensor on the right to the tensor.
  tensor.attr("__array_priority__") = 100.0;
}

}  // namespace tracefire::python
