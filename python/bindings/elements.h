// SPDX-License-Identifier: Apache-2.0
// Single elements of tensors, between Python numbers and their bytes.
#pragma once

#include "python/bindings/common.h"

namespace tracefire::python {

/// A number of any element type.
struct Number {
  enum Kind : uint8_t { kBool, kSigned, kUnsigned, kReal, kComplex };
  Kind kind = kBool;
  int64_t i = 0;   ///< kBool, kSigned
  uint64_t u = 0;  ///< kUnsigned: only what int64 cannot hold
  double re = 0, im = 0;
};

nb::object to_python(const Number& number);

Number load_element(DType dtype, const void* from);

/// Where an element lies, for messages.
struct ElementPlace {
  const std::vector<int64_t>& sizes;
  size_t index;  ///< in row-major order

  std::string text() const;  ///< "element (1, 2): "; "" of a scalar
};

/// The number in a Python object that is one or converts to one; nullopt otherwise. Throws
/// kBadAttribute where it has more than 64 bits.
std::optional<Number> number_of(nb::handle value, const ElementPlace* place = nullptr);

/// The text of an element, as text_of(value) gives it.
std::string text_of(nb::handle value, const ElementPlace& place);

/// Throws kBadAttribute where an integer type cannot hold the number, also for a fraction. Reals
/// are rounded to nearest even for floating types; false where a finite one did not fit and became
/// infinite, or NaN where the type has no infinity.
bool store_element(DType dtype, const Number& number, void* to, const ElementPlace& place);

}  // namespace tracefire::python
