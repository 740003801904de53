// SPDX-License-Identifier: Apache-2.0
// Calls with arguments that a function does not take: an error of the catalogue that names the
// argument, in place of nanobind's list of signatures.
#include <dlfcn.h>

#include <array>
#include <string_view>
#include <utility>

#include "python/bindings/common.h"

namespace tracefire::python {
namespace {

/// A function of nanobind begins like this; its entry point stands in each of them, because the
/// forms of argument lists have entries of their own.
struct FunctionHead {
  PyVarObject base;
  vectorcallfunc entry;
};

constexpr size_t kMostEntries = 8;
std::array<vectorcallfunc, kMostEntries> entries{};

PyObject* call(size_t number, PyObject* function, PyObject* const* args, size_t flags,
               PyObject* names);

template <size_t... I>
constexpr std::array<vectorcallfunc, sizeof...(I)> make_detours(std::index_sequence<I...>) {
  return {[](PyObject* function, PyObject* const* args, size_t flags, PyObject* names) {
    return call(I, function, args, flags, names);
  }...};
}
constexpr auto kDetours = make_detours(std::make_index_sequence<kMostEntries>());

/// Raises the error of tracefire.errors in place of nanobind's, if it is that of a call.
void say_better(PyObject* const* args, Py_ssize_t count, PyObject* names) {
  nb::python_error error;  // takes what is raised
  try {
    const std::string text = str_of(error.value());
    if (text.find("(): incompatible function arguments.") == std::string::npos) {
      error.restore();
      return;
    }
    nb::list given;
    for (Py_ssize_t i = 0; i < count; ++i) given.append(nb::handle(args[i]));
    nb::dict named;
    const Py_ssize_t named_count = names == nullptr ? 0 : PyTuple_Size(names);
    for (Py_ssize_t i = 0; i < named_count; ++i) {
      named[nb::handle(PyTuple_GetItem(names, i))] = nb::handle(args[count + i]);
    }
    nb::object better =
        nb::module_::import_("tracefire._calls").attr("call_error")(text, given, named);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(better.ptr())), better.ptr());
  } catch (...) {  // only where this module is loaded without its package
    error.restore();
  }
}

PyObject* call(size_t number, PyObject* function, PyObject* const* args, size_t flags,
               PyObject* names) {
  PyObject* result = entries[number](function, args, flags, names);
  if (result == nullptr && PyErr_ExceptionMatches(PyExc_TypeError) != 0) {
    // The count is in the lower half; Python and nanobind keep signs in the upper one.
    say_better(args, static_cast<Py_ssize_t>(flags & 0xffffffffU), names);
  }
  return result;
}

/// Whether code of this module, into which nanobind is linked, runs there. (The limited API of
/// Python, with which wheels are built, does not tell where an object keeps its entry point.)
bool is_ours(vectorcallfunc entry) {
  Dl_info theirs, ours;
  return dladdr(reinterpret_cast<void*>(entry), &theirs) != 0 &&
         dladdr(reinterpret_cast<void*>(&is_ours), &ours) != 0 && theirs.dli_fbase == ours.dli_fbase;
}

void detour(nb::handle object) {
  const std::string kind = nb::cast<std::string>(nb::handle(object.type()).attr("__name__"));
  if (kind != "nb_func" && kind != "nb_method") return;
  auto* head = reinterpret_cast<FunctionHead*>(object.ptr());
  if (!is_ours(head->entry)) return;  // another nanobind
  for (size_t i = 0; i < kMostEntries; ++i) {
    if (head->entry == kDetours[i]) return;  // known by two names
    if (entries[i] == nullptr) entries[i] = head->entry;
    if (entries[i] != head->entry) continue;
    head->entry = kDetours[i];
    return;
  }
}

}  // namespace

void name_wrong_arguments(nb::module_& m) {
  for (nb::handle value : nb::cast<nb::dict>(m.attr("__dict__")).values()) {
    detour(value);
    if (!PyType_Check(value.ptr())) continue;
    for (nb::handle item : value.attr("__dict__").attr("values")()) detour(item);
  }
}

}  // namespace tracefire::python
