// SPDX-License-Identifier: Apache-2.0
// From Python objects to tensors. NumPy is never imported here; its arrays speak protocols.
#include "python/bindings/arrays.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "tracefire/config.h"
#include "python/bindings/elements.h"

namespace tracefire::python {
namespace {

constexpr size_t kMaxConstantBytes = 64;
constexpr size_t kMaxDepth = 64;  // as NumPy's
/// More Python objects than this are no list of numbers but one that holds itself again and again.
constexpr size_t kMaxItems = size_t{1} << 31;

std::vector<int64_t> sizes_of(nb::handle tuple) {
  std::vector<int64_t> sizes;
  for (nb::handle size : tuple) sizes.push_back(nb::cast<int64_t>(size));
  return sizes;
}

bool is_dense(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
              int64_t element) {
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1 && strides[i] != element) return false;
    element *= sizes[i];
  }
  return true;
}

void swap_bytes(std::vector<char>* bytes, size_t element) {
  for (size_t at = 0; at + element <= bytes->size(); at += element) {
    std::reverse(bytes->begin() + at, bytes->begin() + at + element);
  }
}

/// Element type of a struct-module code ("f", "<i4"'s kind) and an element size.
DType dtype_of_kind(char kind, size_t size) {
  static constexpr DType kSigned[] = {DType::kI8, DType::kI16, DType::kI32, DType::kI64};
  static constexpr DType kUnsigned[] = {DType::kU8, DType::kU16, DType::kU32, DType::kU64};
  const int power = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : -1;
  switch (kind) {
    case 'b': return size == 1 ? DType::kBool : DType::kInvalid;
    case 'i': return power < 0 ? DType::kInvalid : kSigned[power];
    case 'u': return power < 0 ? DType::kInvalid : kUnsigned[power];
    case 'f':
      return size == 2   ? DType::kF16
             : size == 4 ? DType::kF32
             : size == 8 ? DType::kF64
                         : DType::kInvalid;
    case 'c': return size == 8 ? DType::kC64 : size == 16 ? DType::kC128 : DType::kInvalid;
    default: return DType::kInvalid;
  }
}

/// Fills `out` from strided memory that `keeper` keeps.
void take_memory(const char* from, const std::vector<int64_t>& strides, bool swapped,
                 std::shared_ptr<void> keeper, HostElements* out) {
  const size_t element = dtype_size(out->dtype);
  if (!swapped && is_dense(out->sizes, strides, static_cast<int64_t>(element))) {
    out->data = from;
    out->borrowed = std::move(keeper);
    return;
  }
  out->owned = gather_elements(from, element, out->sizes, strides);
  if (swapped) swap_bytes(&out->owned, is_complex(out->dtype) ? element / 2 : element);
  out->data = out->owned.data();
}

/// The buffer protocol. False where the object has none or its format is not of numbers.
bool read_buffer(nb::handle value, HostElements* out) {
  if (!PyObject_CheckBuffer(value.ptr())) return false;
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(value.ptr(), view.get(), PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();  // types of ml_dtypes have no buffer format; their arrays have an interface
    return false;
  }
  std::shared_ptr<void> keeper(view.get(), [](void* buffer) {
    PyBuffer_Release(static_cast<Py_buffer*>(buffer));
    delete static_cast<Py_buffer*>(buffer);
  });
  const Py_buffer& buffer = *view.release();
  std::string_view format = buffer.format == nullptr ? "B" : buffer.format;
  char order = '=';
  if (!format.empty() && std::string_view("@=<>!").find(format[0]) != std::string_view::npos) {
    order = format[0];
    format.remove_prefix(1);
  }
  char kind = 0;
  if (format == "Zf" || format == "Zd") {
    kind = 'c';
  } else if (format.size() == 1) {
    constexpr std::string_view kIntegers = "bhilqn", kNaturals = "BHILQN", kReals = "efd";
    if (format == "?") kind = 'b';
    if (kIntegers.find(format[0]) != std::string_view::npos) kind = 'i';
    if (kNaturals.find(format[0]) != std::string_view::npos) kind = 'u';
    if (kReals.find(format[0]) != std::string_view::npos) kind = 'f';
  }
  out->dtype = dtype_of_kind(kind, static_cast<size_t>(buffer.itemsize));
  if (out->dtype == DType::kInvalid) return false;
  out->sizes.assign(buffer.shape, buffer.shape + buffer.ndim);
  const std::vector<int64_t> strides(buffer.strides, buffer.strides + buffer.ndim);
  take_memory(static_cast<const char*>(buffer.buf), strides, order == '>' || order == '!',
              std::move(keeper), out);
  return true;
}

/// NumPy's array interface, for element types that the buffer protocol cannot name.
bool read_array_interface(nb::handle value, HostElements* out) {
  if (!nb::hasattr(value, "__array_interface__")) return false;
  nb::dict interface = nb::cast<nb::dict>(value.attr("__array_interface__"));
  const auto type = str_of(interface["typestr"]);
  if (type.size() < 3 || type.find_first_not_of("0123456789", 2) != std::string::npos) return false;
  const size_t element = type.size() > 8 ? 0 : std::stoul(type.substr(2));
  out->dtype = dtype_of_kind(type[1], element);
  if (out->dtype == DType::kInvalid && nb::hasattr(value, "dtype")) {
    const auto name = dtype_from_name(str_of(value.attr("dtype")));
    if (name && *name != DType::kString && dtype_size(*name) == element) out->dtype = *name;
  }
  if (out->dtype == DType::kInvalid) return false;
  out->sizes = sizes_of(interface["shape"]);
  std::vector<int64_t> strides;
  nb::object given = interface.attr("get")("strides");
  if (given.is_none()) {
    strides.resize(out->sizes.size());
    int64_t stride = static_cast<int64_t>(element);
    for (size_t i = strides.size(); i-- > 0; stride *= out->sizes[i]) strides[i] = stride;
  } else {
    strides = sizes_of(given);
  }
  const auto address = nb::cast<uintptr_t>(nb::object(interface["data"])[0]);
  // The dict keeps what it describes where that is a temporary.
  auto keeper = std::make_shared<std::pair<nb::object, nb::object>>(nb::borrow(value), interface);
  take_memory(reinterpret_cast<const char*>(address), strides, type[0] == '>', std::move(keeper),
              out);
  return true;
}

bool is_text(nb::handle value) {
  return PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr());
}

bool is_list(nb::handle value) { return PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()); }

[[noreturn]] void too_deep() {
  fail(ErrorCode::kShapeMismatch,
       "a list holds lists more than " + std::to_string(kMaxDepth) +
           " deep, or holds itself; expected at most that many axes. Flatten the list first");
}

// As stored, whatever a subclass says; the macros for this are not in Python's stable ABI.
Py_ssize_t stored_size(nb::handle list) {
  return PyList_Check(list.ptr()) ? PyList_Size(list.ptr()) : PyTuple_Size(list.ptr());
}
nb::object stored_item(nb::handle list, Py_ssize_t i) {
  return nb::borrow(PyList_Check(list.ptr()) ? PyList_GetItem(list.ptr(), i)
                                             : PyTuple_GetItem(list.ptr(), i));
}

/// Calls fn for each item of a list or tuple as it is stored, whatever a subclass says of its
/// length. Code of the items may run meanwhile, and change the list.
template <class Fn>
void for_items(nb::handle list, Fn fn) {
  const nb::object kept = nb::borrow(list);
  const Py_ssize_t size = stored_size(kept);
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (stored_size(kept) != size) {
      fail(ErrorCode::kBadUsage,
           "a list changed its length while a tensor was made of it; expected one that stays as "
           "it is. Copy the list first");
    }
    fn(stored_item(kept, i));
  }
}

/// Walks nested lists and tuples, which must be rectangular.
class Nested {
 public:
  explicit Nested(nb::handle value) { walk(value, 0); }

  std::vector<int64_t> sizes;
  std::vector<nb::object> leaves;
  bool has_arrays = false;  ///< some leaf is neither number nor text
  bool has_tensors = false;

 private:
  void walk(nb::handle value, size_t depth) {
    if (!is_list(value)) {
      if (depth != sizes.size()) ragged(value, depth);
      leaf_depth_ = depth;
      if (is_tensor(value) || nb::isinstance<Variable>(value)) {
        has_tensors = true;
      } else if (!is_text(value) && nb::hasattr(value, "dtype")) {
        has_arrays = true;
      }
      leaves.push_back(nb::borrow(value));
      return;
    }
    const auto size = static_cast<int64_t>(stored_size(value));
    if (depth == sizes.size()) {
      if (leaf_depth_) ragged(value, depth);
      if (depth >= kMaxDepth) too_deep();
      sizes.push_back(size);
      count_ *= static_cast<size_t>(std::max<int64_t>(size, 1));
      if (count_ > kMaxItems) too_many();
    } else if (sizes[depth] != size) {
      fail(ErrorCode::kShapeMismatch,
           "a nested list has " + std::to_string(size) + " items where another at the same depth "
           "has " + std::to_string(sizes[depth]) +
           "; expected lists of equal lengths. Pad the shorter ones");
    }
    for_items(value, [&](nb::handle item) { walk(item, depth + 1); });
  }

  [[noreturn]] static void too_many() {
    fail(ErrorCode::kShapeMismatch,
         "nested lists hold more than 2**31 numbers; expected fewer. Put them into an array");
  }

  [[noreturn]] void ragged(nb::handle value, size_t depth) {
    fail(ErrorCode::kShapeMismatch, "a nested list holds " + describe(value) + " at depth " +
                                        std::to_string(depth) +
                                        " where others differ; expected equal depth everywhere. "
                                        "Make the list rectangular");
  }

  std::optional<size_t> leaf_depth_;
  size_t count_ = 1;  ///< of what is to be walked, lists without items counted as one
};

DType natural_dtype(const std::vector<Number>& numbers) {
  bool negative = false, wide = false, very_wide = false;
  Number::Kind kind = Number::kBool;
  for (const Number& n : numbers) {
    kind = std::max(kind, n.kind);
    negative = negative || (n.kind == Number::kSigned && n.i < 0);
    wide = wide || (n.kind == Number::kSigned && (n.i > INT32_MAX || n.i < INT32_MIN));
    very_wide = very_wide || n.kind == Number::kUnsigned;
  }
  switch (kind) {
    case Number::kBool: return DType::kBool;
    case Number::kReal: return DType::kF32;
    case Number::kComplex: return DType::kC64;
    default: break;
  }
  if (very_wide && negative) {
    fail(ErrorCode::kBadAttribute,
         "the integers given need more than 64 bits together; expected all of them between -2**63 "
         "and 2**63 - 1, or between 0 and 2**64 - 1. Use floats");
  }
  return very_wide ? DType::kU64 : wide ? DType::kI64 : DType::kI32;
}

/// NumPy warns likewise where a conversion overflows.
void warn_of_overflow(const Number& number, DType dtype, const ElementPlace& place) {
  const std::string text = "[TF-E0103] " + place.text() + str_of(to_python(number)) +
                           " overflows " + std::string(dtype_name(dtype)) +
                           ", and became infinite or NaN. Expected: a number that the type can "
                           "hold. Pass a wider dtype, such as dtype='float64'.";
  if (PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1) != 0) throw nb::python_error();
}

HostElements read_leaves(std::vector<int64_t> sizes, const std::vector<nb::object>& leaves,
                         std::optional<DType> dtype) {
  HostElements out;
  out.sizes = std::move(sizes);
  out.from_numbers = true;
  const bool texts = !leaves.empty() && is_text(leaves[0]);
  if (texts || dtype == DType::kString) {
    out.dtype = DType::kString;
    for (size_t i = 0; i < leaves.size(); ++i) {
      const nb::object& leaf = leaves[i];
      const ElementPlace place{out.sizes, i};
      if (!is_text(leaf)) {
        fail(ErrorCode::kDTypeMismatch, place.text() + "a string tensor was given " +
                                            describe(leaf) +
                                            "; expected str or bytes. Convert it with str()");
      }
      out.strings.push_back(text_of(leaf, place));
    }
    return out;
  }
  std::vector<Number> numbers;
  numbers.reserve(leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    const nb::object& leaf = leaves[i];
    const ElementPlace place{out.sizes, i};
    const auto number = number_of(leaf, &place);
    if (!number) {
      fail(ErrorCode::kDTypeMismatch, place.text() + "a tensor cannot be made of " + describe(leaf) +
                                          "; expected numbers, strings, arrays or nested lists of "
                                          "them");
    }
    numbers.push_back(*number);
  }
  out.dtype = dtype ? *dtype : numbers.empty() ? DType::kF32 : natural_dtype(numbers);
  const size_t size = dtype_size(out.dtype);
  out.owned.resize(numbers.size() * size);
  bool fits = true;  // said of the first that does not
  for (size_t i = 0; i < numbers.size(); ++i) {
    const ElementPlace place{out.sizes, i};
    const bool stored = store_element(out.dtype, numbers[i], out.owned.data() + i * size, place);
    if (!stored && fits) warn_of_overflow(numbers[i], out.dtype, place);
    fits &= stored;
  }
  out.data = out.owned.data();
  return out;
}

bool is_exact_scalar(nb::handle value) {
  const PyTypeObject* type = Py_TYPE(value.ptr());
  return type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type ||
         type == &PyComplex_Type || type == &PyUnicode_Type || type == &PyBytes_Type;
}

/// Throws where NumPy's elements are numbers or records that no dtype here has: by way of Python's
/// objects they would lose digits or names.
void refuse_foreign_elements(nb::handle array) {
  if (!nb::hasattr(array, "__array_interface__")) return;
  nb::object dtype = array.attr("dtype");
  const std::string kind = str_of(dtype.attr("kind"));
  if (kind.empty() || std::string_view("biufcV").find(kind) == std::string_view::npos) return;
  const bool record = nb::hasattr(dtype, "names") && !dtype.attr("names").is_none();
  fail(ErrorCode::kDTypeMismatch,
       "an array holds " + str_of(dtype).substr(0, 100) +
           " elements, which no tensor has; expected numbers of up to 64 bits, booleans or strings. " +
           (record ? "Take its fields one by one" : "Convert it first, as with .astype('float64')"));
}

/// Arrays of text and of Python objects, as NumPy and pandas have them.
HostElements read_object_array(nb::handle value, std::optional<DType> dtype) {
  refuse_foreign_elements(value);
  nb::object items = value.attr("tolist")();
  Nested nested(items);
  return read_leaves(std::move(nested.sizes), nested.leaves, dtype);
}

HostElements read_list(nb::handle value, std::optional<DType> dtype) {
  Nested nested(value);
  if (nested.has_arrays) {
    // Arrays or their scalars inside: NumPy, which made them, knows how to stack them.
    return read_elements(nb::module_::import_("numpy").attr("asarray")(value), dtype);
  }
  return read_leaves(std::move(nested.sizes), nested.leaves, dtype);
}

/// Ranges and the like: what has a length and items. A length that does not hold is an error.
nb::list items_of(nb::handle sequence) {
  const Py_ssize_t size = PySequence_Size(sequence.ptr());
  if (size < 0) throw nb::python_error();
  if (static_cast<size_t>(size) > kMaxItems) {
    fail(ErrorCode::kShapeMismatch, describe(sequence) + " has " + std::to_string(size) +
                                        " items; expected fewer than 2**31. Put them into an array");
  }
  nb::list items;
  for (Py_ssize_t i = 0; i < size; ++i) {
    nb::object item = nb::steal(PySequence_GetItem(sequence.ptr(), i));
    if (!item.is_valid()) throw nb::python_error();
    items.append(item);
  }
  return items;
}

/// Tensors in nested lists, stacked along new leading axes.
bool holds_tensors(nb::handle value);

/// `parts_so_far`: how many were stacked so far. Lists without tensors are read as a whole.
Tensor stack(nb::handle value, std::optional<DType> dtype, size_t* parts_so_far, size_t depth = 1) {
  constexpr size_t kMaxParts = size_t{1} << 20;
  if (depth > kMaxDepth) too_deep();
  Tensors parts;
  for_items(value, [&](nb::handle item) {
    if (++*parts_so_far > kMaxParts) {
      fail(ErrorCode::kShapeMismatch,
           "nested lists hold more than 2**20 tensors and numbers beside tensors; expected fewer. "
           "Stack the tensors in parts");
    }
    const bool deeper = is_list(item) && holds_tensors(item);
    Tensor part = deeper ? stack(item, dtype, parts_so_far, depth + 1) : make_tensor(item, dtype);
    if (!dtype) dtype = part.dtype();
    Shape shape({Dim(1)});
    for (Dim dim : part.shape()) shape.push_back(dim);
    parts.push_back(recorded([&] { return apply_op("reshape", {&part, 1}, {{"shape", shape}})[0]; }));
  });
  return recorded([&] { return apply_op("concat", parts, {{"axis", int64_t{0}}})[0]; });
}

/// `seen`: lists that were looked into. A list may be in others many times, or in itself.
bool holds_tensors(nb::handle value, std::unordered_set<PyObject*>* seen, size_t depth = 0) {
  if (!is_list(value)) return is_tensor(value) || nb::isinstance<Variable>(value);
  if (depth >= kMaxDepth) too_deep();
  seen->insert(value.ptr());
  bool found = false;
  for_items(value, [&](nb::handle item) {
    if (found || (is_list(item) && seen->count(item.ptr()) > 0)) return;
    found = holds_tensors(item, seen, depth + 1);
  });
  return found;
}

bool holds_tensors(nb::handle value) {
  std::unordered_set<PyObject*> seen;
  return holds_tensors(value, &seen);
}

Tensor cast_to(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  return recorded([&] { return apply_op("cast", {&tensor, 1}, {{"dtype", dtype}})[0]; });
}

}  // namespace

size_t HostElements::count() const {
  size_t count = 1;
  for (int64_t size : sizes) count *= static_cast<size_t>(size);
  return count;
}

std::vector<char> gather_elements(const char* from, size_t element,
                                  const std::vector<int64_t>& sizes,
                                  const std::vector<int64_t>& strides) {
  size_t count = 1;
  for (int64_t size : sizes) count *= static_cast<size_t>(size);
  std::vector<char> out(count * element);
  std::vector<int64_t> at(sizes.size(), 0);
  char* to = out.data();
  for (size_t i = 0; i < count; ++i, to += element) {
    std::memcpy(to, from, element);
    for (size_t axis = sizes.size(); axis-- > 0;) {
      from += strides[axis];
      if (++at[axis] < sizes[axis]) break;
      from -= strides[axis] * sizes[axis];
      at[axis] = 0;
    }
  }
  return out;
}

namespace {

/// What __array__ gave, which must be an array and not another object that has __array__.
HostElements read_own_array(nb::handle value, std::optional<DType> dtype) {
  nb::object array = value.attr("__array__")();
  HostElements out;
  if (read_buffer(array, &out) || read_array_interface(array, &out)) return out;
  if (nb::hasattr(array, "dtype") && nb::hasattr(array, "tolist")) {
    return read_object_array(array, dtype);
  }
  fail(ErrorCode::kDTypeMismatch, "__array__ of " + describe(value) + " returned " +
                                      describe(array) + "; expected a NumPy array. Correct that "
                                      "method, or convert the object yourself");
}

}  // namespace

HostElements read_elements(nb::handle value, std::optional<DType> dtype) {
  if (is_exact_scalar(value)) return read_leaves({}, {nb::borrow(value)}, dtype);
  if (is_list(value)) return read_list(value, dtype);
  HostElements out;
  if (read_buffer(value, &out) || read_array_interface(value, &out) || read_dlpack(value, &out)) {
    return out;
  }
  // What is no array of NumPy's makes one first (pandas): its numbers keep their type so.
  const bool converts = nb::hasattr(value, "__array__");
  if ((!converts || nb::hasattr(value, "__array_interface__")) && nb::hasattr(value, "dtype") &&
      nb::hasattr(value, "tolist")) {
    return read_object_array(value, dtype);
  }
  if (converts) return read_own_array(value, dtype);
  const bool is_sequence = PySequence_Check(value.ptr()) && !PyIndex_Check(value.ptr());
  if (is_sequence && !is_text(value) && !number_of(value)) {
    return read_list(items_of(value), dtype);
  }
  return read_leaves({}, {nb::borrow(value)}, dtype);
}

Tensor make_tensor(nb::handle value, std::optional<DType> dtype, Device device, bool constants) {
  if (is_tensor(value) || nb::isinstance<Variable>(value)) {
    Tensor tensor = is_tensor(value) ? *nb::inst_ptr<Tensor>(value)
                                     : nb::inst_ptr<Variable>(value)->read();
    if (dtype) tensor = cast_to(tensor, *dtype);
    if (!device.is_set() || device == tensor.device()) return tensor;
    return recorded([&] { return tensor.to(device); });
  }
  if (is_list(value) && holds_tensors(value)) {
    size_t parts = 0;
    Tensor tensor = stack(value, dtype, &parts);
    return device.is_set() ? recorded([&] { return tensor.to(device); }) : tensor;
  }
  HostElements elements = read_elements(value, dtype);
  if ((elements.dtype == DType::kString) != (dtype.value_or(elements.dtype) == DType::kString)) {
    fail(ErrorCode::kDTypeMismatch, describe(value) + " holds " +
                                        std::string(dtype_name(elements.dtype)) +
                                        " elements, which do not become " +
                                        std::string(dtype_name(*dtype)) +
                                        "; expected the same kind. Convert them in Python first");
  }
  if (elements.dtype == DType::kString) {
    return Tensor::from_strings(std::move(elements.strings), elements.sizes);
  }
  Tensor tensor;
  if (constants && is_tracing() && elements.bytes() <= kMaxConstantBytes && elements.count() > 0) {
    std::optional<DeviceScope> scope;
    if (device.is_set()) unlocked([&] { scope.emplace(device); });
    std::string bytes(static_cast<const char*>(elements.data), elements.bytes());
    UserLine line;
    tensor = apply_op("constant", {},
                   {{"dtype", elements.dtype},
                    {"shape", Shape::of(elements.sizes)},
                    {"bytes", std::move(bytes)}})[0];
  } else {
    tensor = unlocked([&] {
      return Tensor::from_host(elements.data, elements.dtype, elements.sizes, device);
    });
  }
  return dtype ? cast_to(tensor, *dtype) : tensor;
}

Tensor tensor_of(nb::handle value) {
  if (is_tensor(value)) return *nb::inst_ptr<Tensor>(value);
  return make_tensor(value);
}

Tensors tensors_of(nb::handle sequence, const char* what) {
  Tensors tensors;
  if (is_tensor(sequence) || !PySequence_Check(sequence.ptr()) || is_text(sequence)) {
    fail(ErrorCode::kBadAttribute, std::string(what) + " received " + describe(sequence) +
                                       "; expected a list of tensors. Put it into a list");
  }
  for (nb::handle item : nb::borrow<nb::sequence>(sequence)) tensors.push_back(tensor_of(item));
  return tensors;
}

nb::list wrap_all(Tensors tensors) {
  nb::list list;
  for (Tensor& tensor : tensors) {
    list.append(tensor.defined() ? wrap(std::move(tensor)) : nb::object(nb::none()));
  }
  return list;
}

}  // namespace tracefire::python
