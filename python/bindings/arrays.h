// SPDX-License-Identifier: Apache-2.0
// Host data of Python objects: arrays by their protocols, numbers, strings and nested lists.
#pragma once

#include <memory>

#include "python/bindings/common.h"

namespace tracefire::python {

/// Dense row-major elements in host memory, borrowed from a Python object or owned.
struct HostElements {
  DType dtype = DType::kInvalid;
  std::vector<int64_t> sizes;
  const void* data = nullptr;         ///< not for strings
  std::vector<std::string> strings;   ///< kString only
  std::vector<char> owned;            ///< what `data` points to, unless borrowed
  std::shared_ptr<void> borrowed;     ///< keeps borrowed memory; released with the GIL held
  bool from_numbers = false;          ///< Python numbers, not an array

  size_t count() const;
  size_t bytes() const { return count() * dtype_size(dtype); }
};

/// Reads anything that holds host data. `dtype`: element type for Python numbers; arrays keep theirs.
/// Lists are read as they are stored, whatever a subclass says of them. Throws kShapeMismatch for
/// lists that are ragged, more than 64 deep or without an end, kDTypeMismatch for what is no number,
/// kBadAttribute for integers that do not fit; what the object itself raises comes out. Warns where
/// a float overflows float32 that nobody asked for.
HostElements read_elements(nb::handle value, std::optional<DType> dtype);

/// A tensor of `value`: Tensors as they are, Variables read, host data copied. While a function is
/// being traced, up to 64 bytes become a constant of it where `constants` is true.
Tensor make_tensor(nb::handle value, std::optional<DType> dtype = std::nullopt, Device device = {},
                   bool constants = true);

// DLPack, whose structures only dlpack.cpp knows.
/// True where `value` has __dlpack__ and its memory is the host's; fills `out`.
bool read_dlpack(nb::handle value, HostElements* out);
/// A capsule of the tensor's elements, as Tensor.__dlpack__ returns it.
nb::object to_dlpack(const Tensor& tensor, nb::handle max_version, nb::handle device,
                     nb::handle copy);

/// Copies elements that lie `strides` bytes apart into dense row-major order.
std::vector<char> gather_elements(const char* from, size_t element,
                                  const std::vector<int64_t>& sizes,
                                  const std::vector<int64_t>& strides);

/// fetch() with the GIL released.
std::vector<HostValue> fetch_values(const Tensors& tensors);
inline HostValue fetch_value(const Tensor& tensor) { return std::move(fetch_values({tensor})[0]); }
/// A NumPy array of these elements that keeps them alive; imports NumPy.
nb::object numpy_array(HostValue value, bool writable);
/// A NumPy array of Python bytes objects.
nb::object numpy_strings(const std::vector<std::string>& strings,
                         const std::vector<int64_t>& sizes);
/// np.dtype of an element type; bfloat16 and the 8-bit and 4-bit types come from ml_dtypes.
nb::object numpy_dtype(DType dtype);

}  // namespace tracefire::python
