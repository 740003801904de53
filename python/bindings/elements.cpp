// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/elements.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tracefire::python {
namespace {

/// A floating type of 8 or 16 bits. Without infinity, one pattern is NaN and overflow gives it.
struct SmallFloat {
  int exponent_bits;
  int fraction_bits;
  bool infinity;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint32_t ones() const { return (1u << (exponent_bits + fraction_bits)) - 1; }
  uint32_t infinite() const { return ((1u << exponent_bits) - 1) << fraction_bits; }
  uint32_t nan() const { return infinity ? infinite() | 1u << (fraction_bits - 1) : ones(); }
  uint32_t overflow() const { return infinity ? infinite() : ones(); }
};

constexpr SmallFloat kHalf{5, 10, true};
constexpr SmallFloat kBrain{8, 7, true};
constexpr SmallFloat kE4M3{4, 3, false};
constexpr SmallFloat kE5M2{5, 2, true};

uint32_t encode(double value, const SmallFloat& type) {
  const uint32_t sign = static_cast<uint32_t>(std::signbit(value))
                        << (type.exponent_bits + type.fraction_bits);
  if (std::isnan(value)) return sign | type.nan();
  if (std::isinf(value)) return sign | type.overflow();
  if (value == 0) return sign;
  int exponent;
  std::frexp(value, &exponent);  // |value| = [0.5, 1) * 2^exponent
  const int smallest = 1 - type.bias();
  exponent = std::max(exponent - 1, smallest);
  // In units of the last fraction bit; nearbyint rounds to nearest even.
  const double units = std::nearbyint(std::ldexp(std::fabs(value), type.fraction_bits - exponent));
  // A carry out of the fraction goes into the exponent by itself, as does the first normal number.
  const double bits =
      units + std::ldexp(static_cast<double>(exponent - smallest), type.fraction_bits);
  const uint32_t limit = type.infinity ? type.infinite() : type.ones();
  return sign | (bits >= limit ? type.overflow() : static_cast<uint32_t>(bits));
}

double decode(uint32_t bits, const SmallFloat& type) {
  const uint32_t magnitude = bits & type.ones();
  const double sign = bits > type.ones() ? -1.0 : 1.0;
  if (type.infinity && magnitude == type.infinite()) {
    return sign * std::numeric_limits<double>::infinity();
  }
  if (type.infinity ? magnitude > type.infinite() : magnitude == type.ones()) {
    return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  }
  const int exponent = static_cast<int>(magnitude >> type.fraction_bits);
  const uint32_t fraction = magnitude & ((1u << type.fraction_bits) - 1);
  const uint32_t whole = exponent == 0 ? fraction : fraction | 1u << type.fraction_bits;
  return sign * std::ldexp(static_cast<double>(whole),
                           std::max(exponent, 1) - type.bias() - type.fraction_bits);
}

template <class T>
T read(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void write(void* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

Number integer(int64_t value) { return {Number::kSigned, value}; }
Number real(double value) { return {Number::kReal, 0, 0, value}; }

Number unsigned_number(uint64_t value) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return integer(static_cast<int64_t>(value));
  }
  return {Number::kUnsigned, 0, value};
}

double as_real(const Number& n) {
  switch (n.kind) {
    case Number::kBool:
    case Number::kSigned: return static_cast<double>(n.i);
    case Number::kUnsigned: return static_cast<double>(n.u);
    default: return n.re;
  }
}

std::string number_text(const Number& n) {
  return str_of(to_python(n));
}

[[noreturn]] void does_not_fit(DType dtype, const Number& n, int64_t low, uint64_t high,
                               const ElementPlace& place) {
  fail(ErrorCode::kBadAttribute, place.text() + number_text(n) + " does not fit the element type " +
                                     std::string(dtype_name(dtype)) + "; expected a number from " +
                                     std::to_string(low) + " to " + std::to_string(high) +
                                     ". Choose a wider dtype");
}

/// An integer from `low` to `high`.
template <class T>
void store_integer(DType dtype, const Number& n, void* to, int64_t low, uint64_t high,
                   const ElementPlace& place) {
  Number whole = n;
  if (n.kind == Number::kReal || n.kind == Number::kComplex) {
    const double cut = std::trunc(n.re);
    if (cut != n.re && std::isfinite(n.re)) {
      fail(ErrorCode::kBadAttribute,
           place.text() + number_text(n) + " has a fraction, which the element type " +
               std::string(dtype_name(dtype)) +
               " cannot hold; expected a whole number. Round it, or take a floating type and cast");
    }
    if (!(cut >= static_cast<double>(low) && cut <= static_cast<double>(high))) {
      does_not_fit(dtype, n, low, high, place);
    }
    // 2^63 and 2^64 are the first reals beyond the 64-bit types.
    if (cut < 0x1p63) {
      whole = integer(static_cast<int64_t>(cut));
    } else if (cut < 0x1p64 && high > static_cast<uint64_t>(INT64_MAX)) {
      whole = unsigned_number(static_cast<uint64_t>(cut));
    } else {
      does_not_fit(dtype, n, low, high, place);
    }
  }
  const bool fits = whole.kind == Number::kUnsigned
                        ? whole.u <= high
                        : whole.i >= low && (whole.i < 0 || static_cast<uint64_t>(whole.i) <= high);
  if (!fits) does_not_fit(dtype, n, low, high, place);
  write(to, whole.kind == Number::kUnsigned ? static_cast<T>(whole.u) : static_cast<T>(whole.i));
}

template <class T>
void store_whole(DType dtype, const Number& n, void* to, const ElementPlace& place) {
  store_integer<T>(dtype, n, to, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(),
                   place);
}

bool truth(const Number& n) {
  switch (n.kind) {
    case Number::kBool:
    case Number::kSigned: return n.i != 0;
    case Number::kUnsigned: return n.u != 0;
    default: return n.re != 0 || n.im != 0;
  }
}

[[noreturn]] void no_number(DType dtype) {
  fail(ErrorCode::kDTypeMismatch, "elements of type " + std::string(dtype_name(dtype)) +
                                      " are no numbers; expected a numeric type. Convert them first");
}

}  // namespace

std::optional<Number> number_of(nb::handle value, const ElementPlace* place) {
  PyObject* object = value.ptr();
  if (PyBool_Check(object)) return Number{Number::kBool, object == Py_True};
  if (PyFloat_Check(object)) return real(PyFloat_AsDouble(object));
  if (PyComplex_Check(object)) {
    return Number{Number::kComplex, 0, 0, PyComplex_RealAsDouble(object),
                  PyComplex_ImagAsDouble(object)};
  }
  if (PyIndex_Check(object)) {
    nb::object index = nb::steal(PyNumber_Index(object));
    if (!index.is_valid()) throw nb::python_error();
    int overflow = 0;
    const int64_t number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    if (overflow == 0) return integer(number);
    const uint64_t wide = overflow > 0 ? PyLong_AsUnsignedLongLong(index.ptr()) : 0;
    if (overflow > 0 && PyErr_Occurred() == nullptr) return unsigned_number(wide);
    PyErr_Clear();
    fail(ErrorCode::kBadAttribute, (place != nullptr ? place->text() : "") + describe(value) +
                                       " does not fit any integer type; expected a number from "
                                       "-2**63 to 2**64 - 1. Use a float");
  }
  if (!PyUnicode_Check(object) && nb::hasattr(value, "__float__")) {
    nb::object converted = nb::steal(PyNumber_Float(object));
    if (!converted.is_valid()) throw nb::python_error();
    return real(PyFloat_AsDouble(converted.ptr()));
  }
  return std::nullopt;
}

nb::object to_python(const Number& n) {
  switch (n.kind) {
    case Number::kBool: return nb::bool_(n.i != 0);
    case Number::kSigned: return nb::int_(n.i);
    case Number::kUnsigned: return nb::int_(n.u);
    case Number::kReal: return nb::float_(n.re);
    case Number::kComplex: return nb::steal(PyComplex_FromDoubles(n.re, n.im));
  }
  return nb::none();
}

Number load_element(DType dtype, const void* from) {
  switch (dtype) {
    case DType::kBool: return {Number::kBool, read<uint8_t>(from) != 0};
    case DType::kI4:
    case DType::kI8: return integer(read<int8_t>(from));
    case DType::kI16: return integer(read<int16_t>(from));
    case DType::kI32: return integer(read<int32_t>(from));
    case DType::kI64: return integer(read<int64_t>(from));
    case DType::kU4:
    case DType::kU8: return integer(read<uint8_t>(from));
    case DType::kU16: return integer(read<uint16_t>(from));
    case DType::kU32: return integer(read<uint32_t>(from));
    case DType::kU64: return unsigned_number(read<uint64_t>(from));
    case DType::kF8E4M3: return real(decode(read<uint8_t>(from), kE4M3));
    case DType::kF8E5M2: return real(decode(read<uint8_t>(from), kE5M2));
    case DType::kF16: return real(decode(read<uint16_t>(from), kHalf));
    case DType::kBF16: return real(decode(read<uint16_t>(from), kBrain));
    case DType::kF32: return real(read<float>(from));
    case DType::kF64: return real(read<double>(from));
    case DType::kC64: {
      const auto* parts = static_cast<const char*>(from);
      return {Number::kComplex, 0, 0, read<float>(parts), read<float>(parts + sizeof(float))};
    }
    case DType::kC128: {
      const auto* parts = static_cast<const char*>(from);
      return {Number::kComplex, 0, 0, read<double>(parts), read<double>(parts + sizeof(double))};
    }
    case DType::kInvalid:
    case DType::kString:
    case DType::kToken: break;
  }
  no_number(dtype);
}

namespace {

void store_any(DType dtype, const Number& n, void* to, const ElementPlace& place) {
  if (n.kind == Number::kComplex && dtype != DType::kBool && !is_complex(dtype)) {
    fail(ErrorCode::kDTypeMismatch,
         place.text() + number_text(n) + " is complex and was given for element type " +
             std::string(dtype_name(dtype)) + "; expected a real number. Take its .real part");
  }
  switch (dtype) {
    case DType::kBool: return write<uint8_t>(to, truth(n));
    case DType::kI4: return store_integer<int8_t>(dtype, n, to, -8, 7, place);
    case DType::kI8: return store_whole<int8_t>(dtype, n, to, place);
    case DType::kI16: return store_whole<int16_t>(dtype, n, to, place);
    case DType::kI32: return store_whole<int32_t>(dtype, n, to, place);
    case DType::kI64: return store_whole<int64_t>(dtype, n, to, place);
    case DType::kU4: return store_integer<uint8_t>(dtype, n, to, 0, 15, place);
    case DType::kU8: return store_whole<uint8_t>(dtype, n, to, place);
    case DType::kU16: return store_whole<uint16_t>(dtype, n, to, place);
    case DType::kU32: return store_whole<uint32_t>(dtype, n, to, place);
    case DType::kU64: return store_whole<uint64_t>(dtype, n, to, place);
    case DType::kF8E4M3: return write<uint8_t>(to, encode(as_real(n), kE4M3));
    case DType::kF8E5M2: return write<uint8_t>(to, encode(as_real(n), kE5M2));
    case DType::kF16: return write<uint16_t>(to, encode(as_real(n), kHalf));
    case DType::kBF16: return write<uint16_t>(to, encode(as_real(n), kBrain));
    case DType::kF32: return write(to, static_cast<float>(as_real(n)));
    case DType::kF64: return write(to, as_real(n));
    case DType::kC64: {
      auto* parts = static_cast<char*>(to);
      write(parts, static_cast<float>(as_real(n)));
      return write(parts + sizeof(float), static_cast<float>(n.im));
    }
    case DType::kC128: {
      auto* parts = static_cast<char*>(to);
      write(parts, as_real(n));
      return write(parts + sizeof(double), n.im);
    }
    case DType::kInvalid:
    case DType::kString:
    case DType::kToken: break;
  }
  no_number(dtype);
}

bool is_finite(const Number& n) {
  return n.kind < Number::kReal || (std::isfinite(n.re) && std::isfinite(n.im));
}

}  // namespace

std::string ElementPlace::text() const {
  if (sizes.empty()) return "";
  std::string text;
  size_t rest = index;
  for (size_t axis = sizes.size(); axis-- > 0;) {
    const auto size = static_cast<size_t>(sizes[axis]);
    text = std::to_string(rest % size) + (text.empty() ? "" : ", ") + text;
    rest /= size;
  }
  return "element (" + text + "): ";
}

bool store_element(DType dtype, const Number& number, void* to, const ElementPlace& place) {
  store_any(dtype, number, to, place);
  return !is_finite(number) || is_finite(load_element(dtype, to));
}

}  // namespace tracefire::python
