// SPDX-License-Identifier: Apache-2.0
// Python's texts as bytes. A str may hold halves of surrogate pairs, which UTF-8 has no bytes for.
#include "python/bindings/elements.h"

namespace tracefire::python {
namespace {

std::string bytes_of(nb::handle value) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(value.ptr(), &data, &size) != 0) throw nb::python_error();
  return std::string(data, static_cast<size_t>(size));
}

std::string checked_text(nb::handle value, const ElementPlace* place) {
  if (PyBytes_Check(value.ptr())) return bytes_of(value);
  const nb::str text(value);
  nb::object bytes = nb::steal(PyUnicode_AsUTF8String(text.ptr()));
  if (bytes.is_valid()) return bytes_of(bytes);
  PyErr_Clear();
  fail(ErrorCode::kBadAttribute,
       (place != nullptr ? place->text() : "") + describe(value) +
           " holds half of a surrogate pair, which is no character; expected text that UTF-8 can "
           "encode. Decode what it was read from again, with errors='replace'");
}

}  // namespace

std::string text_of(nb::handle value) { return checked_text(value, nullptr); }

std::string text_of(nb::handle value, const ElementPlace& place) {
  return checked_text(value, &place);
}

std::string shown_text(nb::handle value) {
  nb::object bytes = nb::steal(PyUnicode_AsEncodedString(value.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) throw nb::python_error();
  return bytes_of(bytes);
}

std::string path_of(nb::handle value) {
  nb::object bytes = nb::steal(PyUnicode_EncodeFSDefault(value.ptr()));
  if (bytes.is_valid()) return bytes_of(bytes);
  PyErr_Clear();
  return text_of(value);
}

}  // namespace tracefire::python
