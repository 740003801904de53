// SPDX-License-Identifier: Apache-2.0
// Errors of the library as Python exceptions. The classes are Python's (tracefire/errors.py).
#include <deque>
#include <new>
#include <stdexcept>

#include "python/bindings/common.h"

namespace tracefire::python {
namespace {

const char* kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
      return "InvalidArgument";
    case ErrorKind::kType:
      return "Type";
    case ErrorKind::kNotFound:
      return "NotFound";
    case ErrorKind::kUnimplemented:
      return "Unimplemented";
    case ErrorKind::kOutOfRange:
      return "OutOfRange";
    case ErrorKind::kResourceExhausted:
      return "ResourceExhausted";
    case ErrorKind::kFailedPrecondition:
      return "FailedPrecondition";
    case ErrorKind::kDataLoss:
      return "DataLoss";
    case ErrorKind::kUnavailable:
      return "Unavailable";
    case ErrorKind::kCancelled:
      return "Cancelled";
    case ErrorKind::kInternal:
      return "Internal";
  }
  return "Internal";
}

ErrorKind kind_of(const char* name) {
  for (int kind = 0; kind < static_cast<int>(ErrorKind::kInternal); ++kind) {
    if (std::string_view(kind_name(static_cast<ErrorKind>(kind))) == name) {
      return static_cast<ErrorKind>(kind);
    }
  }
  return ErrorKind::kInternal;
}

/// Exceptions on their way through the library, which carries texts alone. Guarded by the GIL.
struct Kept {
  struct Cause {
    std::string text;
    nb::object exception;
  };
  std::deque<Cause> causes;  // newest last
  nb::object interrupt;
};
constexpr size_t kMaxCauses = 16;

Kept& kept() {
  static Kept& instance = *new Kept;  // never destroyed: the interpreter ends before statics do
  return instance;
}

nb::object take_cause(const std::string& text) {
  auto& causes = kept().causes;
  for (size_t i = causes.size(); i-- > 0;) {
    if (text.find(causes[i].text) != std::string::npos) return causes[i].exception;
  }
  return nb::object();
}

void raise_object(nb::handle exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

void raise(const Error& error) {
  if (error.kind() == ErrorKind::kCancelled && kept().interrupt.is_valid()) {
    raise_object(std::exchange(kept().interrupt, nb::object()));
    return;
  }
  nb::object exception;
  try {
    exception = nb::module_::import_("tracefire.errors")
                    .attr("make")(kind_name(error.kind()), error.what());
  } catch (nb::python_error& e) {
    // Only where this module is loaded without its package.
    e.restore();
    PyErr_Clear();
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return;
  }
  if (error.number() == static_cast<uint16_t>(ErrorCode::kHostCallFailed)) {
    if (nb::object cause = take_cause(error.what()); cause.is_valid()) {
      PyException_SetCause(exception.ptr(), cause.release().ptr());
    }
  }
  raise_object(exception);
}

nb::dict error_catalogue() {
  nb::dict catalogue;
  for (const CatalogueEntry& entry : kErrorCatalogue) {
    catalogue[entry.name] = nb::make_tuple(entry.number, entry.kind);
  }
  return catalogue;
}

nb::object module_attribute(nb::str name) {
  if (std::string_view(name.c_str()) == "Error") {
    return nb::module_::import_("tracefire.errors").attr("Error");
  }
  const std::string text =
      std::string("module 'tracefire._core' has no attribute '") + name.c_str() + "'";
  throw nb::attribute_error(text.c_str());
}

}  // namespace

void fail(ErrorCode code, const std::string& text) {
  ErrorKind kind = ErrorKind::kInternal;
  for (const CatalogueEntry& entry : kErrorCatalogue) {
    if (entry.number == static_cast<uint16_t>(code)) kind = kind_of(entry.kind);
  }
  const std::string number = std::to_string(static_cast<int>(code));
  throw Error(static_cast<uint16_t>(code), kind,
              "[TF-E" + std::string(4 - number.size(), '0') + number + "] " + text);
}

void fail_type(const std::string& happened, const std::string& expected,
               const std::string& advice) {
  nb::object errors = nb::module_::import_("tracefire.errors");
  nb::object error =
      errors.attr("raised_here")("BadUsage", happened, expected, advice, errors.attr("DTypeError"));
  raise_object(error);
  nb::raise_python_error();
}

void check_callable(nb::handle value, const char* function, const char* argument) {
  if (PyCallable_Check(value.ptr()) != 0) return;
  fail_type(std::string(function) + ": argument '" + argument + "' is " + describe(value),
            "a function", "Pass a function or a lambda");
}

void check_iterable(nb::handle value, const char* function, const char* argument) {
  PyObject* iterator = PyObject_GetIter(value.ptr());
  if (iterator != nullptr) {
    Py_DECREF(iterator);
    return;
  }
  PyErr_Clear();
  fail_type(std::string(function) + ": argument '" + argument + "' is " + describe(value), "a list",
            "Put it into a list");
}

void keep_cause(const std::string& text, nb::object exception) {
  kept().causes.push_back({text, std::move(exception)});
  if (kept().causes.size() > kMaxCauses) kept().causes.pop_front();
}

void keep_interrupt(nb::object exception) { kept().interrupt = std::move(exception); }

void drop_kept_exceptions() {
  kept().causes.clear();
  kept().interrupt = nb::object();
}

namespace {

void raise_no_memory() {
  try {
    fail(ErrorCode::kOutOfMemory,
         "the memory of this machine does not hold what was asked for; expected data that fits. "
         "Use smaller arrays or batches");
  } catch (const Error& e) {
    raise(e);
  }
}

}  // namespace

void set_python_error() {
  try {
    throw;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const Error& e) {
    raise(e);
  } catch (const nb::builtin_exception& e) {
    PyErr_SetString(e.type() == nb::exception_type::attribute_error ? PyExc_AttributeError
                    : e.type() == nb::exception_type::type_error    ? PyExc_TypeError
                                                                    : PyExc_ValueError,
                    e.what());
  } catch (const std::bad_alloc&) {
    raise_no_memory();
  } catch (const std::length_error&) {
    raise_no_memory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
}

void raise_cast_error() {
  try {
    fail_type("an argument is of a kind that the function does not take", "what help() of it names",
              "Check the types of the arguments");
  } catch (nb::python_error& e) {
    e.restore();
  }
}

void bind_errors(nb::module_& m) {
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    if (!error) stop_thread();  // no exception, but the end of the thread
    try {
      std::rethrow_exception(error);
    } catch (const Error& e) {
      raise(e);
    } catch (const std::bad_cast&) {
      raise_cast_error();
    } catch (const std::bad_alloc&) {
      raise_no_memory();
    } catch (const std::length_error&) {  // more elements than there are addresses
      raise_no_memory();
    }
  });
  m.def("error_catalogue", &error_catalogue,
        "Every error of the catalogue: name -> (number, kind).");
  // Error is looked up late, so that the module can be loaded without its package.
  m.def("__getattr__", &module_attribute);
}

}  // namespace tracefire::python
