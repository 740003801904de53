// SPDX-License-Identifier: Apache-2.0
// What the source files of tracefire._core share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "error_codes.h"
#include "python/bindings/gil.h"
#include "tracefire/apply.h"
#include "tracefire/control.h"
#include "tracefire/device.h"
#include "tracefire/dtype.h"
#include "tracefire/error.h"
#include "tracefire/function.h"
#include "tracefire/tensor.h"

namespace nb = nanobind;

namespace tracefire::python {

// One function for each source file; each adds its names to the module.
void bind_errors(nb::module_& m);
void bind_shapes(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_views(nb::module_& m);
void bind_ops(nb::module_& m);
void bind_function(nb::module_& m);
void bind_control(nb::module_& m);
void bind_gradients(nb::module_& m);
void bind_config(nb::module_& m);
void bind_observe(nb::module_& m);
void bind_profiler(nb::module_& m);
void bind_location(nb::module_& m);
/// Once all names are there: a call with wrong arguments is an error that names the argument.
void name_wrong_arguments(nb::module_& m);

/// Throws the Error of the catalogue; `text` says what happened, what was expected, what to do.
[[noreturn]] void fail(ErrorCode code, const std::string& text);
/// Turns the C++ exception being handled into the Python exception of this thread.
void set_python_error();
/// Keeps what a host function raised until the error that reports it becomes a Python exception.
void keep_cause(const std::string& text, nb::object exception);
/// Keeps what a signal handler raised until the interrupted call becomes a Python exception.
void keep_interrupt(nb::object exception);
/// Forgets the exceptions kept, before the interpreter ends.
void drop_kept_exceptions();

/// Throws a TypeError (TF-E0502) where an argument is no callable, or nothing to go through.
void check_callable(nb::handle value, const char* function, const char* argument);
void check_iterable(nb::handle value, const char* function, const char* argument);
/// bytes as they are, str(value) of others as UTF-8. Throws (TF-E0103) where UTF-8 cannot encode
/// it.
std::string text_of(nb::handle value);
/// A str for people: what UTF-8 cannot encode is escaped.
std::string shown_text(nb::handle value);
/// A str that names a file, as the system spells it: names need not be UTF-8.
std::string path_of(nb::handle value);
/// str(value), for people.
inline std::string str_of(nb::handle value) { return shown_text(nb::str(value)); }
/// "int 3", "a list", "Tensor float32 (2, 3)": what an error message says it received.
std::string describe(nb::handle value);
/// The candidate that is closest to `name`, for "did you mean"; "" where none is close.
std::string closest(const std::string& name, const std::vector<std::string>& candidates);

/// Accepts "float32", NumPy dtypes and scalar types, Python's bool, int, float and complex.
DType dtype_of(nb::handle value);
/// nullopt for None.
std::optional<DType> optional_dtype(nb::handle value);
/// Unset for None.
Device device_of(nb::handle value);
/// Accepts a sequence of integers and Dims; None is a fresh symbol where `symbols` is true.
Shape shape_of(nb::handle value, bool symbols = false);
/// Sizes as Python integers, None where symbolic.
nb::tuple shape_tuple(const Shape& shape);

inline bool is_tensor(nb::handle value) { return nb::isinstance<Tensor>(value); }
inline nb::object wrap(Tensor tensor) { return nb::cast(std::move(tensor)); }
/// None where undefined.
nb::list wrap_all(Tensors tensors);
/// A Tensor as it is, a Variable's value, anything else through make_tensor().
Tensor tensor_of(nb::handle value);
Tensors tensors_of(nb::handle sequence, const char* what);

/// Notes the user's source line for what is recorded until it is destroyed. Needs the GIL.
class UserLine {
 public:
  UserLine();
  ~UserLine();
  UserLine(const UserLine&) = delete;
  UserLine& operator=(const UserLine&) = delete;

 private:
  const char* file_;
  int32_t line_;
};

/// Calls `body`, which may compile, run or wait, with the GIL released.
template <class Body>
auto unlocked(Body&& body) {
  GilRelease released;
  return body();
}

/// Calls `body`, which records operations. While a function is being traced nothing runs, so the
/// GIL is kept: recording is many short calls.
template <class Body>
auto recorded(Body&& body) {
  UserLine line;
  if (is_tracing()) return body();
  return unlocked(std::forward<Body>(body));
}

/// Throws a TypeError (TF-E0502) for what a function was given.
[[noreturn]] void fail_type(const std::string& happened, const std::string& expected,
                            const std::string& advice);

/// `type` with a constructor that refuses, and tells how such objects are made.
template <class T>
nb::class_<T> constructed(nb::class_<T> type, const char* name, const char* instead) {
  type.def("__init__", [name, instead](T*, const nb::args&, const nb::kwargs&) {
    fail_type(std::string(name) + " was called", "no call of the class itself", instead);
  });
  return type;
}

}  // namespace tracefire::python
